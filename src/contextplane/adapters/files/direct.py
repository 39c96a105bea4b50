"""Writing large bytes without a copy in the page cache, where the system can: they are synced soon anyway.

Memory for such a write must begin at a page, so it goes through a few buffers that do and are used again.
"""

import errno
import fcntl
import mmap
import os

from contextplane.adapters.files.disk import Disk

__all__ = ["DirectWriter"]

_BUFFER = 1 << 20
_PAGE = 4096
_WORTH_IT = 256 << 10
_KEPT = 8


class DirectWriter:
    """Writes a file from its beginning. Several threads may use it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._buffers: list[mmap.mmap] = []

    def write_all(self, fd: int, data: bytes) -> None:
        """Write every byte: of large bytes whole pages directly, and whatever cannot be written so as usual."""
        if len(data) < _WORTH_IT or not hasattr(os, "O_DIRECT"):
            self._disk.write_all(fd, data)
        else:
            self._disk.write_all(fd, memoryview(data)[self._pages(fd, data) :])

    def _pages(self, fd: int, data: bytes) -> int:
        """Write as many whole pages as can be; how many bytes that were. Afterwards writing is as usual again."""
        try:
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)
        except OSError:
            return 0  # not on this file system
        buffer = self._buffer()
        done = 0
        try:
            with memoryview(data) as source, memoryview(buffer) as target:
                while length := min(len(data) - done, _BUFFER) // _PAGE * _PAGE:
                    target[:length] = source[done : done + length]
                    written = self._disk.write(fd, target[:length])
                    done += written
                    if written < length:
                        break  # what is wrong, the usual way of writing tells
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            fcntl.fcntl(fd, fcntl.F_SETFL, 0)
            if len(self._buffers) < _KEPT:
                self._buffers.append(buffer)
        return done

    def _buffer(self) -> mmap.mmap:
        try:
            return self._buffers.pop()
        except IndexError:  # asked first, another thread could take the last one between
            return mmap.mmap(-1, _BUFFER)
