"""Batches of objects with one durability point.

A commit stages all, syncs all, moves all into place, and syncs their folders.

A batch holds the shared lock of its folder until it is closed, so nothing is collected meanwhile.
"""

import _thread
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress

from contextplane.adapters.files.disk import Disk, open_regular_file, read_chunks, storage_errors
from contextplane.adapters.files.staging_area import StagedObject, StagingArea
from contextplane.model.catalog import StoredObject
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectObstructed, SourceUnreadable, StorageFailed

__all__ = ["BackgroundSync", "FileBatch"]


class BackgroundSync:
    """Syncs the file system of a folder in a thread, while a large batch is still being staged.

    It only saves time: a commit syncs everything again and then finds little to do. So errors are ignored here. The
    system reports a failed write to every descriptor that was open before, and a commit has its own.

    One thread works at a time. It takes the lock itself, so an interrupted `start` leaves no lock behind.
    """

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._busy = _thread.allocate_lock()
        self._closed = False

    def start(self) -> None:
        """Start a sync, unless one is running."""
        if not self._busy.locked():
            with suppress(RuntimeError):  # no thread left
                _thread.start_new_thread(self._work, ())

    def close(self) -> None:
        """Wait for a running sync. A thread that has not begun its sync yet will do nothing."""
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


_FRESH_SECONDS = 60.0
_BACKGROUND_SYNC_EVERY = 512  # files
_MIN_LOOKUP_BYTES = 4096  # smaller objects are written without a lookup: most are new, and a lookup is one more call


class FileBatch:
    """The `Batch` of a `FileObjects`. Several threads may put at once; `commit` after they are done."""

    def __init__(self, staging: StagingArea, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk
        self._staged: dict[Digest, StagedObject] = {}
        self._present: set[str] = set()
        self._failed = False
        self._began = time.monotonic()
        with storage_errors(staging.root), ExitStack() as stack:
            stack.callback(os.close, staging.lock(fcntl.LOCK_SH))
            # Opened before the first write: a later sync of it reports every failed write since.
            self._since = os.open(staging.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, self._since)
            # No object is in a missing shard. One that another process makes meanwhile costs only a second write.
            self._shards = set(os.listdir(self._since))
            self._background = BackgroundSync(staging.root, disk)
            stack.callback(self._background.close)
            self._resources = stack.pop_all()

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        if digest not in self._staged:
            with storage_errors(self._staging.root):
                if len(data) < _MIN_LOOKUP_BYTES or not self._is_stored(digest, data):
                    self._add(self._staging.stage(data, digest))
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> StoredObject:
        return self._put_chunks(_from_source(chunks, "stream"))

    def put_path(self, path: str) -> StoredObject:
        return self._put_chunks(_from_source(_file_chunks(path), path))

    def commit(self) -> None:
        """See `Batch.commit`. After a failed commit the batch is unusable.

        A system reports a failed write once, and may then treat the bytes as written.
        """
        if self._failed:
            raise StorageFailed(
                "an earlier commit of this batch failed", at=self._staging.root, hint="put everything again"
            )
        self._failed = True
        with storage_errors(self._staging.root):
            sync_all = self._staging.should_sync_all(len(self._staged) + len(self._present), self._since)
            if sync_all:
                self._disk.sync_all(self._since)
            else:
                self._staging.sync([*(staged.path for staged in self._staged.values()), *sorted(self._present)])
            # A collector looks at the time of the put, and skips objects as young as these.
            fresh = time.monotonic() - self._began < _FRESH_SECONDS
            folders = {self._staging.publish(staged, fresh=fresh) for staged in self._staged.values()}
            folders |= {os.path.dirname(path) for path in self._present}
            self._shards.update(map(os.path.basename, folders))
            if sync_all:
                self._disk.sync_all(self._since)
            else:
                self._staging.sync_folders(folders)
        self._failed = False
        self._staged, self._present = {}, set()

    def discard(self) -> None:
        """Remove what is staged. What a failing disk does not remove, `sweep` removes later."""
        for staged in self._staged.values():
            with suppress(OSError):
                self._disk.remove(staged.path)
        self._staged = {}

    def close(self) -> None:
        self._resources.close()

    def _put_chunks(self, chunks: Iterable[bytes]) -> StoredObject:
        with storage_errors(self._staging.root):
            staged = self._staging.stage_stream(chunks)
            self._add(staged)
        return StoredObject(digest=staged.digest, size=staged.size)

    def _add(self, staged: StagedObject) -> None:
        """Add a staged object; of two with one digest the second is removed."""
        if self._staged.setdefault(staged.digest, staged) is not staged:
            self._disk.remove(staged.path)
        elif len(self._staged) % _BACKGROUND_SYNC_EVERY == 0 and self._staging.should_sync_all(
            len(self._staged), self._since
        ):
            self._background.start()

    def _is_stored(self, digest: Digest, data: bytes) -> bool:
        """Whether exactly these bytes are stored already; if so, mark them as put now, against collection.

        The bytes are compared, not only the name: putting the right bytes must heal a damaged copy. The process that
        wrote them may not have synced them, so `commit` does.
        """
        if digest.hex[:2] not in self._shards:
            return False
        path = self._staging.object_path(digest)
        if not os.access(path, os.F_OK):
            return False  # checked first: most objects are new, and an exception for each is expensive
        self._staging.reject_link(os.path.dirname(path))
        try:
            with open(open_regular_file(path), "rb") as file:
                if file.read(len(data) + 1) != data:
                    return False
            self._disk.touch(path)
        except (FileNotFoundError, PermissionError, ObjectObstructed):
            return False  # stage it: moving it into place heals the object, or reports the obstacle
        self._present.add(path)
        return True


def _from_source(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Pass chunks on, turning errors of reading into `SourceUnreadable`, unlike errors of writing."""
    try:
        yield from chunks
    except OSError as error:
        raise SourceUnreadable(f"cannot be read: {error.strerror or error}", at=name) from error


def _file_chunks(path: str) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from read_chunks(fd)
    finally:
        os.close(fd)
