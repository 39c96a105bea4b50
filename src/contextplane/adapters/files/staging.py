"""How bytes become an object: written under a name nobody else uses, synced, then moved into place whole.

It does not read objects. Between `stage` and `publish` nothing is visible; a killed process leaves at most a file in
the staging folder, which `sweep` removes when it is old.
"""

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from contextplane.adapters.files.disk import Disk, fresh_name
from contextplane.adapters.files.pump import hashed
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectObstructed

__all__ = ["LOCK", "STAGING", "Staged", "Staging"]

STAGING = ".staging"
LOCK = ".lock"
_OBJECT_MODE = 0o444
_SYNC_THREADS = 16
_FLUSH_EVERY = 32 << 20
_WORTH_BEGINNING = 512 << 10


class Staged(Value, frozen=True):
    """Bytes that lie ready under a temporary name."""

    path: str
    digest: Digest
    size: int


class Staging:
    """The writing side of one objects folder."""

    def __init__(self, root: str, disk: Disk) -> None:
        self.root = root
        self._disk = disk
        self._folder = os.path.join(root, STAGING)
        self._rooted: set[str] = set()
        self._made: set[str] = set()

    def place(self, digest: Digest) -> str:
        return f"{self.root}/{digest.hex[:2]}/{digest.hex[2:]}"

    def stage(self, data: bytes, digest: Digest) -> Staged:
        """Write small bytes whose digest is known. Not durable yet."""
        path, fd = self._open()
        with self._cleaned(path, fd):
            self._disk.write_all(fd, data)
            if len(data) >= _WORTH_BEGINNING:
                _begin_writing_out(fd, 0, len(data))
        return Staged(path=path, digest=digest, size=len(data))

    def stage_stream(self, chunks: Iterable[bytes]) -> Staged:
        """Write a stream, hashing what is written while it is written. Not durable yet."""
        path, fd = self._open()
        with self._cleaned(path, fd):
            digest, size = self._copy(chunks, fd)
        return Staged(path=path, digest=digest, size=size)

    def sync(self, paths: Iterable[str]) -> None:
        """Make written files durable."""
        self._side_by_side(self._sync_file, list(paths))

    def _side_by_side(self, sync: Callable[[str], None], todo: list[str]) -> None:
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
        threads = [threading.Thread(target=work, args=(share,), daemon=True) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def publish(self, staged: Staged) -> None:
        """Move synced bytes into place, put as of now; the lock is held shared by whoever calls this.

        Their name is durable once their folder is synced.
        """
        target = self.place(staged.digest)
        folder = os.path.dirname(target)
        if folder not in self._made:
            self._disk.make_folder(folder)
            self._made.add(folder)
        # They may have been staged long ago; a collector looks at this time.
        self._disk.touch(staged.path)
        try:
            self._disk.replace(staged.path, target)
        except IsADirectoryError as error:
            raise ObjectObstructed(
                "something that is not a file stands where an object belongs", at=target, hint="move it aside"
            ) from error

    def sync_folders(self, folders: Iterable[str]) -> None:
        """Make names durable: those in the folders, and those of the folders, whoever made them."""
        todo = set(folders)
        self._side_by_side(self._disk.sync_folder, sorted(todo))
        if not todo <= self._rooted:
            self._disk.sync_folder(self.root)
            self._rooted |= todo

    @contextmanager
    def locked(self, how: int) -> Iterator[None]:
        """Hold the folder's lock: shared to put, exclusive to collect, so that nothing is collected while it is put."""
        fd = os.open(os.path.join(self.root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)

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
        path = os.path.join(self._folder, fresh_name())
        try:
            return path, self._disk.create(path, _OBJECT_MODE)
        except FileNotFoundError:
            self._disk.make_folder(self._folder)
            return path, self._disk.create(path, _OBJECT_MODE)

    @contextmanager
    def _cleaned(self, path: str, fd: int) -> Iterator[None]:
        """Close the file in any case, and remove it when writing it failed."""
        try:
            yield
        except BaseException:
            os.close(fd)
            with suppress(OSError):  # what went wrong first is what counts
                self._disk.remove(path)
            raise
        os.close(fd)

    def _sync_file(self, path: str) -> None:
        # Any descriptor of a file syncs all of it; the file is 0444, so it is opened to read.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._disk.sync(fd)
        finally:
            os.close(fd)


def _begin_writing_out(fd: int, start: int, length: int) -> None:
    """Ask the kernel to begin, so that the sync at the end finds little left to do. Not every system can be asked."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
