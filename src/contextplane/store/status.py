"""What a store holds, read from its catalog: the cost does not grow with what is stored."""

import msgspec

from contextplane.model.catalog import Tally
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, StreamsView
from contextplane.store.find import PACKS

__all__ = ["LOST", "STORE_STREAM", "StoreContents", "store_contents"]

STORE_STREAM = "store"
"""The stream of events of the store itself."""

LOST = "catalog_lost"
"""The first event of a catalog that replaced one that could not be used."""


class StoreContents(Value, frozen=True):
    """What the catalog records. Objects that it does not record are not counted; a check finds those.

    `lost`: each time at which the catalog was lost and replaced. Events before then may be missing.
    """

    execution_packs: int
    objects: int
    size: int
    kinds: tuple[Tally, ...]
    schema: int
    lost: tuple[str, ...]


def store_contents(catalog: Catalog) -> StoreContents:
    with catalog.read() as view:
        tallies = view.objects.tallies()
        packs = view.objects.root_count(PACKS)
        lost = _loss_times(view.streams)
    return StoreContents(
        execution_packs=packs,
        objects=sum(tally.objects for tally in tallies),
        size=sum(tally.size for tally in tallies),
        kinds=tallies,
        schema=catalog.schema,
        lost=lost,
    )


def _loss_times(streams: StreamsView) -> tuple[str, ...]:
    events = (msgspec.json.decode(event.body) for event in streams.read(STORE_STREAM) if event.kind == LOST)
    return tuple(str(event["at"]) for event in events)
