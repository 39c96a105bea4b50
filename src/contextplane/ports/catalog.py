"""What we need of a database: transactions over event streams (truth) and small index tables (made again from truth).

It says nothing of SQL. Each noun has a small protocol of its own; a transaction hands them out together, so that an
object's kind, its edges and the event that speaks of it are written at once or not at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.pack_index import PackIndex, PackIndexView, TextIndex, TextIndexView

if TYPE_CHECKING:
    from contextplane.ports.handoff_index import HandoffIndex, HandoffIndexView
    from contextplane.ports.pending import Pending, PendingView

__all__ = [
    "BLOB",
    "MAX_INLINE",
    "BodyTooLarge",
    "Catalog",
    "CatalogBusy",
    "CatalogCorrupt",
    "CatalogFailed",
    "CatalogForeign",
    "CatalogMissing",
    "CatalogReadOnly",
    "Event",
    "KindConflict",
    "Marks",
    "MarksView",
    "ObjectIndex",
    "ObjectIndexView",
    "Recorded",
    "SchemaTooNew",
    "StoredEvent",
    "StreamConflict",
    "Streams",
    "StreamsView",
    "Survives",
    "Table",
    "Tally",
    "Transaction",
    "View",
]

MAX_INLINE = 64 * 1024
"""No larger value is ever stored in the database; it is an object, and the database holds its digest."""

BLOB = "blob"
"""The kind of an object that is only bytes to us."""

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


class StreamConflict(ContextPlaneError):
    """Another writer appended to this stream first: `expected_seq` is not its last sequence number."""

    code: ClassVar[str] = "stream_conflict"
    family: ClassVar[Family] = "conflict"


class BodyTooLarge(ContextPlaneError):
    """A value over 64 KiB was about to be stored in the database instead of in the object store."""

    code: ClassVar[str] = "event_body_too_large"
    family: ClassVar[Family] = "refused"


class KindConflict(ContextPlaneError):
    """An object was recorded before as another kind of thing."""

    code: ClassVar[str] = "object_kind_conflict"
    family: ClassVar[Family] = "conflict"


class Event(Value, frozen=True):
    """Something that happened: its kind, and its canonical JSON body of at most 64 KiB."""

    kind: str
    body: bytes


class StoredEvent(Value, frozen=True):
    """An event at its place. Sequence numbers of a stream start at 1 and have no gaps."""

    stream: str
    seq: int
    kind: str
    body: bytes


class Recorded(Value, frozen=True):
    """What the index knows of an object. `traced`: the objects that it refers to are recorded as its edges."""

    digest: Digest
    kind: str
    size: int
    traced: bool


class Tally(Value, frozen=True):
    """How many objects of one kind are recorded, and their bytes. Kept up to date by every write, never counted."""

    kind: str
    objects: int
    size: int


class Table(Value, frozen=True):
    """One table of the catalog: `truth` is lost when it is lost, an `index` is made again by `ctx fsck --rebuild`."""

    name: str
    role: Literal["truth", "index"]
    note: str


class StreamsView(Protocol):
    """Reading event streams."""

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


class ObjectIndexView(Protocol):
    """Reading what objects are and what they refer to."""

    def recorded(self, digest: Digest) -> Recorded | None: ...

    def of_kind(self, kind: str) -> Iterator[Digest]:
        """Every recorded object of one kind, ascending."""
        ...

    def tallies(self) -> tuple[Tally, ...]:
        """One tally per kind, by kind."""
        ...

    def counted(self) -> tuple[Tally, ...]:
        """The same, counted row by row: what the tallies must say."""
        ...

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        """The (role, target) edges of an object, in order."""
        ...

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        """The (name, target) of every root that begins with `prefix`, in code-point order of name."""
        ...

    def root_count(self, prefix: str = "") -> int:
        """How many there are; the cost does not grow with their number when `prefix` is that of one kind, `packs/`."""
        ...

    def wanted(self) -> Iterator[Digest]:
        """Every digest that a root or an edge points at, once, ascending."""
        ...

    def reached(self) -> Iterator[Digest]:
        """Every digest that a chain of edges from some root reaches, once, ascending."""
        ...

    def referrers(self, target: Digest) -> tuple[str, ...]:
        """The roots and the `sha256:` sources that point at an object, at most 5: enough to say who misses it."""
        ...

    def untraced(self) -> Iterator[Recorded]:
        """Reached objects whose own references are not wholly known, ascending."""
        ...

    def unreachable(self) -> Iterator[Recorded]:
        """Recorded objects that no chain of edges from any root reaches, ascending."""
        ...


class ObjectIndex(ObjectIndexView, Protocol):
    """Writing it. All of it is index: a rebuild gives the same again."""

    def record(self, recorded: Recorded) -> None:
        """Say what an object is. Once traced, always traced.

        `blob` is what an object is until we know better: it gives way to any other kind and displaces none. Any other
        change of kind is a `KindConflict`.
        """
        ...

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        """Record many blobs with their sizes at once, each as `record` would."""
        ...

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        """Say that `source` refers to each target in its role, in this order after those that are there.

        Who links to an object that it did not put itself checks, within this transaction, that the object is there:
        collecting takes the same turn.
        """
        ...

    def link(self, source: Digest, role: str, target: Digest) -> None:
        """The same for one."""
        ...

    def keep(self, name: str, target: Digest) -> None:
        """Make `name` a root: what it points at is alive, with all that this reaches."""
        ...

    def release(self, name: str) -> None:
        """Remove a root."""
        ...

    def forget(self, digest: Digest) -> None:
        """Drop a collected object and its outgoing edges."""
        ...

    def unlink_all(self, prefix: str) -> None:
        """Drop every edge and the roots of one kind before a rebuild, and count anew. What objects are stays known.

        Only blobs count as traced afterwards: what the others refer to is about to be found out again.
        """
        ...


class MarksView(Protocol):
    """Reading where an index last stood."""

    def get(self, name: str) -> str | None: ...


class Marks(MarksView, Protocol):
    """Writing it."""

    def put(self, name: str, value: str) -> None: ...

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
