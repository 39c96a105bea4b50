"""Archives as tar files, written and read as streams.

A member's header is accepted only when it is, byte for byte, the one that this module writes for its name and size. So
links, devices, paths, owners and extensions of the format need no checks of their own.

An archive file appears whole and durable, or not at all, also when its writer is killed (`AtomicFile`).
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import ClassVar

from contextplane.adapters.files.disk import CHUNK, Disk, open_regular_file, staging_name, storage_errors
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.archive import (
    HEADER_NAME,
    MAX_HEADER_BYTES,
    MAX_MEMBER_BYTES,
    MAX_MEMBERS,
    ArchiveInvalid,
    ArchiveTooLarge,
    Header,
    MemberKind,
    parse_member_name,
    read_header,
)
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import SourceUnreadable, StorageFailed

__all__ = [
    "ArchiveMember",
    "ArchiveReader",
    "ArchiveTargetExists",
    "ArchiveWriter",
    "AtomicFile",
    "archive_header",
    "archive_reader",
    "archive_writer",
    "atomic_file",
]

_MODE = 0o666


class AtomicFile:
    """A new file that gets its name only when it is complete and durable.

    Where the system can, it has no name before. Elsewhere its temporary name begins with `.ctx-export-`; only there a
    killed process leaves a file behind.

    `new` is False when another process published the same bytes under the same name first.
    """

    def __init__(self, target: str, disk: Disk) -> None:
        """Create it without a name, or under a temporary one."""
        self.new = True
        self._target = target
        self._disk = disk
        self._folder = os.path.dirname(target)
        self._staged = ""
        fd = disk.create_nameless(self._folder, _MODE)
        if fd is None:
            self._staged = os.path.join(self._folder, f".ctx-export-{staging_name()}")
            fd = disk.create(self._staged, _MODE)
        self._fd = fd

    def write(self, data: bytes) -> None:
        self._disk.write_all(self._fd, data)

    def publish(self) -> None:
        """Give the file its name, durably.

        A file of that name with the same bytes is as good; with other bytes it is a `FileExistsError`.
        """
        self._disk.sync(self._fd)
        try:
            if self._staged:
                self._disk.rename_new(self._staged, self._target)
            else:
                self._disk.name_new(self._fd, self._target)
        except FileExistsError:
            if not self._target_is_identical():
                raise
            self.new = False
        else:
            self._staged = ""
        self._disk.sync_folder(self._folder)

    def close(self) -> None:
        os.close(self._fd)
        if self._staged:
            with suppress(OSError):  # the first error counts
                self._disk.remove(self._staged)

    def with_target_name(self, error: OSError) -> OSError:
        """Return the error with the target's name in place of a temporary one."""
        internal = {self._folder, self._staged, f"/proc/self/fd/{self._fd}"}
        return OSError(error.errno, error.strerror, self._target) if error.filename in internal else error

    def _target_is_identical(self) -> bool:
        own_path = self._staged or f"/proc/self/fd/{self._fd}"
        with open(own_path, "rb") as own, open(open_regular_file(self._target), "rb") as other:
            while chunk := own.read(CHUNK):
                if other.read(len(chunk)) != chunk:
                    return False
            return not other.read(1)


@contextmanager
def atomic_file(target: str, *, disk: Disk) -> Iterator[AtomicFile]:
    """Yield an `AtomicFile`: published at the end of the block, discarded on an exception."""
    try:
        file = AtomicFile(target, disk)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    try:
        yield file
        file.publish()
    except OSError as error:
        raise file.with_target_name(error) from error
    finally:
        file.close()


STANDARD_STREAM = "-"
"""The name of standard input and standard output."""

_BLOCK = 512
_END = bytes(2 * _BLOCK)
_NAME, _SIZE, _SUM, _TYPE = slice(0, 100), slice(124, 136), slice(148, 156), slice(156, 157)
_OCTAL_MOST = 8**11 - 1
_BINARY = b"\x80"
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_HINT = "only what 'ctx export' wrote is imported; nothing of this file was taken"


class ArchiveTargetExists(ContextPlaneError):
    """Another file has the name that an archive should get."""

    code: ClassVar[str] = "archive_target_exists"
    family: ClassVar[Family] = "conflict"


