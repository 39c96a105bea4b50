"""A lock on a store's catalog: shared by all who have it open, held alone by whoever puts another in its place."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.ports.catalog import CatalogBusy

__all__ = ["guarded"]

_ROUND = 0.05


@contextmanager
def guarded(path: str, *, alone: bool, patience: float) -> Iterator[None]:
    """Hold the lock file `path`. Where it cannot be made because nothing can be written, there is nothing to guard."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        if alone:
            raise
        yield
        return
    try:
        _take(fd, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, path, patience)
        yield
    finally:
        os.close(fd)


def _take(fd: int, how: int, path: str, patience: float) -> None:
    """Ask again and again instead of waiting in the system, which could not be given up."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise CatalogBusy(
                    "another process has the catalog open", at=path, hint="try again when it has finished"
                ) from error
            time.sleep(_ROUND)
        else:
            return
