"""Files of a workspace: the `Sources` port on a folder.

A path is confined by where it really leads, with links resolved.
"""

import os
import stat
from collections.abc import Iterator

from contextplane.adapters.files.disk import read_chunks
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.world import InsideStore, OutsideRoot

__all__ = ["FileSources", "is_below", "is_in_store"]

_HINT = "name a file that exists and can be read"
_STORE = ".ctx"


def is_below(folder: str, path: str) -> bool:
    """Whether a resolved path is this folder or inside it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def is_in_store(real: str, *, root: str, store: str) -> bool:
    """Whether a resolved path is in this store, or in any folder called `.ctx` below the root."""
    if store and is_below(store, real):
        return True
    return is_below(root, real) and _STORE in os.path.relpath(real, root).split(os.sep)


class FileSources:
    """The `Sources` port. Paths must lead below `root`, and not into `excluded_store`."""

    def __init__(self, root: str, *, excluded_store: str | None = None) -> None:
        self._given_root = os.path.abspath(root)
        self._root = os.path.realpath(root)
        self._excluded_store = None if excluded_store is None else os.path.realpath(excluded_store)

    def open(self, path: str) -> int:
        """Open the regular file at `path`; the caller closes the descriptor."""
        if "\0" in path:
            raise SourceUnreadable("a path with a NUL in it", at=path, hint=_HINT)
        real = _resolve(os.path.join(self._root, path))
        self._confine(real, path)
        try:
            fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise SourceUnreadable(f"cannot be read: {error.strerror or error}", at=path, hint=_HINT) from error
        try:
            # Check the open descriptor as well: the path may have changed since.
            self._confine(_descriptor_path(fd) or real, path)
            _require_regular_file(fd, path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def relative_path(self, path: str) -> str | None:
        """Return an absolute path as a relative one; None if it does not lead below the root."""
        path = os.path.normpath(path)
        folder, name = os.path.split(path)
        # A link in place of the file stays: reading it decides where it may lead.
        for root, absolute in ((self._given_root, path), (self._root, os.path.join(_resolve(folder), name))):
            if is_below(root, absolute):
                return os.path.relpath(absolute, root)
        return None

    def chunks(self, path: str) -> Iterator[bytes]:
        fd = self.open(path)
        try:
            yield from read_chunks(fd)
        finally:
            os.close(fd)

    def _confine(self, real: str, path: str) -> None:
        if self._excluded_store is not None and is_in_store(real, root=self._root, store=self._excluded_store):
            raise InsideStore("leads into the store", at=path, hint="name a file of the workspace")
        if not is_below(self._root, real):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must be below {self._root}")


def _resolve(path: str) -> str:
    """Resolve the links of a path, through a path descriptor: a tenth of the cost of `realpath`."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (AttributeError, OSError):  # unsupported here, or no such file
        return os.path.realpath(path)
    try:
        return _descriptor_path(fd) or os.path.realpath(path)
    finally:
        os.close(fd)


def _descriptor_path(fd: int) -> str | None:
    """Return the path of a descriptor, None where the system does not provide it."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None


def _require_regular_file(fd: int, path: str) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise SourceUnreadable("not a regular file", at=path, hint=_HINT)
