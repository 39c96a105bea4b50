"""Many puts, one durability point: stage all, sync all, move all into place, sync their folders.

A batch holds the lock of its folder, shared, from its beginning until it is closed: nothing is collected meanwhile.

Writing out early: while a large batch is still being staged, what is staged already goes to the disk.

Nobody relies on it: a commit syncs all, and then finds little left to do. So what fails here fails in silence; the
system tells a failed write-out to every descriptor that was open before, and a commit has one of its own.
"""

import _thread
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress

from contextplane.adapters.files.disk import Disk, chunks_of, open_to_read, storage_errors
from contextplane.adapters.files.staging import Staged, Staging
from contextplane.model.catalog import Stored
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectObstructed, SourceUnreadable, StorageFailed

__all__ = ["EarlyWriting", "FileBatch"]


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


_FRESH = 60.0  # seconds
_EARLY = 512  # files
_LOOKED_FOR = 4096  # fewer bytes are written unasked: most of them are new, and a look is one more call for each


class FileBatch:
    """The `Batch` of a `FileObjects`. Several threads may put at once; `commit` comes when they are done."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk
        self._staged: dict[Digest, Staged] = {}
        self._held: set[str] = set()
        self._failed = False
        self._began = time.monotonic()
        with storage_errors(staging.root), ExitStack() as opening:
            opening.callback(os.close, staging.lock(fcntl.LOCK_SH))
            # From before the first write: whatever write-out fails after it is told when all is synced.
            self._since = os.open(staging.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opening.callback(os.close, self._since)
            # Nothing lies in a shard that is not there. One that another process makes meanwhile is no loss.
            self._shards = set(os.listdir(self._since))
            self._early = EarlyWriting(staging.root, disk)
            opening.callback(self._early.close)
            self._open = opening.pop_all()

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        if digest not in self._staged:
            with storage_errors(self._staging.root):
                if len(data) < _LOOKED_FOR or not self._holds(digest, data):
                    self._keep(self._staging.stage(data, digest))
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        return self._put_chunks(_from_source(chunks, "stream"))

    def put_path(self, path: str) -> Stored:
        return self._put_chunks(_from_source(_file_chunks(path), path))

    def commit(self) -> None:
        """As the port says. One that failed is the end of the batch.

        A system that could not write something out tells it once, and may then take the bytes for written.
        """
        if self._failed:
            raise StorageFailed(
                "an earlier commit of this batch failed", at=self._staging.root, hint="put everything again"
            )
        self._failed = True
        with storage_errors(self._staging.root):
            at_once = self._staging.all_at_once(len(self._staged) + len(self._held), self._since)
            if at_once:
                self._disk.sync_all(self._since)
            else:
                self._staging.sync([*(one.path for one in self._staged.values()), *sorted(self._held)])
            # A collector looks at when they were put; it leaves alone what is as young as this anyway.
            fresh = time.monotonic() - self._began < _FRESH
            folders = {self._staging.publish(staged, fresh=fresh) for staged in self._staged.values()}
            folders |= {os.path.dirname(place) for place in self._held}
            self._shards.update(map(os.path.basename, folders))
            if at_once:
                self._disk.sync_all(self._since)
            else:
                self._staging.sync_folders(folders)
        self._failed = False
        self._staged, self._held = {}, set()

    def discard(self) -> None:
        """Remove what was staged and not moved. What a failing disk will not remove, `sweep` will later."""
        for one in self._staged.values():
            with suppress(OSError):
                self._disk.remove(one.path)
        self._staged = {}

    def close(self) -> None:
        self._open.close()

    def _put_chunks(self, chunks: Iterable[bytes]) -> Stored:
        with storage_errors(self._staging.root):
            staged = self._staging.stage_stream(chunks)
            self._keep(staged)
        return Stored(digest=staged.digest, size=staged.size)

    def _keep(self, staged: Staged) -> None:
        """One of those that are staged twice is enough."""
        if self._staged.setdefault(staged.digest, staged) is not staged:
            self._disk.remove(staged.path)
        elif len(self._staged) % _EARLY == 0 and self._staging.all_at_once(len(self._staged), self._since):
            self._early.begin()

    def _holds(self, digest: Digest, data: bytes) -> bool:
        """Whether exactly these bytes lie in place already, marked as put just now so that none takes them soon.

        The bytes are compared, not only their name looked up: putting the right bytes must heal a damaged copy. Whoever
        wrote them may not have synced them, so `commit` does.
        """
        if digest.hex[:2] not in self._shards:
            return False
        place = self._staging.place(digest)
        if not os.access(place, os.F_OK):
            return False  # asked first: most are new, and an error for each costs more than all else here
        try:
            with open(open_to_read(place), "rb") as file:
                if file.read(len(data) + 1) != data:
                    return False
            self._disk.touch(place)
        except (FileNotFoundError, PermissionError, ObjectObstructed):
            return False  # then it is staged, and moving it into place heals, or says what is in the way
        self._held.add(place)
        return True


def _from_source(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Chunks whose reading errors are told apart from our own writing errors."""
    try:
        yield from chunks
    except OSError as error:
        raise SourceUnreadable(f"cannot be read: {error.strerror or error}", at=name) from error


def _file_chunks(path: str) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from chunks_of(fd)
    finally:
        os.close(fd)
