"""The staging folder of objects: bytes are written under a unique name, synced, then moved into place.

It does not read objects. Between `stage` and `publish` nothing is visible; a killed process leaves at most a file in
the staging folder, which `sweep` removes when it is old.
"""

import errno
import fcntl
import hashlib
import mmap
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from contextplane.adapters.files.disk import Disk, hash_while_streaming, staging_name
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectObstructed

__all__ = ["LOCK", "STAGING", "DirectWriter", "StagedObject", "StagingArea"]

STAGING = ".staging"
LOCK = ".lock"
_OBJECT_MODE = 0o444
_SYNC_THREADS = 16
_SYNC_ALL_FROM = 128
_FLUSH_EVERY = 32 << 20
_BUFFER_BYTES = 1 << 20
_PAGE = 4096
_MIN_DIRECT_BYTES = 256 << 10
_MAX_BUFFERS = 8


class DirectWriter:
    """Writes large files without a copy in the page cache, where the system supports it (`O_DIRECT`).

    Such a write needs page-aligned memory, so it goes through a few buffers that are reused. Several threads may write.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._buffers: list[mmap.mmap] = []

    def write_all(self, fd: int, data: bytes) -> None:
        """Write every byte at the start of a file: whole pages of large data directly, the rest buffered."""
        if len(data) < _MIN_DIRECT_BYTES or not hasattr(os, "O_DIRECT"):
            self._disk.write_all(fd, data)
        else:
            self._disk.write_all(fd, memoryview(data)[self._pages(fd, data) :])

    def _pages(self, fd: int, data: bytes) -> int:
        """Write as many whole pages directly as possible; return their bytes. Resets the descriptor."""
        try:
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)
        except OSError:
            return 0  # not on this file system
        buffer = self._buffer()
        done = 0
        try:
            with memoryview(data) as source, memoryview(buffer) as target:
                while length := min(len(data) - done, _BUFFER_BYTES) // _PAGE * _PAGE:
                    target[:length] = source[done : done + length]
                    written = self._disk.write(fd, target[:length])
                    done += written
                    if written < length:
                        break  # the buffered write that follows reports the error
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            fcntl.fcntl(fd, fcntl.F_SETFL, 0)
            if len(self._buffers) < _MAX_BUFFERS:
                self._buffers.append(buffer)
        return done

    def _buffer(self) -> mmap.mmap:
        try:
            return self._buffers.pop()
        except IndexError:  # not checked first: another thread could take the last one in between
            return mmap.mmap(-1, _BUFFER_BYTES)


class StagedObject(Value, frozen=True):
    """An object that is written under a temporary name."""

    path: str
    digest: Digest
    size: int


class StagingArea:
    """The writing side of one objects folder. Several threads may stage at once."""

    def __init__(self, root: str, disk: Disk) -> None:
        self.root = root
        self._disk = disk
        self._direct = DirectWriter(disk)
        self._folder = os.path.join(root, STAGING)
        self._synced_folders: set[str] = set()
        self._checked_folders: set[str] = set()

    def object_path(self, digest: Digest) -> str:
        return f"{self.root}/{digest.hex[:2]}/{digest.hex[2:]}"

    def stage(self, data: bytes, digest: Digest) -> StagedObject:
        """Write bytes whose digest is known. Not durable yet."""
        path, fd = self._open()
        try:
            try:
                self._direct.write_all(fd, data)
            finally:
                os.close(fd)
        except BaseException:
            self._remove_quietly(path)
            raise
        return StagedObject(path=path, digest=digest, size=len(data))

    def stage_stream(self, chunks: Iterable[bytes]) -> StagedObject:
        """Write a stream, hashing what is written while it is written. Not durable yet."""
        path, fd = self._open()
        try:
            try:
                digest, size = self._write_stream(chunks, fd)
            finally:
                os.close(fd)
        except BaseException:
            self._remove_quietly(path)
            raise
        return StagedObject(path=path, digest=digest, size=size)

    def should_sync_all(self, count: int, fd: int) -> bool:
        """Whether to sync the whole file system: for few files it would wait for the writes of others."""
        return count >= _SYNC_ALL_FROM and self._disk.can_sync_all(fd)

    def sync(self, paths: Iterable[str]) -> None:
        """Make written files durable."""
        _run_in_threads(self._sync_file, list(paths))

    def publish(self, staged: StagedObject, *, fresh: bool) -> str:
        """Move a synced object into place and return its folder; the name is durable once that is synced.

        The time of the put becomes now, unless the object is `fresh`. The batch holds the lock.
        """
        digits = staged.digest.hex
        folder = f"{self.root}/{digits[:2]}"
        target = f"{folder}/{digits[2:]}"
        self.reject_link(folder)
        if not fresh:
            self._disk.touch(staged.path)
        try:
            try:
                self._disk.replace(staged.path, target)
            except FileNotFoundError:  # most folders exist, so they are created only when missing
                self._disk.make_folder(folder)
                self._disk.replace(staged.path, target)
        except IsADirectoryError as error:
            raise ObjectObstructed(
                "something that is not a file is in the place of an object", at=target, hint="move it aside"
            ) from error
        return folder

    def reject_link(self, folder: str) -> None:
        """Refuse a folder of objects that is a link: nothing is written or removed in another place."""
        if folder not in self._checked_folders:
            if os.path.islink(folder):
                raise ObjectObstructed("a link is in the place of a folder", at=folder, hint="move it aside")
            self._checked_folders.add(folder)

    def sync_folders(self, folders: Collection[str]) -> None:
        """Make names durable: the names in the folders, and those of the folders themselves."""
        _run_in_threads(self._disk.sync_folder, sorted(folders))
        if not self._synced_folders.issuperset(folders):
            self._disk.sync_folder(self.root)
            self._synced_folders.update(folders)

    def lock(self, operation: int) -> int:
        """Take the folder's lock and return its descriptor: shared for batches, exclusive to collect."""
        fd = os.open(os.path.join(self.root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(fd, operation)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _write_stream(self, chunks: Iterable[bytes], fd: int) -> tuple[Digest, int]:
        hasher = hashlib.sha256()
        size = flushed = 0
        for chunk in hash_while_streaming(chunks, hasher):
            self._disk.write_all(fd, chunk)
            size += len(chunk)
            if size - flushed >= _FLUSH_EVERY:
                _start_writeback(fd, flushed, size - flushed)
                flushed = size
        return Digest(hasher.hexdigest()), size

    def _open(self) -> tuple[str, int]:
        path = f"{self._folder}/{staging_name()}"
        try:
            return path, self._disk.create(path, _OBJECT_MODE)
        except FileNotFoundError:
            self._disk.make_folder(self._folder)
            return path, self._disk.create(path, _OBJECT_MODE)

    def _remove_quietly(self, path: str) -> None:
        with suppress(OSError):  # the first error counts
            self._disk.remove(path)

    def _sync_file(self, path: str) -> None:
        # A sync of any descriptor syncs the whole file; the file has mode 0444, so it is opened to read.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._disk.sync(fd)
        finally:
            os.close(fd)


def _run_in_threads(sync: Callable[[str], None], paths: list[str]) -> None:
    """Sync many paths in several threads, because the disk merges their flushes."""
    if len(paths) < _SYNC_THREADS:
        for path in paths:
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

    shares = [paths[n::_SYNC_THREADS] for n in range(_SYNC_THREADS)]
    import threading  # noqa: PLC0415  only many files at once need it

    threads = [threading.Thread(target=work, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _start_writeback(fd: int, start: int, length: int) -> None:
    """Ask the kernel, where it can be asked, to start writing, so that the final sync takes less time."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
