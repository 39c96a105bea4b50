"""Rebuilding the index from registered packs, objects and streams.

Streams are the truth and stay as they are. When streams were lost, handoff packs are recovered from the revisions among
the objects, which say themselves what they are. Only an object of exactly our form counts. A deleted pack comes back,
because nothing records its deletion any more.
"""

from collections.abc import Callable, Iterator, Sequence

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.execution.manifest import fill_in_hash
from contextplane.model.execution.references import EXECUTION_PACK, find_references, is_entry_of
from contextplane.model.handoff import HandoffPack, pack_bytes, revision_event_body, stream_name
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction
from contextplane.ports.indexes import ObjectIndex
from contextplane.ports.objects import Objects
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.find import PACKS
from contextplane.store.handoffs import index_handoffs, parse_pack
from contextplane.store.index import index_entries, read_manifest_bytes

__all__ = ["AdoptedRevisions", "IndexBuilder", "RebuildResult", "adopt_handoffs", "rebuild"]

_BEGINS = b'{"brief":'
_MOST = 64 * 1024 * 1024
_MOST_REVISION = 2**53 - 1


class AdoptedRevisions(Value, frozen=True):
    """The revisions that have streams again, and the packs for which two objects claim the same revision."""

    revisions: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


class _Revision(Value, frozen=True):
    id: HandoffId
    number: int
    digest: Digest
    at: Timestamp


def adopt_handoffs(tx: Transaction, objects: Objects) -> AdoptedRevisions:
    """Recreate the streams of packs that have revisions and no event. A stream with events stays as it is."""
    lost: dict[HandoffId, list[_Revision]] = {}
    for revision in _revisions(objects):
        if not tx.streams.head(stream_name(revision.id)):
            lost.setdefault(revision.id, []).append(revision)
    revisions: list[str] = []
    unclear: list[str] = []
    for handoff_id in sorted(lost):
        several = sorted(lost[handoff_id], key=lambda revision: revision.number)
        if len({revision.number for revision in several}) < len(several):
            unclear.append(handoff_id.text)
            continue
        events = [
            Event(kind="imported", body=revision_event_body(revision.number, revision.digest, revision.at))
            for revision in several
        ]
        tx.streams.append(stream_name(handoff_id), 0, events)
        revisions += [f"{handoff_id}@{revision.number}" for revision in several]
    return AdoptedRevisions(revisions=tuple(revisions), unclear=tuple(unclear))


def _revisions(objects: Objects) -> Iterator[_Revision]:
    for digest in objects.names():
        try:
            data = _candidate(digest, objects)
        except ContextPlaneError:
            continue  # a check reports it
        pack = parse_pack(data)
        if pack is not None and _is_valid(pack) and pack_bytes(pack) == data:
            yield _Revision(id=pack.handoff_id, number=pack.revision, digest=digest, at=pack.updated)


def _candidate(digest: Digest, objects: Objects) -> bytes | None:
    """The bytes of an object that begins as a revision does; else None after reading only its beginning."""
    if objects.size(digest) > _MOST or not next(objects.stream(digest), b"").startswith(_BEGINS):
        return None
    return objects.get(digest)


def _is_valid(pack: HandoffPack) -> bool:
    return HandoffId.has_form(pack.id) and 1 <= pack.revision < _MOST_REVISION


# --- the whole index --------------------------------------------------------------------------------------------------

IndexBuilder = Callable[[Transaction], None]
"""How another package rebuilds its own part of the index."""


class RebuildResult(Value, frozen=True):
    """What the new index holds. `entries`: how many damaged copies of manifests were written again.

    `adopted`: the handoff revisions, `pk_...@3`, that were recovered from the objects because their events were lost;
    `unclear`: the packs that could not be recovered, because two objects claim to be the same revision.
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
    others: Sequence[IndexBuilder] = (),
) -> RebuildResult:
    """Empty the index and fill it again in one transaction: readers see the old index until it commits.

    The kinds of objects stay recorded, and so do the references of a manifest that cannot be read any more. A pack
    whose entry is gone is no root afterwards; an entry that is not a copy of its manifest is repaired before.
    `streams_lost`: events may be gone, so handoff packs without any are recovered from the objects.
    """
    packs = list(entries.names())
    repaired = sum(_repair_entry(pack, entries, objects) for pack in packs)
    with catalog.write() as tx:
        unreadable = _unreadable_manifests(tx.objects, objects)
        tx.objects.unlink_all(PACKS)
        tx.marks.clear()
        for recorded, targets in unreadable:
            _restore(tx, recorded, targets)
        tx.packs.clear()
        index_entries(tx, packs, entries, objects)
        adopted = adopt_handoffs(tx, objects) if streams_lost else AdoptedRevisions()
        handoffs = index_handoffs(tx, objects)
        for build in others:
            build(tx)
        count = sum(tally.objects for tally in tx.objects.tallies())
    return RebuildResult(
        packs=len(packs),
        objects=count,
        handoffs=handoffs,
        entries=repaired,
        adopted=adopted.revisions,
        unclear=adopted.unclear,
    )


def _repair_entry(pack: Digest, entries: ExecutionEntries, objects: Objects) -> bool:
    """Write an entry again that is not a copy of its manifest, and whether it did.

    While the manifest cannot be read, the entry is left alone: it may be all that is left.
    """
    manifest = read_manifest_bytes(pack, objects)
    if manifest is None or find_references(manifest) is None:
        return False
    try:
        copy = entries.read(pack)
    except ContextPlaneError:
        copy = None
    if copy is not None and is_entry_of(copy, manifest, pack):
        return False
    try:
        entries.add(pack, fill_in_hash(manifest, pack))
    except ContextPlaneError:
        return False  # a check reports it
    return True


def _unreadable_manifests(
    index: ObjectIndex, objects: Objects
) -> list[tuple[IndexedObject, tuple[tuple[str, Digest], ...]]]:
    """The recorded manifests that were traced once and cannot be read any more, with their references."""
    manifests = []
    for digest in list(index.of_kind(EXECUTION_PACK)):
        recorded = index.lookup(digest)
        if recorded is not None and recorded.traced and read_manifest_bytes(digest, objects) is None:
            manifests.append((recorded, index.targets(digest)))
    return manifests


def _restore(tx: Transaction, recorded: IndexedObject, targets: tuple[tuple[str, Digest], ...]) -> None:
    tx.objects.record(recorded)
    tx.objects.link_all(recorded.digest, targets)
