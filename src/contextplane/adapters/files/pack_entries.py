"""Registered execution packs as files: `packs/<64 hex>`.

Only the name of an entry is relied upon, because other programs write here too.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from contextplane.adapters.files.disk import (
    Disk,
    modification_time,
    open_regular_file,
    storage_errors,
    write_atomically,
)
from contextplane.model.execution.references import MAX_MANIFEST_BYTES, is_entry_of
from contextplane.model.ids import Digest, is_sha256
from contextplane.ports.objects import ObjectObstructed, StorageFailed
from contextplane.ports.world import Clock

__all__ = ["MAX_ENTRY_BYTES", "FileExecutionEntries"]

MAX_ENTRY_BYTES = MAX_MANIFEST_BYTES + len(',"hash":"sha256:"') + 64
"""The size limit of an entry: a manifest with its own hash filled in."""

_SETTLE_SECONDS = 2.0


class FileExecutionEntries:
    """The `ExecutionEntries` port on the folder `packs/`. `staging` is a folder on the same disk."""

    def __init__(self, root: str, staging: str, clock: Clock, disk: Disk | None = None) -> None:
        self._root = root
        self._staging = staging
        self._clock = clock
        self._disk = disk or Disk()

    def state(self) -> str | None:
        """Return the folder's modification time once it is so old that any later change must alter it.

        File systems count time in ticks: an entry added within the current tick would not change the time.
        """
        try:
            status = os.stat(self._root)
        except FileNotFoundError:
            return "absent"
        settled = self._clock.now().timestamp() - status.st_mtime > _SETTLE_SECONDS
        return str(status.st_mtime_ns) if settled else None

    def add(self, digest: Digest, copy: bytes) -> bool:
        path = os.path.join(self._root, digest.hex)
        with storage_errors(path):
            if not os.path.lexists(path):
                with suppress(FileExistsError):  # of several at once, one creates it
                    write_atomically(path, copy, staging=self._staging, disk=self._disk, new=True)
                    return True
            try:
                fd = open_regular_file(path)
            except (OSError, ObjectObstructed):
                fd = None  # an obstacle: replaced below, or reported
            if fd is None or not self._is_durable_copy(fd, digest, copy):
                write_atomically(path, copy, staging=self._staging, disk=self._disk)
            else:
                self._disk.sync_folder(self._root)
        return False

    def names(self) -> Iterator[Digest]:
        for name in self._list_names():
            if is_sha256(name):
                yield Digest(name)

    def registration_time(self, digest: Digest) -> datetime:
        try:
            return modification_time(os.lstat(os.path.join(self._root, digest.hex)))
        except OSError:
            return datetime.min.replace(tzinfo=UTC)

    def strays(self) -> Iterator[str]:
        for name in self._list_names():
            if not is_sha256(name):
                yield name

    def read(self, digest: Digest) -> bytes | None:
        path = os.path.join(self._root, digest.hex)
        with storage_errors(path, reading=True):
            try:
                fd = open_regular_file(path)
            except FileNotFoundError:
                return None
            with open(fd, "rb") as file:
                if os.fstat(fd).st_size > MAX_ENTRY_BYTES:
                    raise StorageFailed("larger than any manifest", at=path)
                return file.read()

    def _is_durable_copy(self, fd: int, digest: Digest, copy: bytes) -> bool:
        """Whether an entry is a copy of this manifest in any form; if so, sync it. Closes `fd`."""
        with open(fd, "rb") as file:
            if not is_entry_of(file.read(MAX_ENTRY_BYTES), copy, digest):
                return False
            # The process that wrote it may not have synced it, and we are about to report it as stored.
            self._disk.sync(fd)
            return True

    def _list_names(self) -> list[str]:
        with storage_errors(self._root, reading=True):
            try:
                return sorted(os.listdir(self._root))
            except FileNotFoundError:
                return []
