"""The stream of cosignatures, and whether enough witnesses cosigned the newest checkpoint.

The stream is not in the log: a cosignature is about a checkpoint of the log. So everybody who can write to the catalog
can add events to it and remove some. What does not hold is ignored here, and what is missing is not counted. An audit
reports what does not hold.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event, StoredEvent
from contextplane.model.json.canonical import canonical
from contextplane.model.keys import WITNESS, PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.streams import COSIGNATURES
from contextplane.trust.checkpoint import NoteKey, signers_of
from contextplane.trust.cosignature import Cosignature, CosignatureInvalid, witnesses_among
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = [
    "CheckpointNotWitnessed",
    "Witnesses",
    "cosignature_event",
    "count_witnesses",
    "read_cosignature",
    "witness_keys",
]

_MOST = 256
"""How many of the newest cosignatures are read: those of the newest checkpoint are at the end."""


class CheckpointNotWitnessed(ContextPlaneError):
    """A newest checkpoint that fewer witnesses cosigned than the keyring asks for."""

    code: ClassVar[str] = "checkpoint_not_witnessed"
    family: ClassVar[Family] = "untrusted"


class _StoredCosignature(Document, frozen=True):
    size: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    line: Annotated[str, Meta(max_length=1024)]


_decoder = msgspec.json.Decoder(_StoredCosignature)


class Witnesses(Value, frozen=True):
    """How many people must have cosigned the newest checkpoint, and the ids of the keys that did.

    `people`: how many did whose word counts. Keys that were rotated into each other are one person, and a person who
    signed the checkpoint is no witness of it: they would vouch for themselves. `own`: the keys of such people.
    """

    required: int = 0
    people: int = 0
    key_ids: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()

    @property
    def missing(self) -> int:
        return max(self.required - self.people, 0)


def cosignature_event(size: int, cosignature: Cosignature) -> Event:
    """The event for a cosignature of a checkpoint of `size` entries."""
    return Event(kind="cosignature", body=canonical({"line": cosignature.line, "size": size}))


def read_cosignature(stored: StoredEvent) -> tuple[int, Cosignature]:
    """Parse a stored event: the size of the log that it is about, and the cosignature, unverified."""
    try:
        content = _decoder.decode(stored.body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CosignatureInvalid(f"not a cosignature: {error}") from error
    cosignature = Cosignature.parse(content.line)
    if cosignature_event(content.size, cosignature) != Event(kind=stored.kind, body=stored.body):
        raise CosignatureInvalid("not in the one form that is written")
    return content.size, cosignature


def witness_keys(keys: TrustedKeys, at: Timestamp) -> Iterator[PublicKey]:
    """The keys with the role `witness` that are valid at a time.

    A key with any revocation is none: it could cosign an old time.
    """
    for issuer in keys.issuers:
        for key in issuer.keys:
            if WITNESS in key.roles and key.revoked_from is None and key.state_at(at) == "valid":
                yield key.key


def count_witnesses(
    streams: StreamsView, newest: VerifiedCheckpoint, keys: TrustedKeys, check: SignatureCheck
) -> Witnesses:
    """Count the people who cosigned the newest checkpoint of others as witnesses, by the newest keyring."""
    cosignatures = list(_cosignatures_of(streams, newest.checkpoint.size))
    witnesses = frozenset(witness_keys(keys, newest.time))
    key_ids = witnesses_among(cosignatures, newest.checkpoint.text, witnesses, check)
    origin = newest.checkpoint.origin
    candidates = (NoteKey(name=origin, key=key.key) for issuer in keys.issuers for key in issuer.keys)
    signers = keys.people_of(signers_of(newest.note, candidates, check))
    people = keys.people_of(key_ids) - signers
    return Witnesses(
        required=keys.witnesses, people=len(people), key_ids=key_ids, own=key_ids & frozenset().union(*signers)
    )


def _cosignatures_of(streams: StreamsView, size: int) -> Iterator[Cosignature]:
    for stored in streams.read(COSIGNATURES, after=max(streams.head(COSIGNATURES) - _MOST, 0)):
        try:
            about, cosignature = read_cosignature(stored)
        except ContextPlaneError:
            continue
        if about == size:
            yield cosignature
