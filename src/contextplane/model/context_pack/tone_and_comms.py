"""`tone_and_comms`: how the final text sounds. It never overrides policy."""

from contextplane.model.context_pack.terms import Sentence
from contextplane.model.value import Document

__all__ = ["Audience", "ToneAndComms"]


class Audience(Document, frozen=True, omit_defaults=True):
    """What holds only for one kind of reader."""

    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()


class ToneAndComms(Document, frozen=True, omit_defaults=True):
    """For everybody, and where it differs, for customers and for operators apart."""

    voice_attributes: tuple[Sentence, ...] = ()
    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()
    customer_facing: Audience | None = None
    operator_facing: Audience | None = None
