"""Many puts, one durability point: stage all, sync all, move all into place, sync their folders."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from contextplane.adapters.files.disk import Disk, open_to_read, storage_errors
from contextplane.adapters.files.pump import chunks_of
from contextplane.adapters.files.staging import Staged, Staging
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectObstructed, SourceUnreadable, Stored

__all__ = ["FileBatch"]


class FileBatch:
    """The `Batch` of a `FileObjects`. Not for two threads at once."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk
        self._staged: dict[Digest, Staged] = {}
        self._held: set[str] = set()
        self._folders: set[str] = set()

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        with storage_errors(self._staging.place(digest)):
            if digest not in self._staged and not self._holds(digest, data):
                self._staged[digest] = self._staging.stage(data, digest)
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        return self._put_chunks(_from_source(chunks, "stream"))

    def put_path(self, path: str) -> Stored:
        return self._put_chunks(_from_source(_file_chunks(path), path))

    def commit(self) -> None:
        """As the port says; a commit that failed may be tried again, and goes on where it stopped."""
        with storage_errors(self._staging.root):
            self._staging.sync([*(one.path for one in self._staged.values()), *sorted(self._held)])
            self._folders |= {os.path.dirname(place) for place in self._held}
            with self._staging.locked(fcntl.LOCK_SH):
                for digest, staged in list(self._staged.items()):
                    self._staging.publish(staged)
                    self._folders.add(os.path.dirname(self._staging.place(digest)))
                    del self._staged[digest]
            self._staging.sync_folders(self._folders)
        self._held, self._folders = set(), set()

    def discard(self) -> None:
        """Remove what was staged and not committed. What a failing disk will not remove, `sweep` will later."""
        for one in self._staged.values():
            with suppress(OSError):
                self._disk.remove(one.path)
        self._staged = {}

    def _put_chunks(self, chunks: Iterable[bytes]) -> Stored:
        with storage_errors(self._staging.root):
            staged = self._staging.stage_stream(chunks)
            earlier = self._staged.get(staged.digest)
            self._staged[staged.digest] = staged
            if earlier is not None:
                self._disk.remove(earlier.path)
        return Stored(digest=staged.digest, size=staged.size)

    def _holds(self, digest: Digest, data: bytes) -> bool:
        """Whether exactly these bytes lie in place already, marked as put just now so that no collector takes them.

        The bytes are compared, not only their name looked up: putting the right bytes must heal a damaged copy. Whoever
        wrote them may not have synced them, so `commit` does.
        """
        place = self._staging.place(digest)
        try:
            with open(open_to_read(place), "rb") as file:
                if file.read(len(data) + 1) != data:
                    return False
            with self._staging.locked(fcntl.LOCK_SH):
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
