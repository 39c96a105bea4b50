"""Writing out early: while a large batch is still being staged, what is staged already goes to the disk.

Nobody relies on it: a commit syncs all, and then finds little left to do. So what fails here fails in silence; the
system tells a failed write-out to every descriptor that was open before, and a commit has one of its own.
"""

import _thread  # and not `threading`: nothing of that is needed, and it takes time to load
import os
from contextlib import suppress

from contextplane.adapters.files.disk import Disk

__all__ = ["EarlyWriting"]


class EarlyWriting:
    """A thread that syncs the file system of a folder, and ends. Several threads may ask for it, one works at a time.

    The thread itself takes the lock: whoever is interrupted while it begins leaves nothing that others wait for.
    """

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._busy = _thread.allocate_lock()
        self._closed = False

    def begin(self) -> None:
        """Begin once more, if it is not still at it."""
        if not self._busy.locked():
            with suppress(RuntimeError):  # no thread left
                _thread.start_new_thread(self._work, ())

    def close(self) -> None:
        """Wait for it to end. One that was begun and is not at it yet finds nothing to do."""
        with self._busy:
            self._closed = True

    def _work(self) -> None:
        with self._busy, suppress(OSError):
            if self._closed:
                return
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._disk.sync_early(fd)
            finally:
                os.close(fd)
