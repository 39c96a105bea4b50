"""`business_context`: what the business does, and what it never does. No policy: that is evaluated, not read."""

from contextplane.model.context_pack.terms import Sentence
from contextplane.model.value import Document

__all__ = ["BusinessContext", "BusinessSummary"]


class BusinessSummary(Document, frozen=True):
    """A few words about the business."""

    what_we_do: Sentence
    who_we_serve: tuple[Sentence, ...] = ()
    differentiators: tuple[Sentence, ...] = ()


class BusinessContext(Document, frozen=True):
    """`non_negotiables` always reach the model."""

    summary: BusinessSummary
    non_negotiables: tuple[Sentence, ...] = ()
