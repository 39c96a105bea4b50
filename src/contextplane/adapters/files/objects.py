"""Objects as files: `objects/ab/<62 hex>`, raw bytes, mode 0444, so that `sha256sum` checks them.

The layout is the one the reference program reads and writes. It knows nothing of kinds, packs or catalogs.
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
from contextplane.adapters.files.disk import (
    Disk,
    hash_while_streaming,
    modification_time,
    open_regular_file,
    read_chunks,
    storage_errors,
)
from contextplane.adapters.files.staging_area import LOCK, STAGING, StagingArea
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ObjectCondition, StoredObject, Stray
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, ObjectsInUse, StorageFailed

__all__ = ["FileCollector", "FileObjects"]


class FileCollector:
    """The `Collecting` of a `FileObjects`."""

    def __init__(self, staging: StagingArea, disk: Disk) -> None:
        self._staging = staging
        self._disk = disk

    def collect(self, digest: Digest, *, older_than: datetime) -> int | None:
        path = self._staging.object_path(digest)
        self._staging.reject_link(os.path.dirname(path))
        with storage_errors(path):
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(status.st_mode) or status.st_mtime >= older_than.timestamp():
                return None
            self._disk.remove(path)
            return status.st_size


_SHARD = re.compile(r"[0-9a-f]{2}")
_OBJECT = re.compile(r"[0-9a-f]{62}")
_LEFTOVER = re.compile(r"[0-9]+-[0-9a-f]{16}")


class FileObjects:
    """The `Objects` port on a folder."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk or Disk()
        self._staging = StagingArea(root, self._disk)

    def put(self, data: bytes) -> Digest:
        with self.batch() as batch:
            return batch.put(data)

    def put_stream(self, chunks: Iterable[bytes]) -> StoredObject:
        with self.batch() as batch:
            return batch.put_stream(chunks)

    def put_path(self, path: str) -> StoredObject:
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
            self._stat(digest)
        except (ObjectNotFound, ObjectObstructed):
            return False
        return True

    def size(self, digest: Digest) -> int:
        return self._stat(digest).st_size

    def write_time(self, digest: Digest) -> datetime:
        return modification_time(self._stat(digest))

    def get(self, digest: Digest) -> bytes:
        return b"".join(self.stream(digest))

    def stream(self, digest: Digest) -> Iterator[bytes]:
        path = self._staging.object_path(digest)
        hasher = hashlib.sha256()
        with storage_errors(path, reading=True):
            fd = self._open(digest, path)
            try:
                yield from hash_while_streaming(read_chunks(fd), hasher)
            finally:
                os.close(fd)
        if hasher.hexdigest() != digest.hex:
            raise ObjectCorrupt(
                f"its bytes have the digest sha256:{hasher.hexdigest()}",
                at=path,
                hint="'ctx fsck' lists all damage; putting the right bytes again heals it",
            )

    def check(self, digest: Digest) -> ObjectCondition:
        try:
            size = sum(len(chunk) for chunk in self.stream(digest))
        except ObjectNotFound as error:
            return ObjectCondition(state="missing", why=error.message)
        except StorageFailed as error:
            return ObjectCondition(state="unreadable", why=error.message)
        except ContextPlaneError as error:
            return ObjectCondition(state="corrupt", why=error.message)
        return ObjectCondition(state="whole", size=size)

    def names(self) -> Iterator[Digest]:
        for shard in self._list_folder(self._root):
            if _SHARD.fullmatch(shard):
                for name in self._list_shard(shard):
                    if _OBJECT.fullmatch(name):
                        yield Digest(shard + name)

    def strays(self) -> Iterator[Stray]:
        for folder in self._list_folder(self._root):
            if folder == STAGING:
                for leftover in self._list_shard(STAGING):
                    yield Stray(name=f"{STAGING}/{leftover}", what="leftover")
            elif _SHARD.fullmatch(folder):
                if not os.path.isdir(os.path.join(self._root, folder)):
                    yield Stray(name=folder, what="obstacle")
                for name in self._list_shard(folder):
                    if not _OBJECT.fullmatch(name):
                        yield Stray(name=f"{folder}/{name}", what="foreign")
            elif folder != LOCK:
                yield Stray(name=folder, what="foreign")

    @contextmanager
    def collector(self) -> Iterator[FileCollector]:
        with storage_errors(self._root):
            try:
                fd = self._staging.lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ObjectsInUse(
                    "another process is writing to this store", at=self._root, hint="try again when it has finished"
                ) from error
        try:
            yield FileCollector(self._staging, self._disk)
        finally:
            os.close(fd)

    def sweep(self, *, older_than: datetime, dry_run: bool = False) -> list[str]:
        swept = []
        folder = os.path.join(self._root, STAGING)
        with storage_errors(folder):
            for name in self._list_shard(STAGING):
                path = os.path.join(folder, name)
                try:
                    old = _LEFTOVER.fullmatch(name) and os.lstat(path).st_mtime < older_than.timestamp()
                    if old and not dry_run:
                        self._disk.remove(path)
                except FileNotFoundError:
                    continue  # published as an object meanwhile
                if old:
                    swept.append(f"{STAGING}/{name}")
        return swept

    def _list_shard(self, name: str) -> list[str]:
        """List the names in a shard; none when it is missing or not a folder (which `strays` reports)."""
        try:
            return self._list_folder(os.path.join(self._root, name))
        except StorageFailed as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return []
            raise

    def _list_folder(self, folder: str) -> list[str]:
        """List a folder, sorted. A shard holds a 256th of all objects, so memory stays small."""
        with storage_errors(folder, reading=True):
            return sorted(os.listdir(folder))

    def _stat(self, digest: Digest) -> os.stat_result:
        path = self._staging.object_path(digest)
        with storage_errors(path, reading=True):
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise _not_found(digest) from error
        if not stat.S_ISREG(status.st_mode):
            raise ObjectObstructed("something that is not a file is in the place of an object", at=path)
        return status

    def _open(self, digest: Digest, path: str) -> int:
        try:
            return open_regular_file(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _not_found(digest) from error


def _not_found(digest: Digest) -> ObjectNotFound:
    return ObjectNotFound(
        "no such object in this store", at=str(digest), hint="check the digits; 'ctx fsck' lists missing objects"
    )
