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
    """At most one thread that syncs the file system of a folder. Several threads may ask for it."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._busy = _thread.allocate_lock()
        self._fd = -1

    def begin(self) -> None:
        """Begin once more, if it is not still at it."""
        begun = False
        if not self._busy.acquire(blocking=False):
            return
        try:
            with suppress(OSError, RuntimeError):  # no descriptor left, or no thread
                if self._fd < 0:
                    self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _thread.start_new_thread(self._work, ())
                begun = True
        finally:
            if not begun:
                self._busy.release()

    def close(self) -> None:
        """Wait for it to end."""
        with self._busy:
            if self._fd >= 0:
                os.close(self._fd)

    def _work(self) -> None:
        try:
            with suppress(OSError):
                self._disk.sync_early(self._fd)
        finally:
            self._busy.release()
