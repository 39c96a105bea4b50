"""Handoff packs of a place: which store they are in, opened when it is needed and made at the first write.

`opened_desk` is entered once for as long as somebody works with packs: opening a store takes longer than a call.

Packs that can be read where nothing can be written: they are held in memory for as long as somebody reads them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from contextplane.adapters.files.disk import storage_errors
from contextplane.adapters.files.store_dir import NAME, REFERENCE_ROOT, StoreNotFound, discover
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.platform import Platform, opened, settle_waiting
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.handoff.reader import HandoffLimits, ReadingShelf
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogReadOnly
from contextplane.ports.objects import ObjectReader, StorageFull, StorageReadOnly

if TYPE_CHECKING:
    from contextplane.app.handoff.import_ import ReferenceRoot
    from contextplane.handoff.import_ import Taken
    from contextplane.handoff.source import SourceReader
    from contextplane.handoff.writer import Shelf
    from contextplane.ports.catalog import Catalog
    from contextplane.ports.objects import Objects

__all__ = ["Desk", "HeldIds", "HeldObjects", "handoff_store", "held_catalog", "opened_desk"]


def handoff_store(settings: Settings) -> tuple[str, str]:
    """The store of handoff packs, which may not be there yet, and the reference root whose packs are taken in."""
    if settings.handoff.root is not None:
        root = os.path.abspath(os.path.join(settings.cwd, settings.handoff.root))
        return os.path.join(root, NAME), root
    reference = os.path.join(os.path.abspath(settings.cwd), REFERENCE_ROOT)
    if settings.ctx_dir is None and os.path.lexists(os.path.join(reference, NAME, "config.json")):
        # Whatever store is made around it later: what agents wrote stays where it was.
        return os.path.join(reference, NAME), reference
    try:
        return discover(settings.cwd, settings.ctx_dir).path, reference
    except StoreNotFound:
        named = settings.ctx_dir and os.path.abspath(os.path.join(settings.cwd, settings.ctx_dir))
        return named or os.path.join(reference, NAME), reference


class Desk:
    """What whoever works with handoff packs needs: the shelf, the time, and the code that refs lead to.

    `taken`: what was found in the reference root, and why some of it could not be taken in.
    """

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._path, self._reference = handoff_store(settings)
        handoff_settings = settings.handoff
        self.limits = HandoffLimits(
            grace_seconds=handoff_settings.grace_seconds,
            max_pack_bytes=handoff_settings.max_pack_bytes,
            max_source_bytes=handoff_settings.max_source_bytes,
        )
        self._source_root = os.path.join(settings.cwd, handoff_settings.source_root or ".")
        self._clock = SystemClock()
        self._root: ReferenceRoot | None = None
        self._memory: SqliteCatalog | None = None
        self._held: Objects | None = None
        self.platform: Platform | None = None
        self.taken: Taken | None = None

    def now(self) -> Timestamp:
        return Timestamp.of(self._clock.now())

    def reader(self) -> "SourceReader":
        """The files below the source root, as they are now."""
        from contextplane.adapters.files.workspace import FileSources
        from contextplane.handoff.source import SourceReader

        return SourceReader(FileSources(self._source_root, apart=self._path), self.limits.max_source_bytes)

    @property
    def reading(self) -> ReadingShelf:
        """The packs of this place, to be read: what writing needs is not loaded. Without a store there are none."""
        self._find()
        return ReadingShelf(
            self._catalog(),
            cast("Objects", _LateObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.reader,
            limits=self.limits,
        )

    @property
    def shelf(self) -> "Shelf":
        """The packs of this place. Where there is no store yet, an empty shelf, whose first write makes one."""
        self._find()
        if self.platform is not None or self._held is not None:
            return self._shelf()
        from contextplane.app.handoff.uninitialized import FirstShelf

        return FirstShelf(
            self._catalog(),
            cast("Objects", _LateObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.reader,
            limits=self.limits,
            make=self.make,
        )

    def make(self) -> "Shelf":
        """The shelf in a store that can be written, which is made if need be."""
        if self.platform is None:
            with storage_errors(self._path):
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
            from contextplane.app.init import init

            init(msgspec.structs.replace(self._settings, ctx_dir=self._path))
            self._open()
        return self._shelf()

    def _find(self) -> None:
        """Open the store when it is there by now, and take in what came to the reference root."""
        if self.platform is None and os.path.isfile(os.path.join(self._path, "config.json")):
            self._open()
        self._bring_in()

    def _open(self) -> None:
        settings = msgspec.structs.replace(self._settings, ctx_dir=self._path)
        self.platform = self._stack.enter_context(opened(settings, following=False))
        self._stack.callback(settle_waiting, self.platform)
        if self.limits.grace_seconds > HandoffLimits().grace_seconds:
            from contextplane.handoff.storage import tell_grace

            # Where it cannot be written down, it is tried again next time: nobody is refused to read for it.
            with suppress(ContextPlaneError):
                tell_grace(self.platform.catalog, self.limits.grace_seconds, self.now())

    def _shelf(self) -> "Shelf":
        from contextplane.handoff.writer import Shelf

        return Shelf(
            self._catalog(),
            cast("Objects", _LateObjects(self._objects)),
            clock=self._clock,
            ids=SystemIds(),
            reader_factory=self.reader,
            limits=self.limits,
        )

    def _catalog(self) -> "Catalog":
        """The store's, or an empty one while there is none. What cannot be stored is read from one in memory."""
        if self.platform is not None and self._held is None:
            return self.platform.catalog
        if self._memory is None:
            self._memory, _ = SqliteCatalog.create(MEMORY, "")
            self._stack.callback(self._memory.close)
        return self._memory

    def _objects(self) -> "Objects":
        if self._held is not None:
            return self._held
        if self.platform is not None:
            return self.platform.objects
        from contextplane.adapters.files.objects import FileObjects

        return FileObjects(os.path.join(self._path, "objects"))

    def _bring_in(self) -> None:
        """Take in what came to the reference root. While nothing changes there, that is one look at its time."""
        if self._held is not None or not os.path.isdir(os.path.join(self._reference, "packs")):
            return
        if self._root is None:
            from contextplane.app.handoff.import_ import ReferenceRoot

            self._root = ReferenceRoot(self._reference, self.limits)
        root = self._root
        if root.quiet(self._clock):
            return
        try:
            if self.platform is None and root.holds_any():
                self.make()
            if self.platform is None:
                self.taken = root.unlisted()
            else:
                self.taken = root.bring_in(self.platform.catalog, self._objects(), SystemIds(), self._clock)
        except (StorageReadOnly, StorageFull, CatalogReadOnly) as error:
            self._hold(root, error)  # whoever only reads is not refused for it

    def _hold(self, root: "ReferenceRoot", error: ContextPlaneError) -> None:
        """Read what is there from memory, since it cannot be stored. Whoever writes is told why it cannot."""
        memory = held_catalog(self.platform)
        if memory is None:
            self.taken = root.untaken(error)
            return
        self._stack.callback(memory.close)
        held = cast("Objects", HeldObjects(self._objects()))
        self.taken = root.bring_in(memory, held, HeldIds(), self._clock)
        memory.seal(error)
        self._memory, self._held = memory, held


