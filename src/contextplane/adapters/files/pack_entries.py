"""Registered execution packs as files: `packs/<64 hex>`. Only the name counts; other programs write here too."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from contextplane.adapters.files.disk import Disk, changed_at, open_to_read, storage_errors, write_whole
from contextplane.model.execution.manifest import MANIFEST_MOST, same_but_hash
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectObstructed, StorageFailed
from contextplane.ports.world import Clock

__all__ = ["ENTRY_MOST", "FileExecutionEntries"]

ENTRY_MOST = MANIFEST_MOST + len(',"hash":"sha256:"') + 64
"""No copy of a manifest is larger: its own hash is filled in."""

_NAME = re.compile(r"[0-9a-f]{64}")
_SETTLED = 2.0


class FileExecutionEntries:
    """The `ExecutionEntries` port on the folder `packs/`. New entries are staged in a folder of the same disk."""

    def __init__(self, root: str, staging: str, clock: Clock, disk: Disk | None = None) -> None:
        self._root = root
        self._staging = staging
        self._clock = clock
        self._disk = disk or Disk()

    def state(self) -> str | None:
        """The folder's time of change, once it is old enough that a later change must show a different one.

        File systems count time in ticks: an entry added within the tick in which we looked would not move the time.
        """
        try:
            changed = os.stat(self._root)
        except FileNotFoundError:
            return "absent"
        settled = self._clock.now().timestamp() - changed.st_mtime > _SETTLED
        return str(changed.st_mtime_ns) if settled else None

    def add(self, digest: Digest, copy: bytes) -> bool:
        path = os.path.join(self._root, digest.hex)
        with storage_errors(path):
            if not os.path.lexists(path):
                with suppress(FileExistsError):  # of several at once, one makes it
                    write_whole(path, copy, staging=self._staging, disk=self._disk, new=True)
                    return True
            try:
                fd = open_to_read(path)
            except (OSError, ObjectObstructed):
                fd = None  # in the way: then it is replaced, or that is told
            if fd is None or not self._kept(fd, digest, copy):
                write_whole(path, copy, staging=self._staging, disk=self._disk)
            else:
                self._disk.sync_folder(self._root)
        return False

    def names(self) -> Iterator[Digest]:
        for name in self._listed():
            if _NAME.fullmatch(name):
                yield Digest(name)

    def added_at(self, digest: Digest) -> datetime:
        try:
            return changed_at(os.lstat(os.path.join(self._root, digest.hex)))
        except OSError:
            return datetime.min.replace(tzinfo=UTC)

    def strays(self) -> Iterator[str]:
        for name in self._listed():
            if not _NAME.fullmatch(name):
                yield name

    def read(self, digest: Digest) -> bytes | None:
        path = os.path.join(self._root, digest.hex)
        with storage_errors(path, reading=True):
            try:
                fd = open_to_read(path)
            except FileNotFoundError:
                return None
            with open(fd, "rb") as file:
                if os.fstat(fd).st_size > ENTRY_MOST:
                    raise StorageFailed("larger than any manifest", at=path)
                return file.read()

    def _kept(self, fd: int, digest: Digest, copy: bytes) -> bool:
        """Whether an entry is a copy of this manifest, in whatever form, and durable; the descriptor is closed."""
        with open(fd, "rb") as file:
            if not same_but_hash(file.read(ENTRY_MOST), copy, digest):
                return False
            # Whoever wrote it may not have synced it, and we are about to say that it is there.
            self._disk.sync(fd)
            return True

    def _listed(self) -> list[str]:
        with storage_errors(self._root, reading=True):
            try:
                return sorted(os.listdir(self._root))
            except FileNotFoundError:
                return []
