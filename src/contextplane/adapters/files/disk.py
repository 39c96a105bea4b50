"""The few system calls through which everything here reaches a disk, and the translation of their errors.

One seam: a test hands in a Disk that fails or kills at the n-th call, and so walks through every moment of a write.

A lock on a store's catalog: shared by all who have it open, held alone by whoever puts another in its place.

Reading, hashing and writing at the same time, in bounded memory: one producer, one hash, nothing more.
"""

import errno
import fcntl
import itertools
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Protocol

from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogBusy
from contextplane.ports.objects import ObjectObstructed, StorageFailed, StorageFull, StorageReadOnly

__all__ = [
    "CHUNK",
    "Disk",
    "Hasher",
    "changed_at",
    "chunks_of",
    "fresh_name",
    "guarded",
    "hashed",
    "open_to_read",
    "storage_errors",
    "write_whole",
]

_NUMBERS = 1 << 64
_numbers = itertools.count(int.from_bytes(os.urandom(8)))

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ONE_NAME = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
_NO_NAMELESS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})
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

    def can_sync_all(self, fd: int) -> bool:
        """Whether `sync_all` can stand for syncing each file and folder on the file system of this descriptor."""
        # Here and not above: only a large batch needs it, and most commands start without.
        from contextplane.adapters.files.sync import can_sync_all  # noqa: PLC0415

        return can_sync_all(fd)

    def sync_all(self, fd: int) -> None:
        """Sync everything that was written to the file system of a descriptor which was opened before."""
        from contextplane.adapters.files.sync import sync_all  # noqa: PLC0415  as above

        sync_all(fd)

    def sync_early(self, fd: int) -> None:
        """The same while more is being written, so that the next sync finds less. Nobody relies on it."""
        from contextplane.adapters.files.sync import sync_all  # noqa: PLC0415  as above

        sync_all(fd)

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

    def rename_new(self, source: str, target: str) -> None:
        """Rename a file and replace nothing. Where a file can have one name only, that is looked at before."""
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _ONE_NAME:
                raise
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
            os.replace(source, target)
            return
        os.unlink(source)

    def create_nameless(self, folder: str, mode: int) -> int | None:
        """Begin a file in a folder that has no name there and goes with its descriptor; None where that cannot be."""
        if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
            return None
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                return None
            raise

    def name_new(self, fd: int, target: str) -> None:
        """Give a nameless file its name, and replace nothing."""
        # Only a call that is relative to a descriptor follows the link to the file, though the path is absolute.
        os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)

    def touch(self, path: str) -> None:
        os.utime(path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def write_all(self, fd: int, data: bytes | memoryview) -> None:
        """Write every byte, however few the system takes at a time."""
        written = self.write(fd, data)
        while written < len(data):
            written += self.write(fd, memoryview(data)[written:])


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
    """A name in a staging folder that nobody else uses: of this process, counted from a number drawn by lot."""
    return f"{os.getpid()}-{next(_numbers) % _NUMBERS:016x}"


def write_whole(path: str, data: bytes, *, staging: str, disk: Disk, new: bool = False) -> None:
    """Write a small file whole or not at all, durably; what stood there under that name is replaced, if not `new`."""
    staged = os.path.join(staging, fresh_name())
    try:
        fd = disk.create(staged, 0o644)
        try:
            try:
                disk.write_all(fd, data)
                disk.sync(fd)
            finally:
                os.close(fd)
            (disk.rename_new if new else disk.replace)(staged, path)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what counts
                disk.remove(staged)
            raise
        disk.sync_folder(os.path.dirname(path))
    except OSError as error:
        if error.filename != staged:  # a name that nobody knows of
            raise
        raise OSError(error.errno, error.strerror, path) from error


class storage_errors:  # noqa: N801  used like a function; a generator would cost more than the calls it guards
    """Turn what the system raises into an error with a code, a place and a way out."""

    __slots__ = ("_place", "_reading")

    def __init__(self, place: str, *, reading: bool = False) -> None:
        self._place = place
        self._reading = reading

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _translated(error, self._place, reading=self._reading) from error


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


_ROUND = 0.05


@contextmanager
def guarded(path: str, *, alone: bool, patience: float) -> Iterator[None]:
    """Hold the lock file `path`. Where it cannot be made because nothing can be written, there is nothing to guard."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        if alone:
            raise
        yield
        return
    try:
        _take(fd, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, path, patience)
        yield
    finally:
        os.close(fd)


def _take(fd: int, how: int, path: str, patience: float) -> None:
    """Ask again and again instead of waiting in the system, which could not be given up."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise CatalogBusy(
                    "another process has the catalog open", at=path, hint="try again when it has finished"
                ) from error
            time.sleep(_ROUND)
        else:
            return


CHUNK = 1 << 20
_AHEAD = 8


class Hasher(Protocol):
    """A running hash, as hashlib gives it."""

    def update(self, data: bytes, /) -> None: ...


def chunks_of(fd: int) -> Iterator[bytes]:
    """Read a descriptor to its end. A pipe gives what it has, so a slow writer does not hold back what came."""
    while chunk := os.read(fd, CHUNK):
        yield chunk


def hashed(chunks: Iterable[bytes], hasher: Hasher) -> Iterator[bytes]:
    """Pass chunks on unchanged while another thread hashes them; at the end the hash has seen every one.

    Hashing, reading and writing all release the interpreter, so the three run side by side. The first chunk is held
    back until a second one exists: a stream of one chunk needs no thread. A producer may use its buffer again: what is
    not `bytes` is copied first.
    """
    source = map(_own, chunks)
    first = list(islice(source, 2))
    if len(first) < 2:  # noqa: PLR2004
        for chunk in first:
            hasher.update(chunk)
        yield from first
        return
    # Here and not above: most of what is read is one chunk.
    import queue  # noqa: PLC0415
    import threading  # noqa: PLC0415

    todo: queue.Queue[bytes | None] = queue.Queue(_AHEAD)

    def work() -> None:
        while (chunk := todo.get()) is not None:
            hasher.update(chunk)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for chunk in chain(first, source):
            todo.put(chunk)
            yield chunk
    finally:
        todo.put(None)
        thread.join()


def _own(chunk: object) -> bytes:
    if type(chunk) is bytes:
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        return bytes(chunk)
    raise TypeError(f"a chunk of a stream is bytes, not {type(chunk).__name__}")


_FIRST = datetime.min.replace(tzinfo=UTC)


_LAST = datetime.max.replace(tzinfo=UTC)


def changed_at(found: os.stat_result) -> datetime:
    """A time before the year 1 is the first moment that there is, one after 9999 the last."""
    try:
        return datetime.fromtimestamp(found.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return _FIRST if found.st_mtime < 0 else _LAST