class _LateObjects:
    """Objects that are loaded when they are first asked for: a list of packs needs none of them."""

    def __init__(self, load: "Callable[[], Objects]") -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the objects have
        return getattr(self._load(), name)


@contextmanager
def opened_desk(settings: Settings) -> Iterator[Desk]:
    """Work with the handoff packs of a place. Nothing is made on disk before the first write."""
    with ExitStack() as stack:
        yield Desk(settings, stack)


def held_catalog(platform: Platform | None) -> SqliteCatalog | None:
    """A catalog in memory, with all that the store has. None when the store's is in a database, which is not copied."""
    if platform is None:
        return SqliteCatalog.create(MEMORY, "")[0]
    return platform.catalog.copy() if isinstance(platform.catalog, SqliteCatalog) else None


class HeldObjects:
    """Objects of a place, and beside them those that were put here, which are gone with it."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._held: dict[Digest, bytes] = {}

    @contextmanager
    def batch(self) -> Iterator["HeldObjects"]:
        yield self

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        self._held[digest] = data
        return digest

    def commit(self) -> None:
        """Nothing here outlives the process, so nothing is made durable."""

    def get(self, digest: Digest) -> bytes:
        held = self._held.get(digest)
        return self._objects.get(digest) if held is None else held


class HeldIds(SystemIds):
    """The same secret for as long as the process lives: a page token is good for the next call, too."""

    def secret(self) -> bytes:
        return _secret()


@cache
def _secret() -> bytes:
    return SystemIds().secret()
