"""Making the index anew from registered packs, objects and streams. Streams are truth and stay as they are."""

from collections.abc import Callable, Sequence

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, references, same_but_hash
from contextplane.model.ids import Digest
from contextplane.model.manifest import filled_in
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.object_index import ObjectIndex, Recorded
from contextplane.ports.objects import Objects
from contextplane.store.follow import index_entries
from contextplane.store.handoff_adopt import Adopted, adopt_handoffs
from contextplane.store.handoffs import index_handoffs
from contextplane.store.in_step import PACKS
from contextplane.store.trace import read_manifest_bytes

__all__ = ["Indexing", "Rebuilt", "rebuild"]

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
