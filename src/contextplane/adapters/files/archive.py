"""Archives as tar files, written and read as streams: 512-byte headers of one form, and nothing else is understood.

A header is accepted when it is, byte for byte, the one that we would write for its name and its size. So no link, no
device, no path, no owner and no extension of the format has to be refused one by one.

A new file under a name that nobody has: there whole and durable, or not at all, also when its writer is killed.

Where the system can, it has no name at all before it is whole. Where it cannot, it has one that begins with
`.ctx-export-`, and only there a killed process leaves something behind.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import ClassVar

from contextplane.adapters.files.disk import CHUNK, Disk, fresh_name, open_to_read, storage_errors
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.archive import (
    HEADER_MOST,
    HEADER_NAME,
    MEMBER_MOST,
    MEMBERS_MOST,
    ArchiveInvalid,
    ArchiveTooLarge,
    Header,
    Kind,
    named,
    read_header,
)
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import SourceUnreadable, StorageFailed

__all__ = [
    "ArchiveReader",
    "ArchiveTargetExists",
    "ArchiveWriter",
    "FreshFile",
    "Member",
    "archive_header",
    "fresh_file",
    "reading_archive",
    "writing_archive",
]

_MODE = 0o666


class FreshFile:
    """A file that is being written. `new`, at the end: nobody else gave the same bytes the same name meanwhile."""

    def __init__(self, target: str, disk: Disk) -> None:
        """Begin one that has no name, or a name of its own."""
        self.new = True
        self._target = target
        self._disk = disk
        self._folder = os.path.dirname(target)
        self._staged = ""
        fd = disk.create_nameless(self._folder, _MODE)
        if fd is None:
            self._staged = os.path.join(self._folder, f".ctx-export-{fresh_name()}")
            fd = disk.create(self._staged, _MODE)
        self._fd = fd

    def write(self, data: bytes) -> None:
        self._disk.write_all(self._fd, data)

    def settle(self) -> None:
        """Give it its name, durably. Who was faster with the very same bytes did it for us; else `FileExistsError`."""
        self._disk.sync(self._fd)
        try:
            if self._staged:
                self._disk.rename_new(self._staged, self._target)
            else:
                self._disk.name_new(self._fd, self._target)
        except FileExistsError:
            if not self._is_there():
                raise
            self.new = False
        else:
            self._staged = ""
        self._disk.sync_folder(self._folder)

    def close(self) -> None:
        os.close(self._fd)
        if self._staged:
            with suppress(OSError):  # what went wrong first is what counts
                self._disk.remove(self._staged)

    def named(self, error: OSError) -> OSError:
        """An error that names the file that was asked for, instead of one that nobody knows of."""
        unknown = {self._folder, self._staged, f"/proc/self/fd/{self._fd}"}
        return OSError(error.errno, error.strerror, self._target) if error.filename in unknown else error

    def _is_there(self) -> bool:
        ours = self._staged or f"/proc/self/fd/{self._fd}"
        with open(ours, "rb") as buffered_reader, open(open_to_read(self._target), "rb") as other:
            while chunk := buffered_reader.read(CHUNK):
                if other.read(len(chunk)) != chunk:
                    return False
            return not other.read(1)


@contextmanager
def fresh_file(target: str, *, disk: Disk) -> Iterator[FreshFile]:
    """A file to write to, which gets its name when the block is left, and is gone when an exception leaves it."""
    try:
        file = FreshFile(target, disk)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    try:
        yield file
        file.settle()
    except OSError as error:
        raise file.named(error) from error
    finally:
        file.close()


STANDARD = "-"
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


class Member(Value, frozen=True):
    """One member after the first. Its chunks are read before the next member is asked for, or not at all."""

    kind: Kind
    digest: Digest
    size: int
    chunks: Iterator[bytes]


def archive_header(name: str, size: int) -> bytes:
    """The one header of a member: a regular file of mode 0444, of nobody, of the beginning of time.

    A size that eleven octal digits cannot say is written in binary, as GNU tar and others do.
    """
    data = b"%011o\0" % size if size <= _OCTAL_MOST else _BINARY + size.to_bytes(11, "big")
    block = bytearray(_BLOCK)
    block[_NAME] = name.encode("ascii").ljust(100, b"\0")
    block[100:124] = b"0000444\0" + b"0000000\0" * 2
    block[_SIZE] = data
    block[136:148] = b"00000000000\0"
    block[_SUM] = b" " * 8
    block[_TYPE] = b"0"
    block[257:265] = b"ustar\x0000"
    block[_SUM] = b"%06o\0 " % sum(block)
    return bytes(block)


class ArchiveWriter:
    """Hands the bytes of members on, in the order in which they are given. `new`: they were not there before."""

    def __init__(self, take: Callable[[bytes], None], *, new: bool = True) -> None:
        self._take = take
        self.new = new
        self.written = 0

    def add(self, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Write one member, whose chunks must add up to its size."""
        if size > MEMBER_MOST:
            raise ArchiveTooLarge(f"larger than {MEMBER_MOST:,} bytes", at=name)
        self._write(archive_header(name, size))
        left = size
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                break
            self._write(chunk)
        if left:
            raise StorageFailed("its size changed while it was read", at=name, hint="'ctx fsck' lists all damage")
        self._write(bytes(-size % _BLOCK))

    def end(self) -> None:
        """Write the end. An archive without it is refused as truncated."""
        self._write(_END)

    def _write(self, data: bytes) -> None:
        self._take(data)
        self.written += len(data)


