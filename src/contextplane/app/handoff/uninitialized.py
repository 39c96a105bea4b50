"""The shelf of a place that has no store yet."""

from collections.abc import Callable

from contextplane.handoff.reader import HandoffLimits, Written
from contextplane.handoff.source import SourceReader
from contextplane.handoff.writer import Shelf
from contextplane.model.handoff import HandoffDocument
from contextplane.ports.catalog import Catalog
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids

__all__ = ["FirstShelf"]


class FirstShelf(Shelf):
    """An empty shelf where there is no store yet. What can be written makes one, and is written there."""

    def __init__(  # noqa: PLR0913  one port each, all by name
        self,
        catalog: Catalog,
        objects: Objects,
        *,
        clock: Clock,
        ids: Ids,
        reader_factory: Callable[[], SourceReader],
        limits: HandoffLimits,
        make: Callable[[], Shelf],
    ) -> None:
        super().__init__(catalog, objects, clock=clock, ids=ids, reader_factory=reader_factory, limits=limits)
        self._make = make

    def write(
        self,
        document: HandoffDocument,
        *,
        identity: str | None = None,
        expected_revision: int | None = None,
        validate_only: bool = False,
    ) -> Written:
        checked = super().write(document, identity=identity, expected_revision=expected_revision, validate_only=True)
        return checked if validate_only else self._make().write(document)
