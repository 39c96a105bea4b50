"""What a store holds, told from its catalog: the cost does not grow with what is stored."""

import msgspec

from contextplane.model.catalog import Tally
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, StreamsView
from contextplane.store.find import PACKS

__all__ = ["LOST", "STORE_STREAM", "Contents", "contents"]

STORE_STREAM = "store"
"""The stream of what happened to the store itself."""

LOST = "catalog_lost"
"""The event with which a catalog begins that took the place of one that could not be used."""


class Contents(Value, frozen=True):
    """What is recorded here. Objects that nothing recorded are not counted; a check finds those.

    `lost`: when the catalog was lost and begun anew, each time. What happened before may be missing.
    """

    execution_packs: int
    objects: int
    size: int
    kinds: tuple[Tally, ...]
    schema: int
    lost: tuple[str, ...]


def contents(catalog: Catalog) -> Contents:
    with catalog.read() as view:
        tallies = view.objects.tallies()
        packs = view.objects.root_count(PACKS)
        lost = _lost(view.streams)
    return Contents(
        execution_packs=packs,
        objects=sum(tally.objects for tally in tallies),
        size=sum(tally.size for tally in tallies),
        kinds=tallies,
        schema=catalog.schema,
        lost=lost,
    )


def _lost(streams: StreamsView) -> tuple[str, ...]:
    events = (msgspec.json.decode(event.body) for event in streams.read(STORE_STREAM) if event.kind == LOST)
    return tuple(str(event["at"]) for event in events)