class ArchiveMember(Value, frozen=True):
    """A member after the first. Its chunks must be read before the next member is requested."""

    kind: MemberKind
    digest: Digest
    size: int
    chunks: Iterator[bytes]


def archive_header(name: str, size: int) -> bytes:
    """Return the only valid header of a member: a regular file, mode 0444, owner 0, time 0.

    A size beyond eleven octal digits is written in binary, as GNU tar does.
    """
    size_field = b"%011o\0" % size if size <= _OCTAL_MOST else _BINARY + size.to_bytes(11, "big")
    block = bytearray(_BLOCK)
    block[_NAME] = name.encode("ascii").ljust(100, b"\0")
    block[100:124] = b"0000444\0" + b"0000000\0" * 2
    block[_SIZE] = size_field
    block[136:148] = b"00000000000\0"
    block[_SUM] = b" " * 8
    block[_TYPE] = b"0"
    block[257:265] = b"ustar\x0000"
    block[_SUM] = b"%06o\0 " % sum(block)
    return bytes(block)


class ArchiveWriter:
    """Writes members through `take`, in the order of the calls. `new`: the archive did not exist before."""

    def __init__(self, take: Callable[[bytes], None], *, new: bool = True) -> None:
        self._take = take
        self.new = new
        self.written = 0

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write a member. Its chunks must add up to `size`."""
        if size > MAX_MEMBER_BYTES:
            raise ArchiveTooLarge(f"larger than {MAX_MEMBER_BYTES:,} bytes", at=name)
        self._write(archive_header(name, size))
        remaining = size
        for chunk in chunks:
            remaining -= len(chunk)
            if remaining < 0:
                break
            self._write(chunk)
        if remaining:
            raise StorageFailed("its size changed while it was read", at=name, hint="'ctx fsck' lists all damage")
        self._write(bytes(-size % _BLOCK))

    def end(self) -> None:
        """Write the end marker. An archive without it is refused as truncated."""
        self._write(_END)

    def _write(self, data: bytes) -> None:
        self._take(data)
        self.written += len(data)


@contextmanager
def archive_writer(path: str, disk: Disk | None = None) -> Iterator[ArchiveWriter]:
    """Yield a writer for an archive file: whole and durable after the block, absent on an exception.

    No file is replaced: an existing one must have exactly the bytes that would be written. `-` is standard output,
    where an interrupted archive has no end marker.
    """
    disk = disk or Disk()
    if path == STANDARD_STREAM:
        writer = ArchiveWriter(lambda data: disk.write_all(1, data))
        yield writer
        writer.end()
        return
    target = os.path.realpath(path)
    with storage_errors(path):
        if os.path.lexists(target):
            with _verifying_writer(target, path) as writer:
                yield writer
            return
        try:
            with atomic_file(target, disk=disk) as file:
                writer = ArchiveWriter(file.write)
                yield writer
                writer.end()
        except FileExistsError as error:
            raise _target_exists(path) from error
        writer.new = file.new


@contextmanager
def _verifying_writer(target: str, path: str) -> Iterator[ArchiveWriter]:
    """Yield a writer that compares with the existing file, and refuses the first byte that differs."""
    if not stat.S_ISREG(os.stat(target).st_mode):
        raise StorageFailed("not a regular file", at=path, hint="'-o -' writes to standard output")
    with open(open_regular_file(target), "rb") as file:

        def compare(data: bytes) -> None:
            if file.read(len(data)) != data:
                raise _target_exists(path)

        writer = ArchiveWriter(compare, new=False)
        yield writer
        writer.end()
        if file.read(1):
            raise _target_exists(path)


def _target_exists(path: str) -> ArchiveTargetExists:
    return ArchiveTargetExists(
        "a file of this name exists, with other contents",
        at=path,
        hint="name another file, or remove this one first",
    )


class ArchiveReader:
    """Reads an archive once, from start to end, in bounded memory."""

    def __init__(self, file: BufferedReader, taken: bytes = b"") -> None:
        """Read and check the first member. `taken`: what was read of the file before."""
        self._file = file
        self._taken = taken
        self._last = ""
        self._count = 0
        block = self._block(first=True)
        if block.startswith(_COMPRESSED):
            raise ArchiveInvalid("a compressed file", hint="decompress it first: archives are plain tar files")
        if _name(block) != HEADER_NAME:
            raise ArchiveInvalid("not an archive of execution packs", hint=_HINT)
        size = self._check_header(block, HEADER_NAME)
        if size > MAX_HEADER_BYTES:
            raise ArchiveInvalid(f"more than {MAX_HEADER_BYTES:,} bytes", at=f"#{HEADER_NAME}", hint=_HINT)
        self.header: Header = read_header(b"".join(self._body(HEADER_NAME, size)))

    def members(self) -> Iterator[ArchiveMember]:
        """Yield the members after the first, in order. Without an error at the end, the archive is whole."""
        while any(block := self._block()):
            name = _name(block)
            kind, digest = parse_member_name(name)
            size = self._check_header(block, name)
            chunks = self._body(name, size)
            yield ArchiveMember(kind=kind, digest=digest, size=size, chunks=chunks)
            for _ in chunks:
                pass  # skip what the caller did not read
        if any(self._block()) or self._read(1):
            raise ArchiveInvalid("there is more after its end", hint=_HINT)

    def _check_header(self, block: bytes, name: str) -> int:
        """Check the header of a member, and its place in the order; return its size."""
        if block[_TYPE] != b"0":
            raise ArchiveInvalid("not a regular file", at=f"#{name}", hint=_HINT)
        size = _size(block)
        if size is None or archive_header(name, size) != block:
            raise ArchiveInvalid("its header is not as 'ctx export' writes it", at=f"#{name}", hint=_HINT)
        if size > MAX_MEMBER_BYTES:
            raise ArchiveInvalid(f"larger than {MAX_MEMBER_BYTES:,} bytes", at=f"#{name}", hint=_HINT)
        if name <= self._last:
            raise ArchiveInvalid("twice, or out of order", at=f"#{name}", hint=_HINT)
        self._last = name
        self._count += 1
        if self._count > MAX_MEMBERS:
            raise ArchiveInvalid(f"more than {MAX_MEMBERS:,} members", hint=_HINT)
        return size

    def _body(self, name: str, size: int) -> Iterator[bytes]:
        remaining = size
        while remaining:
            chunk = self._read(min(CHUNK, remaining))
            if not chunk:
                raise ArchiveInvalid("the archive is truncated here", at=f"#{name}", hint=_HINT)
            remaining -= len(chunk)
            yield chunk
        padding = self._read(-size % _BLOCK)
        if len(padding) != -size % _BLOCK or any(padding):
            raise ArchiveInvalid("the archive is truncated or damaged after it", at=f"#{name}", hint=_HINT)

    def _block(self, *, first: bool = False) -> bytes:
        block = self._read(_BLOCK)
        if len(block) == _BLOCK or (first and block.startswith(_COMPRESSED)):
            return block
        if first and not HEADER_NAME.startswith(_name(block)):
            raise ArchiveInvalid("not an archive of execution packs", hint=_HINT)
        raise ArchiveInvalid("an empty file" if first and not block else "the archive is truncated", hint=_HINT)

    def _read(self, size: int) -> bytes:
        taken, self._taken = self._taken[:size], self._taken[size:]
        try:
            return taken + self._file.read(size - len(taken))
        except OSError as error:
            raise SourceUnreadable(f"cannot be read: {error.strerror or error}") from error


@contextmanager
def archive_reader(path: str, taken: bytes = b"") -> Iterator[ArchiveReader]:
    """Open an archive and yield its reader; `-` is standard input. `taken`: what was read of it before."""
    try:
        file = open(0 if path == STANDARD_STREAM else path, "rb", closefd=path != STANDARD_STREAM)  # noqa: SIM115  closed below
    except OSError as error:
        raise SourceUnreadable(f"cannot be read: {error.strerror or error}", hint="check the path") from error
    with file:
        yield ArchiveReader(file, taken)


def _name(block: bytes) -> str:
    """Return the name in a header; bytes that are not ASCII are escaped."""
    return block[_NAME].rstrip(b"\0").decode("ascii", errors="backslashreplace")


def _size(block: bytes) -> int | None:
    field = block[_SIZE]
    if field.startswith(_BINARY):
        return int.from_bytes(field[1:], "big")
    digits = field[:-1]
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else None
