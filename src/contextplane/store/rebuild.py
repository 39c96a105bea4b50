"""Making the index anew from the registered packs and the objects. Streams are truth and stay as they are."""

from contextplane.model.execution import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, ObjectIndex, Recorded, Transaction
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Objects
from contextplane.store.follow import index_entries
from contextplane.store.in_step import PACKS
from contextplane.store.trace import read_manifest_bytes

__all__ = ["Rebuilt", "rebuild"]


class Rebuilt(Value, frozen=True):
    """What the new index holds."""

    packs: int
    objects: int


def rebuild(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> Rebuilt:
    """Empty the index and fill it again, in one transaction: whoever reads meanwhile sees the old one.

    What objects are stays known, and so does what a manifest referred to that cannot be read any more.
    A pack whose entry is gone is no root afterwards.
    """
    packs = list(entries.names())
    with catalog.write() as tx:
        remembered = _remembered(tx.objects, objects)
        tx.objects.unlink_all(PACKS)
        tx.marks.clear()
        for recorded, targets in remembered:
            _restore(tx, recorded, targets)
        tx.packs.clear()
        index_entries(tx, packs, entries, objects)
        count = sum(tally.objects for tally in tx.objects.tallies())
    return Rebuilt(packs=len(packs), objects=count)


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