@contextmanager
def writing_archive(path: str, disk: Disk | None = None) -> Iterator[ArchiveWriter]:
    """A file that is there whole and durable when the block is left, and not at all when an exception leaves it.

    Nothing is replaced: a file that is there already must have the very bytes that would be written. `-` is standard
    output, which cannot be taken back: there, what was cut short has no end.
    """
    disk = disk or Disk()
    if path == STANDARD:
        writer = ArchiveWriter(lambda data: disk.write_all(1, data))
        yield writer
        writer.end()
        return
    target = os.path.realpath(path)
    with storage_errors(path):
        if os.path.lexists(target):
            with _compared(target, path) as writer:
                yield writer
            return
        try:
            with fresh_file(target, disk=disk) as file:
                writer = ArchiveWriter(file.write)
                yield writer
                writer.end()
        except FileExistsError as error:
            raise _exists(path) from error
        writer.new = file.new


@contextmanager
def _compared(target: str, path: str) -> Iterator[ArchiveWriter]:
    """A writer that writes nothing, and refuses the first byte that is another than in the file."""
    if not stat.S_ISREG(os.stat(target).st_mode):
        raise StorageFailed("not a regular file", at=path, hint="'-o -' writes to standard output")
    with open(open_to_read(target), "rb") as file:

        def compare(data: bytes) -> None:
            if file.read(len(data)) != data:
                raise _exists(path)

        writer = ArchiveWriter(compare, new=False)
        yield writer
        writer.end()
        if file.read(1):
            raise _exists(path)


def _exists(path: str) -> ArchiveTargetExists:
    return ArchiveTargetExists(
        "a file of this name is there, and holds something else",
        at=path,
        hint="name another file, or remove this one first",
    )


class ArchiveReader:
    """Reads an archive from its beginning to its end, once. Memory does not grow with its size."""

    def __init__(self, file: BufferedReader) -> None:
        """Read the first member."""
        self._file = file
        self._last = ""
        self._count = 0
        first = self._block(beginning=True)
        if first.startswith(_COMPRESSED):
            raise ArchiveInvalid("a compressed file", hint="decompress it first: archives are plain tar files")
        if _name(first) != HEADER_NAME:
            raise ArchiveInvalid("not an archive of execution packs", hint=_HINT)
        size = self._checked(first, HEADER_NAME)
        if size > HEADER_MOST:
            raise ArchiveInvalid(f"more than {HEADER_MOST:,} bytes", at=f"#{HEADER_NAME}", hint=_HINT)
        self.header: Header = read_header(b"".join(self._body(HEADER_NAME, size)))

    def members(self) -> Iterator[Member]:
        """Every other member, in order. The last one came when this ends without an error."""
        while any(block := self._block()):
            name = _name(block)
            kind, digest = named(name)
            size = self._checked(block, name)
            chunks = self._body(name, size)
            yield Member(kind=kind, digest=digest, size=size, chunks=chunks)
            for _ in chunks:
                pass  # what nobody read
        if any(self._block()) or self._read(1):
            raise ArchiveInvalid("there is more after its end", hint=_HINT)

    def _checked(self, block: bytes, name: str) -> int:
        """The size of a member whose header is the one that we would write, at its place in the order."""
        if block[_TYPE] != b"0":
            raise ArchiveInvalid("not a regular file", at=f"#{name}", hint=_HINT)
        size = _size(block)
        if size is None or archive_header(name, size) != block:
            raise ArchiveInvalid("its header is not as 'ctx export' writes it", at=f"#{name}", hint=_HINT)
        if size > MEMBER_MOST:
            raise ArchiveInvalid(f"larger than {MEMBER_MOST:,} bytes", at=f"#{name}", hint=_HINT)
        if name <= self._last:
            raise ArchiveInvalid("twice, or out of order", at=f"#{name}", hint=_HINT)
        self._last = name
        self._count += 1
        if self._count > MEMBERS_MOST:
            raise ArchiveInvalid(f"more than {MEMBERS_MOST:,} members", hint=_HINT)
        return size

    def _body(self, name: str, size: int) -> Iterator[bytes]:
        left = size
        while left:
            chunk = self._read(min(CHUNK, left))
            if not chunk:
                raise ArchiveInvalid("the archive is truncated here", at=f"#{name}", hint=_HINT)
            left -= len(chunk)
            yield chunk
        padding = self._read(-size % _BLOCK)
        if len(padding) != -size % _BLOCK or any(padding):
            raise ArchiveInvalid("the archive is truncated or damaged after it", at=f"#{name}", hint=_HINT)

    def _block(self, *, beginning: bool = False) -> bytes:
        block = self._read(_BLOCK)
        if len(block) == _BLOCK or (beginning and block.startswith(_COMPRESSED)):
            return block
        if beginning and not HEADER_NAME.startswith(_name(block)):
            raise ArchiveInvalid("not an archive of execution packs", hint=_HINT)
        raise ArchiveInvalid("an empty file" if beginning and not block else "the archive is truncated", hint=_HINT)

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise SourceUnreadable(f"cannot be read: {error.strerror or error}") from error


@contextmanager
def reading_archive(path: str) -> Iterator[ArchiveReader]:
    """Open an archive; `-` is standard input."""
    try:
        file = open(0 if path == STANDARD else path, "rb", closefd=path != STANDARD)  # noqa: SIM115  closed below
    except OSError as error:
        raise SourceUnreadable(f"cannot be read: {error.strerror or error}", hint="check the path") from error
    with file:
        yield ArchiveReader(file)


def _name(block: bytes) -> str:
    """The name in a header, with whatever stands there shown."""
    return block[_NAME].rstrip(b"\0").decode("ascii", errors="backslashreplace")


def _size(block: bytes) -> int | None:
    field = block[_SIZE]
    if field.startswith(_BINARY):
        return int.from_bytes(field[1:], "big")
    digits = field[:-1]
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else None
