"""The system calls that write to a disk, and the translation of their errors.

`Disk` is the seam for tests: one that fails, or kills the process, at the n-th call walks through every moment of a
write. Also here: atomic writes of small files, the lock of a catalog, and hashing while a stream is copied.
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
    "exposure",
    "hash_while_streaming",
    "hold_lock",
    "hold_turn",
    "modification_time",
    "open_regular_file",
    "read_chunks",
    "staging_name",
    "storage_errors",
    "write_atomically",
]

CHUNK = 1 << 20
_MAX_QUEUED_CHUNKS = 8
_POLL_SECONDS = 0.05
_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
_NAMES = 1 << 64
_OTHERS = 0o077
_name_counter = itertools.count(int.from_bytes(os.urandom(8)))

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
_NO_NAMELESS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class Disk:
    """Calls that change a disk. Each is one system call, and none is delayed or reordered."""

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
        """Whether `sync_all` is as good as a sync of each file and folder on this file system."""
        # Imported late: only a large batch needs it, and most commands have none.
        from contextplane.adapters.files.syncfs import can_sync_all  # noqa: PLC0415

        return can_sync_all(fd)

    def sync_all(self, fd: int) -> None:
        """Sync everything written to the file system of `fd`, which was opened before the writes."""
        from contextplane.adapters.files.syncfs import sync_all  # noqa: PLC0415  as above

        sync_all(fd)

    def sync_early(self, fd: int) -> None:
        """Do the same while more is being written, so that the next sync takes less time."""
        from contextplane.adapters.files.syncfs import sync_all  # noqa: PLC0415  as above

        sync_all(fd)

    def make_folder(self, path: str, mode: int = 0o777) -> bool:
        """Create a folder; return whether it is new."""
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
        """Rename a file without replacing one. Where hard links are not supported, check for it first."""
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
            os.replace(source, target)
            return
        os.unlink(source)

    def create_nameless(self, folder: str, mode: int) -> int | None:
        """Create a file without a name, which lives as long as its descriptor; None where unsupported."""
        if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
            return None
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                return None
            raise

    def name_new(self, fd: int, target: str) -> None:
        """Give a nameless file its name, without replacing a file."""
        # The link is followed only by a call relative to a descriptor, though the path is absolute.
        os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)

    def touch(self, path: str) -> None:
        os.utime(path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def write_all(self, fd: int, data: bytes | memoryview) -> None:
        """Write every byte, in as many calls as the system needs."""
        written = self.write(fd, data)
        while written < len(data):
            written += self.write(fd, memoryview(data)[written:])


def open_regular_file(path: str) -> int:
    """Open a regular file to read. No link is followed and no pipe waited for: a store has neither."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        if stat.S_ISREG(os.lstat(path).st_mode):
            raise
        raise _obstruction(path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _obstruction(path)
    return fd


def exposure(status: os.stat_result) -> str | None:
    """Return why a file or folder is not private to this user: its mode, or its owner; None if it is."""
    if status.st_mode & _OTHERS:
        return f"others can reach it (mode {stat.S_IMODE(status.st_mode):o})"
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    return None


def staging_name() -> str:
    """Return a unique name for a staging folder: the process id, and a counter from a random start."""
    return f"{os.getpid()}-{next(_name_counter) % _NAMES:016x}"


def write_atomically(  # noqa: PLR0913  where, what and how
    path: str, data: bytes, *, disk: Disk, staging: str | None = None, new: bool = False, mode: int = 0o644
) -> None:
    """Write a small file durably, whole or not at all. With `new` an existing file is not replaced.

    `staging`: the folder in which it is written first; without one, beside the file under a hidden name.
    """
    hidden = os.path.join(os.path.dirname(path), f".{staging_name()}")
    staged = hidden if staging is None else os.path.join(staging, staging_name())
    try:
        fd = disk.create(staged, mode)
        try:
            try:
                disk.write_all(fd, data)
                disk.sync(fd)
            finally:
                os.close(fd)
            (disk.rename_new if new else disk.replace)(staged, path)
        except BaseException:
            with suppress(OSError):  # the first error counts
                disk.remove(staged)
            raise
        disk.sync_folder(os.path.dirname(path))
    except OSError as error:
        if error.filename != staged:  # a temporary name
            raise
        raise OSError(error.errno, error.strerror, path) from error


class storage_errors:  # noqa: N801  used like a function; a generator would cost more than the calls it guards
    """Turn an `OSError` into an error with a code, a place and a hint."""

    __slots__ = ("_place", "_reading")

    def __init__(self, place: str, *, reading: bool = False) -> None:
        self._place = place
        self._reading = reading

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _storage_error(error, self._place, reading=self._reading) from error


def _storage_error(error: OSError, place: str, *, reading: bool) -> ContextPlaneError:
    at = str(error.filename or place)
    reason = error.strerror or str(error)
    if reading:
        return StorageFailed(f"cannot be read: {reason}", at=at, hint="check the file and its permissions")
    if error.errno in _DISK_FULL:
        return StorageFull(
            f"no room to write: {reason}", at=at, hint="free some space, then run the same command again"
        )
    if error.errno in _READ_ONLY:
        return StorageReadOnly(
            f"not writable: {reason}", at=at, hint="check the mount and the permissions of the folder"
        )
    return StorageFailed(f"cannot be written: {reason}", at=at, hint="check the file there")


def _obstruction(path: str) -> ObjectObstructed:
    return ObjectObstructed("there is something here that is not a file", at=path, hint="move it aside")


@contextmanager
def hold_lock(path: str, *, exclusive: bool, timeout: float, mode: int = 0o666) -> Iterator[None]:
    """Hold the lock file `path`, shared or `exclusive`, for the length of the block.

    Where the file cannot be created because nothing can be written, a shared lock is not needed.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _obstruction(path) from error
        if exclusive:
            raise
        yield
        return
    try:
        _acquire_lock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, path, timeout)
        yield
    finally:
        os.close(fd)


@contextmanager
def hold_turn(folder: str, *, timeout: float) -> Iterator[None]:
    """Hold the turn among the processes that use a folder, or go on without it when the time is over.

    The folder itself is locked, so that no file is needed and every user who can read the folder takes part. Where it
    cannot be locked, there are no turns.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with suppress(CatalogBusy, OSError):
            _acquire_lock(fd, fcntl.LOCK_EX, folder, timeout)
        yield
    finally:
        os.close(fd)


def _acquire_lock(fd: int, operation: int, path: str, timeout: float) -> None:
    """Poll for the lock instead of blocking in the system, where a wait has no timeout."""
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise CatalogBusy(
                    "another process has the catalog open", at=path, hint="try again when it has finished"
                ) from error
            time.sleep(_POLL_SECONDS)
        else:
            return


class Hasher(Protocol):
    """A running hash of hashlib."""

    def update(self, data: bytes, /) -> None: ...


def read_chunks(fd: int) -> Iterator[bytes]:
    """Read a descriptor to its end. A pipe yields what has arrived, also when its writer is slow."""
    while chunk := os.read(fd, CHUNK):
        yield chunk


def hash_while_streaming(chunks: Iterable[bytes], hasher: Hasher) -> Iterator[bytes]:
    """Pass chunks on unchanged while another thread hashes them; at the end the hash is complete.

    Hashing, reading and writing all release the interpreter lock, so the three run in parallel. The first chunk is held
    back until there is a second one: a stream of one chunk needs no thread. A producer may reuse its buffer: a chunk
    that is not `bytes` is copied first.
    """
    source = map(_owned_bytes, chunks)
    first = list(islice(source, 2))
    if len(first) < 2:  # noqa: PLR2004
        for chunk in first:
            hasher.update(chunk)
        yield from first
        return
    # Imported late: most streams are one chunk.
    import queue  # noqa: PLC0415
    import threading  # noqa: PLC0415

    todo: queue.Queue[bytes | None] = queue.Queue(_MAX_QUEUED_CHUNKS)

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


def _owned_bytes(chunk: object) -> bytes:
    if type(chunk) is bytes:
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        return bytes(chunk)
    raise TypeError(f"a chunk of a stream is bytes, not {type(chunk).__name__}")


def modification_time(status: os.stat_result) -> datetime:
    """Return when a file was changed, in UTC, clamped to the years 1 to 9999.

    Some file systems keep times outside of these years.
    """
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return _FIRST_MOMENT if status.st_mtime < 0 else _LAST_MOMENT
