"""Reading a document that a person named on the command line: a file, or what is piped in."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json_cut import Buffer

__all__ = ["DocumentUnreadable", "document"]

_MAPPED = 16 << 20
_PIPED_MOST = 1 << 30
_STANDARD_INPUT = 0


class DocumentUnreadable(ContextPlaneError):
    """A document that should be read is not there, is not a file, or may not be read."""

    code: ClassVar[str] = "document_unreadable"
    family: ClassVar[Family] = "not_found"


@contextmanager
def document(path: str) -> Iterator[Buffer]:
    """The bytes of a file, or of standard input for `-`. A very large file is looked at where it lies, not read in."""
    try:
        fd = _STANDARD_INPUT if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentUnreadable(f"cannot be read: {reason}", at=path, hint="check the path") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            yield _piped(fd, path)
        elif found.st_size > _MAPPED:
            with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
        else:
            # In one piece: a list of pieces and their sum would take the memory twice.
            with open(fd, "rb", buffering=0, closefd=False) as file:
                yield file.readall()
    finally:
        if path != "-":
            os.close(fd)


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
