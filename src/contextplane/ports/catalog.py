"""What we need of a database: transactions over event streams (truth) and small index tables (made again from truth).

It says nothing of SQL. Each noun has a small protocol of its own; a transaction hands them out together, so that an
object's kind, its edges and the event that speaks of it are written at once or not at all.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.object_index import ObjectIndex, ObjectIndexView
from contextplane.ports.pack_index import PackIndex, PackIndexView, TextIndex, TextIndexView
from contextplane.ports.streams import Streams, StreamsView

if TYPE_CHECKING:
    from contextplane.ports.handoff_index import HandoffIndex, HandoffIndexView
    from contextplane.ports.pending import Pending, PendingView

__all__ = [
    "Catalog",
    "CatalogBusy",
    "CatalogCorrupt",
    "CatalogFailed",
    "CatalogForeign",
    "CatalogMissing",
    "CatalogReadOnly",
    "Marks",
    "MarksView",
    "SchemaTooNew",
    "Survives",
    "Table",
    "Transaction",
    "View",
]


Survives = Literal["crash", "power_cut"]
"""What a commit outlives: a killed process, or also a machine that loses its power."""


class CatalogMissing(ContextPlaneError):
    """The store has an identity but its catalog is gone: an empty new one would quietly forget what happened."""

    code: ClassVar[str] = "catalog_missing"
    family: ClassVar[Family] = "conflict"


class CatalogCorrupt(ContextPlaneError):
    """The catalog is not a readable database."""

    code: ClassVar[str] = "catalog_corrupt"
    family: ClassVar[Family] = "conflict"


class CatalogForeign(ContextPlaneError):
    """The catalog is a sound one, of another store."""

    code: ClassVar[str] = "catalog_foreign"
    family: ClassVar[Family] = "conflict"


class CatalogBusy(ContextPlaneError):
    """Another process held the catalog's write lock for longer than we wait."""

    code: ClassVar[str] = "catalog_busy"
    family: ClassVar[Family] = "conflict"


class CatalogReadOnly(ContextPlaneError):
    """The catalog cannot be written here."""

    code: ClassVar[str] = "catalog_read_only"
    family: ClassVar[Family] = "failed"


class CatalogFailed(ContextPlaneError):
    """The database under the catalog answered with an error of its own, a full disk for example."""

    code: ClassVar[str] = "catalog_failed"
    family: ClassVar[Family] = "failed"


class SchemaTooNew(ContextPlaneError):
    """The catalog was written by a newer contextplane. An old one refuses rather than guess."""

    code: ClassVar[str] = "catalog_schema_newer"
    family: ClassVar[Family] = "refused"


class Table(Value, frozen=True):
    """One table of the catalog: `truth` is lost when it is lost, an `index` is made again by `ctx fsck --rebuild`."""

    name: str
    role: Literal["truth", "index"]
    note: str


class MarksView(Protocol):
    """Reading where an index last stood."""

    def get(self, name: str) -> str | None: ...

    def names(self, prefix: str) -> Iterator[str]:
        """The name of every mark that begins with `prefix`, ascending."""
        ...


class Marks(MarksView, Protocol):
    """Writing it."""

    def put(self, name: str, value: str) -> None: ...

    def drop(self, prefix: str) -> None:
        """Take away every mark that begins with `prefix`."""
        ...

    def clear(self) -> None: ...


class View(Protocol):
    """One consistent state of the catalog, as of the moment the view was opened."""

    @property
    def streams(self) -> StreamsView: ...

    @property
    def objects(self) -> ObjectIndexView: ...

    @property
    def marks(self) -> MarksView: ...

    @property
    def packs(self) -> PackIndexView: ...

    @property
    def texts(self) -> TextIndexView: ...

    @property
    def handoffs(self) -> "HandoffIndexView": ...

    @property
    def pending(self) -> "PendingView": ...


class Transaction(Protocol):
    """The same, to write: all of it takes effect when the block is left, none of it when an exception leaves it."""

    @property
    def streams(self) -> Streams: ...

    @property
    def objects(self) -> ObjectIndex: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def packs(self) -> PackIndex: ...

    @property
    def texts(self) -> TextIndex: ...

    @property
    def handoffs(self) -> "HandoffIndex": ...

    @property
    def pending(self) -> "Pending": ...


class Catalog(Protocol):
    """The database of one store.

    Writers are serialised; readers never wait for them. A writer that cannot get its turn gets `CatalogBusy`.
    """

    @property
    def schema(self) -> int:
        """The number of the last migration that ran."""
        ...

    def read(self) -> AbstractContextManager[View]: ...

    def write(self, *, survives: Survives = "power_cut") -> AbstractContextManager[Transaction]: ...

    def tables(self) -> tuple[Table, ...]: ...

    def problems(self) -> Iterator[str]:
        """What the database's own integrity check finds, nothing when it is sound."""
        ...

    def close(self) -> None: ...
