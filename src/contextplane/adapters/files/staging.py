"""How bytes become an object: written under a name nobody else uses, synced, then moved into place whole.

It does not read objects. Between `stage` and `publish` nothing is visible; a killed process leaves at most a file in
the staging folder, which `sweep` removes when it is old.

Writing large bytes without a copy in the page cache, where the system can: they are synced soon anyway.

Memory for such a write must begin at a page, so it goes through a few buffers that do and are used again.
"""

import errno
import fcntl
import hashlib
import mmap
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from contextplane.adapters.files.disk import Disk, fresh_name, hashed
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectObstructed

__all__ = ["LOCK", "STAGING", "DirectWriter", "Staged", "Staging"]

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


STAGING = ".staging"
LOCK = ".lock"
_OBJECT_MODE = 0o444
_SYNC_THREADS = 16
_MANY = 128
_FLUSH_EVERY = 32 << 20


class Staged(Value, frozen=True):
    """Bytes that lie ready under a temporary name."""

    path: str
    digest: Digest
    size: int


class Staging:
    """The writing side of one objects folder. Several threads may stage at once."""

    def __init__(self, root: str, disk: Disk) -> None:
        self.root = root
        self._disk = disk
        self._direct = DirectWriter(disk)
        self._folder = os.path.join(root, STAGING)
        self._rooted: set[str] = set()

    def place(self, digest: Digest) -> str:
        return f"{self.root}/{digest.hex[:2]}/{digest.hex[2:]}"

    def stage(self, data: bytes, digest: Digest) -> Staged:
        """Write bytes whose digest is known. Not durable yet."""
        path, fd = self._open()
        try:
            try:
                self._direct.write_all(fd, data)
            finally:
                os.close(fd)
        except BaseException:
            self._removed(path)
            raise
        return Staged(path=path, digest=digest, size=len(data))

    def stage_stream(self, chunks: Iterable[bytes]) -> Staged:
        """Write a stream, hashing what is written while it is written. Not durable yet."""
        path, fd = self._open()
        try:
            try:
                digest, size = self._copy(chunks, fd)
            finally:
                os.close(fd)
        except BaseException:
            self._removed(path)
            raise
        return Staged(path=path, digest=digest, size=size)

    def all_at_once(self, count: int, fd: int) -> bool:
        """Whether so many files are better synced by syncing their file system; for fewer it would wait for others."""
        return count >= _MANY and self._disk.can_sync_all(fd)

    def sync(self, paths: Iterable[str]) -> None:
        """Make written files durable."""
        _side_by_side(self._sync_file, list(paths))

    def publish(self, staged: Staged, *, fresh: bool) -> str:
        """Move synced bytes into place, put as of now (if not `fresh`ly staged); their batch holds the lock.

        Their name is durable once their folder is synced, which is returned.
        """
        digits = staged.digest.hex
        folder = f"{self.root}/{digits[:2]}"
        target = f"{folder}/{digits[2:]}"
        if not fresh:
            self._disk.touch(staged.path)
        try:
            try:
                self._disk.replace(staged.path, target)
            except FileNotFoundError:  # asked for only when it is missing: most folders are there
                self._disk.make_folder(folder)
                self._disk.replace(staged.path, target)
        except IsADirectoryError as error:
            raise ObjectObstructed(
                "something that is not a file stands where an object belongs", at=target, hint="move it aside"
            ) from error
        return folder

    def sync_folders(self, folders: Collection[str]) -> None:
        """Make names durable: those in the folders, and those of the folders, whoever made them."""
        _side_by_side(self._disk.sync_folder, sorted(folders))
        if not self._rooted.issuperset(folders):
            self._disk.sync_folder(self.root)
            self._rooted.update(folders)

    def lock(self, how: int) -> int:
        """Take the folder's lock, held until this descriptor is closed: shared by batches, exclusive to collect."""
        fd = os.open(os.path.join(self.root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, how)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _copy(self, chunks: Iterable[bytes], fd: int) -> tuple[Digest, int]:
        hasher = hashlib.sha256()
        size = flushed = 0
        for chunk in hashed(chunks, hasher):
            self._disk.write_all(fd, chunk)
            size += len(chunk)
            if size - flushed >= _FLUSH_EVERY:
                _begin_writing_out(fd, flushed, size - flushed)
                flushed = size
        return Digest(hasher.hexdigest()), size

    def _open(self) -> tuple[str, int]:
        path = f"{self._folder}/{fresh_name()}"
        try:
            return path, self._disk.create(path, _OBJECT_MODE)
        except FileNotFoundError:
            self._disk.make_folder(self._folder)
            return path, self._disk.create(path, _OBJECT_MODE)

    def _removed(self, path: str) -> None:
        with suppress(OSError):  # what went wrong first is what counts
            self._disk.remove(path)

    def _sync_file(self, path: str) -> None:
        # Any descriptor of a file syncs all of it; the file is 0444, so it is opened to read.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._disk.sync(fd)
        finally:
            os.close(fd)


def _side_by_side(sync: Callable[[str], None], todo: list[str]) -> None:
    """Many at once go through several threads: the disk joins their flushes."""
    if len(todo) < _SYNC_THREADS:
        for path in todo:
            sync(path)
        return
    errors: list[BaseException] = []

    def work(share: list[str]) -> None:
        try:
            for path in share:
                if errors:
                    return
                sync(path)
        except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the caller
            errors.append(error)

    shares = [todo[n::_SYNC_THREADS] for n in range(_SYNC_THREADS)]
    import threading  # noqa: PLC0415  only many files at once need it

    threads = [threading.Thread(target=work, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _begin_writing_out(fd: int, start: int, length: int) -> None:
    """Ask the kernel to begin, so that the sync at the end finds little left to do. Not every system can be asked."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
