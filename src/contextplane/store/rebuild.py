"""Making the index anew from the registered packs and the objects. Streams are truth and stay as they are."""

from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog
from contextplane.ports.entries import PackEntries
from contextplane.ports.objects import Objects
from contextplane.store.follow import index_entries

__all__ = ["Rebuilt", "rebuild"]


class Rebuilt(Value, frozen=True):
    """What the new index holds."""

    packs: int
    objects: int


def rebuild(catalog: Catalog, entries: PackEntries, objects: Objects) -> Rebuilt:
    """Empty the index and fill it again, in one transaction: whoever reads meanwhile sees the old one.

    An object that no pack reaches gets no row: its kind is unknown from now on, so it is never collected.
    """
    packs = list(entries.names())
    with catalog.write() as tx:
        tx.objects.clear()
        tx.marks.clear()
        index_entries(tx, packs, objects)
        count = sum(tally.objects for tally in tx.objects.tallies())
    return Rebuilt(packs=len(packs), objects=count)
