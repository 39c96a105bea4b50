"""Files of a workspace: the `Sources` port on a folder, confined by where a path really leads."""

import os
import stat
from collections.abc import Iterator

from contextplane.adapters.files.disk import chunks_of
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot

__all__ = ["FileSources", "below", "in_store"]

_HINT = "name a file that is there and may be read"
_STORE = ".ctx"


def below(folder: str, path: str) -> bool:
    """Whether a resolved path is this folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def in_store(real: str, *, root: str, store: str) -> bool:
    """Whether a resolved path leads into this store, or into anything below the root that is called like one."""
    if store and below(store, real):
        return True
    return below(root, real) and _STORE in os.path.relpath(real, root).split(os.sep)


class FileSources:
    """Relative paths are taken below the root; absolute ones must lie there. `apart`: a store, no part of it."""

    def __init__(self, root: str, *, apart: str | None = None) -> None:
        self._root = os.path.realpath(root)
        self._apart = None if apart is None else os.path.realpath(apart)

    def open(self, path: str) -> int:
        """A descriptor of the regular file that `path` names; who opened it closes it."""
        if "\0" in path:
            raise SourceUnreadable("a path with a NUL in it", at=path, hint=_HINT)
        real = _led_to(os.path.join(self._root, path))
        self._confine(real, path)
        try:
            fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise SourceUnreadable(f"cannot be read: {error.strerror or error}", at=path, hint=_HINT) from error
        try:
            # Where the descriptor leads counts, not where the path led a moment ago.
            self._confine(_place_of(fd) or real, path)
            _must_be_a_file(fd, path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def chunks(self, path: str) -> Iterator[bytes]:
        fd = self.open(path)
        try:
            yield from chunks_of(fd)
        finally:
            os.close(fd)

    def _confine(self, real: str, path: str) -> None:
        if self._apart is not None and in_store(real, root=self._root, store=self._apart):
            raise InsideStore("leads into the store", at=path, hint="name a file of the workspace")
        if not below(self._root, real):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must lie below {self._root}")


def _led_to(path: str) -> str:
    """Where a path leads, links resolved: asked of a descriptor that opens nothing, which costs a tenth of walking."""
    try:
        spot = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (AttributeError, OSError):  # not on this system, or there is no such file
        return os.path.realpath(path)
    try:
        return _place_of(spot) or os.path.realpath(path)
    finally:
        os.close(spot)


def _place_of(fd: int) -> str | None:
    """Where a descriptor leads, None where the system does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def _must_be_a_file(fd: int, path: str) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise SourceUnreadable("not a regular file", at=path, hint=_HINT)
