"""Making the index anew from registered packs, objects and streams. Streams are truth and stay as they are.

Handoff packs whose streams are lost: their revisions are objects that say themselves what they are.

Only what has exactly our form is taken for one. What was deleted comes back, for nothing tells any more that it was.
"""

from collections.abc import Callable, Iterator, Sequence

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, Recorded
from contextplane.model.execution.manifest import EXECUTION_PACK, filled_in, references, same_but_hash
from contextplane.model.handoff import HandoffPack, kept_body, pack_bytes, stream_name
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction
from contextplane.ports.indexes import ObjectIndex
from contextplane.ports.objects import Objects
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.find import PACKS
from contextplane.store.handoffs import index_handoffs, pack_of
from contextplane.store.index import index_entries, read_manifest_bytes

__all__ = ["Adopted", "Indexing", "Rebuilt", "adopt_handoffs", "rebuild"]

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
    for revision in _revisions(objects):
        if not tx.streams.head(stream_name(revision.id)):
            found.setdefault(revision.id, []).append(revision)
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


Indexing = Callable[[Transaction], None]
"""How another room makes its own part of the index anew."""


class Rebuilt(Value, frozen=True):
    """What the new index holds. `entries`: so many damaged copies of manifests were written anew.

    `adopted`: the handoff revisions, `pk_...@3`, whose events were lost and that were found among the objects;
    `unclear`: the packs of which that could not be told.
    """

    packs: int
    objects: int
    handoffs: int
    entries: int
    adopted: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


def rebuild(
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    *,
    streams_lost: bool = False,
    others: Sequence[Indexing] = (),
) -> Rebuilt:
    """Empty the index and fill it again, in one transaction: whoever reads meanwhile sees the old one.

    What objects are stays known, and so does what a manifest referred to that cannot be read any more.
    A pack whose entry is gone is no root afterwards; an entry that is not what its manifest says is healed before.
    `streams_lost`: events may be gone, so handoff packs without any are looked for among the objects.
    """
    packs = list(entries.names())
    healed = sum(_healed(pack, entries, objects) for pack in packs)
    with catalog.write() as tx:
        remembered = _remembered(tx.objects, objects)
        tx.objects.unlink_all(PACKS)
        tx.marks.clear()
        for recorded, targets in remembered:
            _restore(tx, recorded, targets)
        tx.packs.clear()
        index_entries(tx, packs, entries, objects)
        adopted = adopt_handoffs(tx, objects) if streams_lost else Adopted()
        handoffs = index_handoffs(tx, objects)
        for indexed in others:
            indexed(tx)
        count = sum(tally.objects for tally in tx.objects.tallies())
    return Rebuilt(
        packs=len(packs),
        objects=count,
        handoffs=handoffs,
        entries=healed,
        adopted=adopted.revisions,
        unclear=adopted.unclear,
    )


def _healed(pack: Digest, entries: ExecutionEntries, objects: Objects) -> bool:
    """Write an entry anew that is no copy of its manifest. While that cannot be read, it may be all that is left."""
    manifest = read_manifest_bytes(pack, objects)
    if manifest is None or references(manifest) is None:
        return False
    try:
        copy = entries.read(pack)
    except ContextPlaneError:
        copy = None
    if copy is not None and same_but_hash(copy, manifest, pack):
        return False
    try:
        entries.add(pack, filled_in(manifest, pack))
    except ContextPlaneError:
        return False  # a check tells of it
    return True


def _remembered(index: ObjectIndex, objects: Objects) -> list[tuple[Recorded, tuple[tuple[str, Digest], ...]]]:
    kept = []
    for digest in list(index.of_kind(EXECUTION_PACK)):
        recorded = index.recorded(digest)
        if recorded is not None and recorded.traced and read_manifest_bytes(digest, objects) is None:
            kept.append((recorded, index.targets(digest)))
    return kept


def _restore(tx: Transaction, recorded: Recorded, targets: tuple[tuple[str, Digest], ...]) -> None:
    tx.objects.record(recorded)
    tx.objects.link_all(recorded.digest, targets)
