"""Removing objects, one after the other, for whoever holds the lock of their folder alone."""

import os
import stat
from datetime import datetime

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.files.staging import Staging
from contextplane.model.ids import Digest

__all__ = ["FileCollecting"]


class FileCollecting:
    """The `Collecting` of a `FileObjects`."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk

    def collect(self, digest: Digest, *, older_than: datetime) -> int | None:
        place = self._staging.place(digest)
        with storage_errors(place):
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(found.st_mode) or found.st_mtime >= older_than.timestamp():
                return None
            self._disk.remove(place)
            return found.st_size
