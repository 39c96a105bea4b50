"""A session with the handoff packs of a folder.

It finds their store, opens it on use, and makes it at the first write. `open_handoffs` is entered once for many calls:
opening a store takes longer than a call. Packs of a reference server are imported into the store; where nothing can be
written, into memory, for as long as the session lives.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from contextplane.adapters.files.disk import storage_errors
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.handoff.place import RenamedFiles, current_provenance, handoff_place
from contextplane.app.platform import Platform, flush_pending_objects, open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.handoff.freshness import freshness, lifetime_payload, row_payload
from contextplane.handoff.reader import HandoffLimits, HandoffReader, SelectedPack, WriteResult, as_id, not_found
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogReadOnly
from contextplane.ports.objects import ObjectReader, StorageFull, StorageReadOnly

if TYPE_CHECKING:
    from contextplane.app.handoff.reference_root import ReferenceRoot
    from contextplane.handoff.document import SourcePlace
    from contextplane.handoff.import_ import ImportResult
    from contextplane.handoff.source import SourceReader
    from contextplane.handoff.writer import HandoffRepository
    from contextplane.model.handoff import HandoffProvenance
    from contextplane.ports.catalog import Catalog
    from contextplane.ports.objects import Objects

__all__ = [
    "HandoffSession",
    "InMemoryObjects",
    "ProcessIds",
    "SelectedPack",
    "WriteResult",
    "as_id",
    "freshness",
    "in_memory_catalog",
    "lifetime_payload",
    "open_handoffs",
    "row_payload",
]


class HandoffSession:
    """The handoff packs of a folder, with the clock and the source files that they refer to.

    `import_result`: the packs imported from the reference root, and why others were refused. `client`: the program that
    calls, as it names itself, for the provenance of what it writes.
    """

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self._settings = settings
        self._stack = stack
        place = handoff_place(settings)
        self._path, self._reference = place.store, place.reference
        self._source_root, self._checkout = place.source_root, place.checkout
        self._working_folder = place.working_folder
        handoff_settings = settings.handoff
        self.limits = HandoffLimits(
            grace_seconds=handoff_settings.grace_seconds,
            ttl_minutes=handoff_settings.ttl_minutes,
            max_pack_bytes=handoff_settings.max_pack_bytes,
            max_source_bytes=handoff_settings.max_source_bytes,
        )
        self._clock = SystemClock()
        self._root: ReferenceRoot | None = None
        self._memory_catalog: SqliteCatalog | None = None
        self._memory_objects: Objects | None = None
        self.client = ""
        self.platform: Platform | None = None
        self.import_result: ImportResult | None = None

    def now(self) -> Timestamp:
        return Timestamp.of(self._clock.now())

    def require_store(self, identity: str) -> Platform:
        """Return the store that was opened; while there is none, no pack is found."""
        if self.platform is None:
            raise not_found(identity)
        return self.platform

    def source_reader(self) -> "SourceReader":
        """Return a reader of the files below the source root, as they are now."""
        from contextplane.adapters.files.workspace import FileSources
        from contextplane.handoff.source import SourceReader

        sources = FileSources(self._source_root, excluded_store=self._path)
        renames = None if self._checkout is None else RenamedFiles(self._checkout, self._source_root).new_path
        return SourceReader(
            sources, self.limits.max_source_bytes, renamed_path=renames, working_folder=self._working_folder
        )

    @property
    def source_root(self) -> str:
        """The folder that refs point into."""
        return os.path.abspath(self._source_root)

    def source_place(self) -> "SourcePlace":
        """Return the source root, which absolute paths of a document may lead into."""
        from contextplane.handoff.document import SourcePlace

        return SourcePlace(root=os.path.abspath(self._source_root), relative_path=self._relative_path)

    def _relative_path(self, path: str) -> str | None:
        from contextplane.adapters.files.workspace import FileSources

        return FileSources(self._source_root).relative_path(path)

    @property
    def pack_reader(self) -> HandoffReader:
        """The packs, for reading only: what writing needs is not loaded. Empty while there is no store."""
        self._ensure_open()
        return HandoffReader(
            self._catalog(),
            cast("Objects", _LazyObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.source_reader,
            limits=self.limits,
        )

    @property
    def repository(self) -> "HandoffRepository":
        """The packs, for reading and writing. While there is no store it is empty; the first write makes one."""
        self._ensure_open()
        if self.platform is not None or self._memory_objects is not None:
            return self._open_repository()
        from contextplane.handoff.writer import UninitializedRepository

        return UninitializedRepository(
            self._catalog(),
            cast("Objects", _LazyObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.source_reader,
            limits=self.limits,
            provenance=self._provenance,
            make=self.create_store,
        )

    def _provenance(self) -> "HandoffProvenance":
        return current_provenance(self.client, self._checkout)

    def create_store(self) -> "HandoffRepository":
        """Make the store if there is none, and return its repository."""
        if self.platform is None:
            with storage_errors(self._path):
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
            from contextplane.app.init import init

            init(msgspec.structs.replace(self._settings, ctx_dir=self._path))
            self._open_store()
        return self._open_repository()

    def _ensure_open(self) -> None:
        """Open the store if it exists by now, and import new packs of the reference root."""
        if self.platform is None and os.path.isfile(os.path.join(self._path, "config.json")):
            self._open_store()
        self._import_reference_packs()

    def _open_store(self) -> None:
        settings = msgspec.structs.replace(self._settings, ctx_dir=self._path)
        self.platform = self._stack.enter_context(open_platform(settings, following=False))
        self._stack.callback(flush_pending_objects, self.platform)
        if self.limits.grace_seconds > HandoffLimits().grace_seconds:
            from contextplane.store.handoff_stream import record_grace_time

            # If it cannot be stored, it is tried again next time: reading must not fail for it.
            with suppress(ContextPlaneError):
                record_grace_time(self.platform.catalog, self.limits.grace_seconds, self.now())

    def _open_repository(self) -> "HandoffRepository":
        from contextplane.handoff.writer import HandoffRepository

        return HandoffRepository(
            self._catalog(),
            cast("Objects", _LazyObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.source_reader,
            limits=self.limits,
            provenance=self._provenance,
        )

    def _catalog(self) -> "Catalog":
        """Return the store's catalog; one in memory while there is no store, or if it cannot be written."""
        if self.platform is not None and self._memory_objects is None:
            return self.platform.catalog
        if self._memory_catalog is None:
            self._memory_catalog, _ = SqliteCatalog.create(MEMORY, "")
            self._stack.callback(self._memory_catalog.close)
        return self._memory_catalog

    def _objects(self) -> "Objects":
        if self._memory_objects is not None:
            return self._memory_objects
        if self.platform is not None:
            return self.platform.objects
        from contextplane.adapters.files.objects import FileObjects

        return FileObjects(os.path.join(self._path, "objects"))

    def _import_reference_packs(self) -> None:
        """Import new packs of the reference root. While nothing changes there, this costs one stat."""
        if self._memory_objects is not None or not os.path.isdir(os.path.join(self._reference, "packs")):
            return
        if self._root is None:
            from contextplane.app.handoff.reference_root import ReferenceRoot

            self._root = ReferenceRoot(self._reference, self.limits)
        root = self._root
        if root.is_unchanged(self._clock):
            return
        try:
            if self.platform is None and root.has_packs():
                self.create_store()
            if self.platform is None:
                self.import_result = root.listing_problem()
            else:
                self.import_result = root.import_new(self.platform.catalog, self._objects(), SystemIds(), self._clock)
        except (StorageReadOnly, StorageFull, CatalogReadOnly) as error:
            self._import_into_memory(root, error)  # reading must not fail for it

    def _import_into_memory(self, root: "ReferenceRoot", error: ContextPlaneError) -> None:
        """Import into memory, since the store cannot be written. Writing then fails with this error."""
        memory = in_memory_catalog(self.platform)
        if memory is None:
            self.import_result = root.import_failure(error)
            return
        self._stack.callback(memory.close)
        objects = cast("Objects", InMemoryObjects(self._objects()))
        self.import_result = root.import_new(memory, objects, ProcessIds(), self._clock)
        memory.seal(error)
        self._memory_catalog, self._memory_objects = memory, objects


