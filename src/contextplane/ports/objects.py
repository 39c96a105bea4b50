"""The port to a store of bytes under their SHA-256. It knows nothing of what the bytes mean."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import ObjectCondition, StoredObject, Stray
from contextplane.model.ids import Digest

__all__ = [
    "Batch",
    "Collector",
    "ObjectCorrupt",
    "ObjectNotFound",
    "ObjectObstructed",
    "ObjectReader",
    "Objects",
    "ObjectsInUse",
    "SourceUnreadable",
    "StorageFailed",
    "StorageFull",
    "StorageReadOnly",
]


class ObjectNotFound(ContextPlaneError):
    """No object of this digest is in the store."""

    code: ClassVar[str] = "object_not_found"
    family: ClassVar[Family] = "not_found"


class ObjectCorrupt(ContextPlaneError):
    """The bytes kept under this digest are not the bytes it names.

    They were truncated, damaged or tampered with.
    """

    code: ClassVar[str] = "object_corrupt"
    family: ClassVar[Family] = "untrusted"


class ObjectObstructed(ContextPlaneError):
    """Something that is not a readable file is in the place of this object."""

    code: ClassVar[str] = "object_obstructed"
    family: ClassVar[Family] = "failed"


class ObjectsInUse(ContextPlaneError):
    """Nothing can be collected now: another process is putting objects, and nothing refers to them yet."""

    code: ClassVar[str] = "objects_in_use"
    family: ClassVar[Family] = "conflict"


class SourceUnreadable(ContextPlaneError):
    """The file that should be put into the store cannot be read."""

    code: ClassVar[str] = "source_unreadable"
    family: ClassVar[Family] = "not_found"


class StorageFull(ContextPlaneError):
    """No room is left where the store lives. What was acknowledged before is kept."""

    code: ClassVar[str] = "storage_full"
    family: ClassVar[Family] = "failed"


class StorageReadOnly(ContextPlaneError):
    """The store cannot be written here: the disk is mounted read-only, or the permissions forbid it."""

    code: ClassVar[str] = "storage_read_only"
    family: ClassVar[Family] = "failed"


class StorageFailed(ContextPlaneError):
    """The storage under the store answered with an error of its own."""

    code: ClassVar[str] = "storage_failed"
    family: ClassVar[Family] = "failed"


class Batch(Protocol):
    """Many objects with one durability point: invisible before `commit`, all of them visible after.

    Several threads may put at once; `commit` waits for them.
    """

    def put(self, data: bytes) -> Digest: ...

    def put_stream(self, chunks: Iterable[bytes]) -> StoredObject: ...

    def put_path(self, path: str) -> StoredObject: ...

    def commit(self) -> None:
        """Return when everything put so far is durable and visible. The batch may go on afterwards.

        After a commit that failed nothing is known to be durable: the batch cannot be committed again.
        """
        ...


class ObjectReader(Protocol):
    """The part of `Objects` for callers that only read one object after another."""

    def has(self, digest: Digest) -> bool: ...

    def size(self, digest: Digest) -> int: ...

    def get(self, digest: Digest) -> bytes: ...

    def stream(self, digest: Digest) -> Iterator[bytes]: ...


class Objects(ObjectReader, Protocol):
    """Bytes, written once, kept under the digest of their content.

    - The name is the digest; putting the same bytes again changes nothing, succeeds, and heals a damaged copy.
    - `put*` is durable on return; in a batch, at its `commit`.
    - An object is never visible in part, even if the process is killed.
    - Reading verifies: `get` returns nothing that does not match its name; `stream` raises `ObjectCorrupt` after the
      last chunk at the latest, so a consumer that must not act on doubtful bytes waits for the end.
    - Memory does not grow with the size of an object in the `*_stream` and `put_path` forms.
    - Every failure is an error of this module, never one of the storage.
    """

    def put(self, data: bytes) -> Digest: ...

    def put_stream(self, chunks: Iterable[bytes]) -> StoredObject: ...

    def put_path(self, path: str) -> StoredObject:
        """Put a file. The bytes written are the bytes hashed: a file that changes meanwhile is still whole."""
        ...

    def batch(self) -> AbstractContextManager[Batch]:
        """A batch: leaving the block commits; an exception discards what was not committed.

        Within the block nothing at all is collected. A caller that commits, and makes something refer to what was put
        before the block is left, needs no other protection, not even for objects that were there before.
        """
        ...

    def write_time(self, digest: Digest) -> datetime:
        """When these bytes were last put, in UTC."""
        ...

    def check(self, digest: Digest) -> ObjectCondition:
        """Re-hash one object. Damage is a result here and not an error."""
        ...

    def names(self) -> Iterator[Digest]:
        """Every object, in ascending order of digest, in bounded memory."""
        ...

    def strays(self) -> Iterator[Stray]:
        """Everything among the objects that is not an object."""
        ...

    def collector(self) -> AbstractContextManager["Collector"]:
        """A collector: within the block objects can be removed, and no batch can begin.

        `ObjectsInUse` at once when a batch is open, without waiting: its owner may be waiting for a turn that we have.
        """
        ...

    def sweep(self, *, older_than: datetime, dry_run: bool = False) -> list[str]:
        """Remove leftovers of interrupted writes that are older; return their names."""
        ...


class Collector(Protocol):
    """The right to remove objects, within the block of `Objects.collector`."""

    def collect(self, digest: Digest, *, older_than: datetime) -> int | None:
        """Remove one object unless it was put at or after `older_than`.

        Return the bytes freed; None if it was kept.
        """
        ...
