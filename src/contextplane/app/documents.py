"""Reading a document that a person named on the command line: a file, or what is piped in."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.large import Buffer

__all__ = ["DocumentUnreadable", "document", "file_in"]

_MAPPED = 16 << 20
_PIPED_MOST = 1 << 30
_STANDARD_INPUT = 0
_HANDED_OVER = ("/dev/fd/", "/dev/stdin")
"""How a shell names what it opened itself: nobody waits there for a writer who never comes."""


_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


class DocumentUnreadable(ContextPlaneError):
    """A document that should be read is not there, is not a file, or may not be read."""

    code: ClassVar[str] = "document_unreadable"
    family: ClassVar[Family] = "not_found"


@contextmanager
def document(path: str, *, piped: bool = True) -> Iterator[Buffer]:
    """The bytes of a file, or of standard input for `-`. A very large file is looked at where it lies, not read in.

    `piped`: it may be a pipe with a name, and whoever reads it waits for its writer. Else only a file is read.
    """
    waits = piped or path.startswith(_HANDED_OVER)
    how = os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK)
    try:
        fd = _STANDARD_INPUT if path == "-" else os.open(path, how)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentUnreadable(f"cannot be read: {reason}", at=path, hint="check the path") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            if path != "-" and (not waits or stat.S_ISDIR(found.st_mode)):
                raise _no_file(found.st_mode, path)
            yield _piped(fd, path)
        elif found.st_size > _MAPPED:
            with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
        else:
            yield _whole(fd, path)
    finally:
        if path != "-":
            os.close(fd)


def file_in(folder: str, name: str) -> str:
    """The path of a file of a folder. A link that leads out of the folder is refused."""
    path, root = os.path.join(folder, name), os.path.realpath(folder)
    if os.path.commonpath((os.path.realpath(path), root)) != root:
        raise DocumentUnreadable("is a link that leads out of its folder", at=path, hint="put the file itself there")
    return path


def _no_file(mode: int, path: str) -> DocumentUnreadable:
    what = next((name for is_it, name in _KINDS if is_it(mode)), "a device")
    return DocumentUnreadable(f"is {what}, not a file", at=path, hint="name a file, or - for standard input")


def _whole(fd: int, path: str) -> bytes:
    """In one piece: a list of pieces and their sum would take the memory twice."""
    try:
        with open(fd, "rb", buffering=0, closefd=False) as file:
            return file.readall()
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be read: {error.strerror or error}", at=path, hint="check the disk"
        ) from error


def _piped(fd: int, path: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := os.read(fd, 1 << 20):
            chunks.append(chunk)
            size += len(chunk)
            if size > _PIPED_MOST:
                raise DocumentUnreadable("more than 1 GiB came through", at=path, hint="give it as a file")
    except OSError as error:
        raise DocumentUnreadable(f"cannot be read: {error.strerror or error}", at=path, hint="give a file") from error
    return b"".join(chunks)
