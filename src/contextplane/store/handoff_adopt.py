"""Handoff packs whose streams are lost: their revisions are objects that say themselves what they are.

Only what has exactly our form is taken for one. What was deleted comes back, for nothing tells any more that it was.
"""

from collections.abc import Iterator

from contextplane.errors import ContextPlaneError
from contextplane.model.handoff import HandoffPack, pack_bytes
from contextplane.model.handoff_events import kept_body, stream_name
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.objects import Objects
from contextplane.ports.streams import Event
from contextplane.store.handoffs import pack_of

__all__ = ["Adopted", "adopt_handoffs"]

_BEGINS = b'{"brief":'
_MOST = 64 * 1024 * 1024
_MOST_REVISION = 2**53 - 1


class Adopted(Value, frozen=True):
    """`revisions` have streams again; of the `unclear` packs several objects claim to be the same revision."""

    revisions: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


class _Revision(Value, frozen=True):
    id: HandoffId
    number: int
    digest: Digest
    at: Timestamp


def adopt_handoffs(tx: Transaction, objects: Objects) -> Adopted:
    """Begin the streams of packs that have revisions and no event. A stream that has any stays as it is."""
    found: dict[HandoffId, list[_Revision]] = {}
    for one in _revisions(objects):
        if not tx.streams.head(stream_name(one.id)):
            found.setdefault(one.id, []).append(one)
    revisions: list[str] = []
    unclear: list[str] = []
    for handoff_id in sorted(found):
        several = sorted(found[handoff_id], key=lambda one: one.number)
        if len({one.number for one in several}) < len(several):
            unclear.append(handoff_id.text)
            continue
        events = [Event(kind="imported", body=kept_body(one.number, one.digest, one.at)) for one in several]
        tx.streams.append(stream_name(handoff_id), 0, events)
        revisions += [f"{handoff_id}@{one.number}" for one in several]
    return Adopted(revisions=tuple(revisions), unclear=tuple(unclear))


def _revisions(objects: Objects) -> Iterator[_Revision]:
    for digest in objects.names():
        try:
            data = _candidate(digest, objects)
        except ContextPlaneError:
            continue  # a check tells of it
        pack = pack_of(data)
        if pack is not None and _ours(pack) and pack_bytes(pack) == data:
            yield _Revision(id=pack.handoff_id, number=pack.revision, digest=digest, at=pack.updated)


def _candidate(digest: Digest, objects: Objects) -> bytes | None:
    """The bytes of an object that begins as a revision does; of any other no more than its beginning is read."""
    if objects.size(digest) > _MOST or not next(objects.stream(digest), b"").startswith(_BEGINS):
        return None
    return objects.get(digest)


def _ours(pack: HandoffPack) -> bool:
    return HandoffId.PATTERN.fullmatch(pack.id) is not None and 1 <= pack.revision < _MOST_REVISION
