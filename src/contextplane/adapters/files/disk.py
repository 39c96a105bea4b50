"""The few system calls through which everything here reaches a disk, and the translation of their errors.

One seam: a test hands in a Disk that fails or kills at the n-th call, and so walks through every moment of a write.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from contextplane.errors import ContextPlaneError
from contextplane.ports.objects import ObjectObstructed, StorageFailed, StorageFull, StorageReadOnly

__all__ = ["Disk", "fresh_name", "open_to_read", "storage_errors", "write_whole"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Disk:
    """Writes, each one system call, in the order in which they are made."""

    def create(self, path: str, mode: int) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def make_folder(self, path: str, mode: int = 0o777) -> bool:
        """Make one folder; say whether it was not there before."""
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            if os.path.isdir(path):
                return False
            raise
        return True

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def touch(self, path: str) -> None:
        os.utime(path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def write_all(self, fd: int, data: bytes | memoryview) -> None:
        """Write every byte, however few the system takes at a time."""
        view = memoryview(data)
        while view:
            view = view[self.write(fd, view) :]


def open_to_read(path: str) -> int:
    """Open a regular file. A link is not followed, a pipe is not waited for: neither is a file of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        if stat.S_ISREG(os.lstat(path).st_mode):
            raise
        raise _obstructed(path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _obstructed(path)
    return fd


def fresh_name() -> str:
    """A name in a staging folder that nobody else uses."""
    return f"{os.getpid()}-{os.urandom(8).hex()}"


def write_whole(path: str, data: bytes, *, staging: str, disk: Disk) -> None:
    """Write a small file whole or not at all, durably; whatever stood there under that name is replaced."""
    staged = os.path.join(staging, fresh_name())
    fd = disk.create(staged, 0o644)
    try:
        try:
            disk.write_all(fd, data)
            disk.sync(fd)
        finally:
            os.close(fd)
        disk.replace(staged, path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what counts
            disk.remove(staged)
        raise
    disk.sync_folder(os.path.dirname(path))


@contextmanager
def storage_errors(place: str, *, reading: bool = False) -> Iterator[None]:
    """Turn what the system raises into an error with a code, a place and a way out."""
    try:
        yield
    except OSError as error:
        raise _translated(error, place, reading=reading) from error


def _translated(error: OSError, place: str, *, reading: bool) -> ContextPlaneError:
    at = str(error.filename or place)
    reason = error.strerror or str(error)
    if reading:
        return StorageFailed(f"cannot be read: {reason}", at=at, hint="check what lies there, and its permissions")
    if error.errno in _FULL:
        return StorageFull(
            f"no room to write: {reason}", at=at, hint="free some space, then run the same command again"
        )
    if error.errno in _READ_ONLY:
        return StorageReadOnly(
            f"not writable: {reason}", at=at, hint="check the mount and the permissions of the folder"
        )
    return StorageFailed(f"cannot be written: {reason}", at=at, hint="check what lies there")


def _obstructed(path: str) -> ObjectObstructed:
    return ObjectObstructed("something that is not a file stands in this place", at=path, hint="move it aside")
