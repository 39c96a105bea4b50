"""The port to a database: transactions over event streams (truth) and small index tables.

Index tables can be rebuilt from truth. Nothing here knows SQL. Each noun has a small protocol of its own; a transaction
hands them out together, so that an object's kind, its edges and the event that speaks of it are written at once or not
at all.

Event streams hold what happened, in order, never changed and without gaps. Pending objects are small objects that
become durable in the same commit as what refers to them, and become files later.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Durability, Event, StoredEvent, Table
from contextplane.model.ids import Digest
from contextplane.ports.indexes import ObjectIndex, ObjectIndexView, PackIndex, PackIndexView, TextIndex, TextIndexView

if TYPE_CHECKING:
    from contextplane.ports.indexes import HandoffIndex, HandoffIndexView

__all__ = [
    "BodyTooLarge",
    "Catalog",
    "CatalogBusy",
    "CatalogCorrupt",
    "CatalogFailed",
    "CatalogForeign",
    "CatalogMissing",
    "CatalogReadOnly",
    "Marks",
    "MarksView",
    "Pending",
    "PendingView",
    "SchemaTooNew",
    "StreamConflict",
    "Streams",
    "StreamsView",
    "Transaction",
    "View",
]


class StreamConflict(ContextPlaneError):
    """Another writer appended to this stream first: `expected_seq` is not its last sequence number."""

    code: ClassVar[str] = "stream_conflict"
    family: ClassVar[Family] = "conflict"


class BodyTooLarge(ContextPlaneError):
    """A value over 64 KiB was about to be stored in the database instead of in the object store."""

    code: ClassVar[str] = "event_body_too_large"
    family: ClassVar[Family] = "refused"


class StreamsView(Protocol):
    """Reads event streams."""

    def head(self, stream: str) -> int:
        """Return the last sequence number, 0 for a stream that does not exist."""
        ...

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        """Events with a sequence number above `after`, in order."""
        ...

    def names(self, prefix: str = "") -> Iterator[str]:
        """Names of all streams that begin with `prefix`, in code-point order."""
        ...


class Streams(StreamsView, Protocol):
    """Append-only truth. Nothing here changes or removes an event."""

    def append(self, stream: str, expected_seq: int, events: Sequence[Event]) -> int:
        """Append all events or none, and return the new last sequence number.

        `StreamConflict` when `expected_seq` is not the last one: this is how two writers never both win.
        """
        ...


class CatalogMissing(ContextPlaneError):
    """The store has an identity but its catalog is gone.

    An empty new one would quietly forget what happened.
    """

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


class MarksView(Protocol):
    """Reads marks: how far an index has come."""

    def get(self, name: str) -> str | None: ...

    def names(self, prefix: str) -> Iterator[str]:
        """The name of every mark that begins with `prefix`, ascending."""
        ...


class Marks(MarksView, Protocol):
    """Writes marks."""

    def put(self, name: str, value: str) -> None: ...

    def drop(self, prefix: str) -> None:
        """Remove every mark that begins with `prefix`."""
        ...

    def clear(self) -> None: ...


class PendingView(Protocol):
    """Reads small objects that are not files yet."""

    def get(self, digest: Digest) -> bytes | None: ...

    def count(self) -> int: ...

    def some(self, limit: int) -> tuple[tuple[Digest, bytes], ...]:
        """At most `limit` of them, ascending."""
        ...


class Pending(PendingView, Protocol):
    """Small objects that one commit makes durable together with what refers to them.

    Before one is removed, it must be in the object store, durably.
    """

    def put(self, digest: Digest, data: bytes) -> None:
        """`BodyTooLarge` for more than 64 KiB: larger objects go into the object store at once."""
        ...

    def remove(self, digest: Digest) -> None: ...


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
    def pending(self) -> PendingView: ...


class Transaction(Protocol):
    """A view that can be written to.

    Everything takes effect when the block is left, and nothing when an exception leaves it.
    """

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
    def pending(self) -> Pending: ...


class Catalog(Protocol):
    """The database of one store.

    Writers are serialised; readers never wait for them. A writer that cannot get its turn gets `CatalogBusy`.
    """

    @property
    def schema(self) -> int:
        """The number of the last migration that ran."""
        ...

    def read(self) -> AbstractContextManager[View]: ...

    def write(self, *, survives: Durability = "power_cut") -> AbstractContextManager[Transaction]: ...

    def tables(self) -> tuple[Table, ...]: ...

    def problems(self) -> Iterator[str]:
        """The findings of the database's own integrity check; none when it is sound."""
        ...

    def close(self) -> None: ...
