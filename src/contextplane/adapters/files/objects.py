"""Objects as files: `objects/ab/<62 hex>`, raw bytes, mode 0444, so that `sha256sum` checks them.

The layout is the one the reference program reads and writes. It knows nothing of kinds, packs or catalogs.

Removing objects, one after the other, for whoever holds the lock of their folder alone.

When a file was changed, as a moment that can be reckoned with: some file systems keep times of any year.
"""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from contextplane.adapters.files.batch import FileBatch
from contextplane.adapters.files.disk import Disk, changed_at, chunks_of, hashed, open_to_read, storage_errors
from contextplane.adapters.files.staging import LOCK, STAGING, Staging
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Condition, Stored, Stray
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, ObjectsInUse, StorageFailed

__all__ = ["FileCollecting", "FileObjects"]


class FileCollecting:
    """The `Collecting` of a `FileObjects`."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk

    def collect(self, digest: Digest, *, older_than: datetime) -> int | None:
        place = self._staging.place(digest)
        with storage_errors(place):
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(found.st_mode) or found.st_mtime >= older_than.timestamp():
                return None
            self._disk.remove(place)
            return found.st_size


_SHARD = re.compile(r"[0-9a-f]{2}")
_REST = re.compile(r"[0-9a-f]{62}")
_LEFTOVER = re.compile(r"[0-9]+-[0-9a-f]{16}")


class FileObjects:
    """The `Objects` port on a folder."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk or Disk()
        self._staging = Staging(root, self._disk)

    def put(self, data: bytes) -> Digest:
        with self.batch() as batch:
            return batch.put(data)

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        with self.batch() as batch:
            return batch.put_stream(chunks)

    def put_path(self, path: str) -> Stored:
        with self.batch() as batch:
            return batch.put_path(path)

    @contextmanager
    def batch(self) -> Iterator[FileBatch]:
        batch = FileBatch(self._staging, self._disk)
        try:
            yield batch
            batch.commit()
        except BaseException:
            batch.discard()
            raise
        finally:
            batch.close()

    def has(self, digest: Digest) -> bool:
        try:
            self._found(digest)
        except (ObjectNotFound, ObjectObstructed):
            return False
        return True

    def size(self, digest: Digest) -> int:
        return self._found(digest).st_size

    def written_at(self, digest: Digest) -> datetime:
        return changed_at(self._found(digest))

    def get(self, digest: Digest) -> bytes:
        return b"".join(self.stream(digest))

    def stream(self, digest: Digest) -> Iterator[bytes]:
        place = self._staging.place(digest)
        hasher = hashlib.sha256()
        with storage_errors(place, reading=True):
            fd = self._open(digest, place)
            try:
                yield from hashed(chunks_of(fd), hasher)
            finally:
                os.close(fd)
        if hasher.hexdigest() != digest.hex:
            raise ObjectCorrupt(
                f"its bytes have the digest sha256:{hasher.hexdigest()}",
                at=place,
                hint="'ctx fsck' lists all damage; putting the right bytes again heals it",
            )

    def check(self, digest: Digest) -> Condition:
        try:
            size = sum(len(chunk) for chunk in self.stream(digest))
        except ObjectNotFound as error:
            return Condition(state="missing", why=error.message)
        except StorageFailed as error:
            return Condition(state="unreadable", why=error.message)
        except ContextPlaneError as error:
            return Condition(state="corrupt", why=error.message)
        return Condition(state="whole", size=size)

    def names(self) -> Iterator[Digest]:
        for shard in self._listed(self._root):
            if _SHARD.fullmatch(shard):
                for rest in self._shard(shard):
                    if _REST.fullmatch(rest):
                        yield Digest(shard + rest)

    def strays(self) -> Iterator[Stray]:
        for name in self._listed(self._root):
            if name == STAGING:
                for leftover in self._shard(STAGING):
                    yield Stray(name=f"{STAGING}/{leftover}", what="leftover")
            elif _SHARD.fullmatch(name):
                if not os.path.isdir(os.path.join(self._root, name)):
                    yield Stray(name=name, what="obstacle")
                for rest in self._shard(name):
                    if not _REST.fullmatch(rest):
                        yield Stray(name=f"{name}/{rest}", what="foreign")
            elif name != LOCK:
                yield Stray(name=name, what="foreign")

    @contextmanager
    def collecting(self) -> Iterator[FileCollecting]:
        with storage_errors(self._root):
            try:
                fd = self._staging.lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ObjectsInUse(
                    "another process is writing to this store", at=self._root, hint="try again when it has finished"
                ) from error
        try:
            yield FileCollecting(self._staging, self._disk)
        finally:
            os.close(fd)

    def sweep(self, *, older_than: datetime, dry_run: bool = False) -> list[str]:
        swept = []
        folder = os.path.join(self._root, STAGING)
        with storage_errors(folder):
            for name in self._shard(STAGING):
                path = os.path.join(folder, name)
                try:
                    old = _LEFTOVER.fullmatch(name) and os.lstat(path).st_mtime < older_than.timestamp()
                    if old and not dry_run:
                        self._disk.remove(path)
                except FileNotFoundError:
                    continue  # it has become an object meanwhile
                if old:
                    swept.append(f"{STAGING}/{name}")
        return swept

    def _shard(self, name: str) -> list[str]:
        """The names in one shard, none when it is not there or no folder (which is told by `strays`)."""
        try:
            return self._listed(os.path.join(self._root, name))
        except StorageFailed as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return []
            raise

    def _listed(self, folder: str) -> list[str]:
        """One folder's names in order. A shard holds a 256th of all objects, so memory stays small."""
        with storage_errors(folder, reading=True):
            return sorted(os.listdir(folder))

    def _found(self, digest: Digest) -> os.stat_result:
        place = self._staging.place(digest)
        with storage_errors(place, reading=True):
            try:
                found = os.lstat(place)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise _not_found(digest) from error
        if not stat.S_ISREG(found.st_mode):
            raise ObjectObstructed("something that is not a file stands where an object belongs", at=place)
        return found

    def _open(self, digest: Digest, place: str) -> int:
        try:
            return open_to_read(place)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _not_found(digest) from error


def _not_found(digest: Digest) -> ObjectNotFound:
    return ObjectNotFound(
        "no such object in this store", at=str(digest), hint="check the digits; 'ctx fsck' lists what is missing"
    )