class _LazyObjects:
    """Opens the object store on first use: a list of packs needs no object."""

    def __init__(self, load: "Callable[[], Objects]") -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  any member of Objects
        return getattr(self._load(), name)


@contextmanager
def open_handoffs(settings: Settings) -> Iterator[HandoffSession]:
    """Open a session with the handoff packs of a folder. Nothing is written before the first pack is."""
    with ExitStack() as stack:
        yield HandoffSession(settings, stack)


def in_memory_catalog(platform: Platform | None) -> SqliteCatalog | None:
    """Copy the store's catalog into memory. None if it is in a database, which is not copied."""
    if platform is None:
        return SqliteCatalog.create(MEMORY, "")[0]
    return platform.catalog.copy() if isinstance(platform.catalog, SqliteCatalog) else None


class InMemoryObjects:
    """The objects of a store, and those put here, which live in memory only."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._data: dict[Digest, bytes] = {}

    @contextmanager
    def batch(self) -> Iterator["InMemoryObjects"]:
        yield self

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        self._data[digest] = data
        return digest

    def commit(self) -> None:
        """Do nothing: these objects do not outlive the process."""

    def get(self, digest: Digest) -> bytes:
        data = self._data.get(digest)
        return self._objects.get(digest) if data is None else data


class ProcessIds(SystemIds):
    """Ids with one secret for as long as the process lives: a page token stays valid for the next call."""

    def secret(self) -> bytes:
        return _process_secret()


@cache
def _process_secret() -> bytes:
    return SystemIds().secret()
