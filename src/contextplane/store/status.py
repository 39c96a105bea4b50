"""What a store holds, told from its catalog: the cost does not grow with what is stored."""

from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Table, Tally
from contextplane.store.follow import PACKS

__all__ = ["Contents", "contents"]


class Contents(Value, frozen=True):
    """What is recorded here. Objects that nothing recorded are not counted; a check finds those."""

    execution_packs: int
    objects: int
    size: int
    kinds: tuple[Tally, ...]
    schema: int
    tables: tuple[Table, ...]


def contents(catalog: Catalog) -> Contents:
    with catalog.read() as view:
        tallies = view.objects.tallies()
        packs = view.objects.root_count(PACKS)
    return Contents(
        execution_packs=packs,
        objects=sum(tally.objects for tally in tallies),
        size=sum(tally.size for tally in tallies),
        kinds=tallies,
        schema=catalog.schema,
        tables=catalog.tables(),
    )
