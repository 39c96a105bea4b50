"""A store as two programs share it: the reference program writes packs into it, and ours looks after it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects
from contextplane.store.damage import FsckFinding
from contextplane.store.fsck import fsck
from contextplane.store.gc import GcResult, gc
from contextplane.store.index import catch_up
from contextplane.store.rebuild import rebuild
from tests.support.reference_store import ReferenceStore

__all__ = ["FAR_AHEAD", "LONG_AGO", "World", "passing_world", "world_in"]

LONG_AGO = datetime(2001, 9, 9, tzinfo=UTC)
FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


class World:
    """The store, opened, and the other program beside it."""

    def __init__(self, other: ReferenceStore, platform: Platform) -> None:
        self.other = other
        self.platform = platform
        self.path = other.path

    def place(self, digest: Digest) -> Path:
        return self.path / "objects" / digest.hex[:2] / digest.hex[2:]

    def pack(self, *outputs: bytes, parent: str = "", prompt: bytes = b"You are careful.") -> Digest:
        """A pack that the other program makes, and that we do not know of yet."""
        return Digest(
            self.other.pack(outputs={f"{n}.md": data for n, data in enumerate(outputs)}, parent=parent, prompt=prompt)
        )

    def register(self, manifest: bytes) -> Digest:
        """Any bytes at all, stored and registered as if they were a manifest."""
        digest = Digest.parse(self.other.blob(manifest))
        (self.path / "packs" / digest.hex).write_bytes(str(digest).encode())
        return digest

    def unregister(self, digest: Digest) -> None:
        (self.path / "packs" / digest.hex).unlink()

    def rebuild(self) -> None:
        rebuild(self.platform.catalog, self.platform.entries, self.platform.objects)

    def record_blob(self, data: bytes, *, written: datetime | None = LONG_AGO) -> Digest:
        """An object that we wrote and recorded, and that nothing refers to."""
        digest = self.platform.objects.put(data)
        with self.platform.catalog.write(survives="crash") as tx:
            tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(data), traced=True))
        if written is not None:
            self.age(digest, written)
        return digest

    def age(self, digest: Digest, written: datetime = LONG_AGO) -> None:
        os.utime(self.place(digest), (written.timestamp(), written.timestamp()))

    def damage(self, digest: Digest, data: bytes) -> None:
        self.place(digest).chmod(0o644)
        self.place(digest).write_bytes(data)

    def catch_up(self) -> None:
        catch_up(self.platform.catalog, self.platform.entries, self.platform.objects)

    def findings(self) -> list[FsckFinding]:
        return list(
            fsck(self.platform.catalog, self.platform.entries, self.platform.objects, lambda _size, _count: None)
        )

    def gc(
        self, *, older_than: datetime = FAR_AHEAD, dry_run: bool = False, objects: Objects | None = None
    ) -> GcResult:
        platform = self.platform
        return gc(
            platform.catalog, platform.entries, objects or platform.objects, older_than=older_than, dry_run=dry_run
        )

    def roots(self) -> list[str]:
        with self.platform.catalog.read() as view:
            return [name for name, _ in view.objects.roots()]


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    """A store that the reference program made and that we adopted."""
    other = ReferenceStore(folder)
    settings = Settings(cwd=str(folder))
    init(settings, ".")
    with open_platform(settings) as platform:
        yield World(other, platform)


@contextmanager
def passing_world() -> Iterator[World]:
    """One for a single example of many: in memory where there is some, and gone with it."""
    memory = "/dev/shm"  # noqa: S108  a folder of our own is made in it
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder, world_in(Path(folder)) as world:
        yield world
