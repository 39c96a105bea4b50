"""Reads a document named on the command line: a file, a pipe, or standard input."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.large import Buffer

__all__ = ["DocumentUnreadable", "first_bytes", "open_document", "path_in_folder", "read_input"]

_MAP_ABOVE = 16 << 20
_MAX_PIPED = 1 << 30
_STANDARD_INPUT = 0
_OPENED_BY_SHELL = ("/dev/fd/", "/dev/stdin")
"""How a shell names what it opened itself: reading there never waits for a writer that does not come."""

_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


class DocumentUnreadable(ContextPlaneError):
    """A document that should be read is not there, is not a file, or may not be read."""

    code: ClassVar[str] = "document_unreadable"
    family: ClassVar[Family] = "not_found"


@contextmanager
def open_document(path: str, *, piped: bool = True) -> Iterator[Buffer]:
    """Yield the bytes of a file, or of standard input for `-`. A very large file is mapped, not read.

    `piped`: a named pipe is accepted too, and reading it waits for its writer. Otherwise only a file is.
    """
    waits = piped or path.startswith(_OPENED_BY_SHELL)
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK)
    try:
        fd = _STANDARD_INPUT if path == "-" else os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentUnreadable(f"cannot be read: {reason}", at=path, hint="check the path") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            if path != "-" and (not waits or stat.S_ISDIR(status.st_mode)):
                raise _not_a_file(status.st_mode, path)
            yield _read_pipe(fd, path)
        elif status.st_size > _MAP_ABOVE:
            with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
        else:
            yield _read_file(fd, path)
    finally:
        if path != "-":
            os.close(fd)


def first_bytes(path: str, count: int) -> bytes:
    """Return the first bytes of a file, none of a pipe or a folder.

    `-` is standard input. Its first bytes are taken from it: what reads on has to put them before the rest.
    """
    if path == "-":
        with suppress(DocumentUnreadable):  # what reads on says so
            return read_input(b"", count)
    if not os.path.isfile(path):
        return b""
    with open_document(path, piped=False) as data:
        return bytes(data[:count])


def read_input(taken: bytes, most: int) -> bytes:
    """Read standard input up to its end, or up to so many bytes. `taken`: what was read of it before."""
    data = bytearray(taken)
    try:
        while len(data) < most and (chunk := os.read(_STANDARD_INPUT, most - len(data))):
            data += chunk
    except OSError as error:
        raise DocumentUnreadable(f"cannot be read: {error.strerror or error}", at="-", hint="give a file") from error
    return bytes(data)


def path_in_folder(folder: str, name: str) -> str:
    """Return the path of a file in a folder. A link that leads out of the folder is refused."""
    path, root = os.path.join(folder, name), os.path.realpath(folder)
    if os.path.commonpath((os.path.realpath(path), root)) != root:
        raise DocumentUnreadable("is a link out of its folder", at=path, hint="put the file itself there")
    return path


def _not_a_file(mode: int, path: str) -> DocumentUnreadable:
    kind = next((name for matches, name in _KINDS if matches(mode)), "a device")
    return DocumentUnreadable(f"is {kind}, not a file", at=path, hint="name a file, or - for standard input")


def _read_file(fd: int, path: str) -> bytes:
    """Read in one piece: a list of chunks and their sum would take the memory twice."""
    try:
        with open(fd, "rb", buffering=0, closefd=False) as file:
            return file.readall()
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be read: {error.strerror or error}", at=path, hint="check the disk"
        ) from error


def _read_pipe(fd: int, path: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := os.read(fd, 1 << 20):
            chunks.append(chunk)
            size += len(chunk)
            if size > _MAX_PIPED:
                raise DocumentUnreadable("more than 1 GiB came through", at=path, hint="give it as a file")
    except OSError as error:
        raise DocumentUnreadable(f"cannot be read: {error.strerror or error}", at=path, hint="give a file") from error
    return b"".join(chunks)
