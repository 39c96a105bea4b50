"""Files of a workspace: the `Sources` port on a folder, confined by where a path really leads."""

import os
import stat
from collections.abc import Iterator

from contextplane.adapters.files.pump import chunks_of
from contextplane.ports.objects import SourceUnreadable
from contextplane.ports.sources import OutsideRoot

__all__ = ["FileSources"]


class FileSources:
    """Relative paths are taken below the root; absolute ones must lie there."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def open(self, path: str) -> int:
        """A descriptor of the regular file that `path` names; who opened it closes it."""
        if "\0" in path:
            raise SourceUnreadable("a path with a NUL in it", at=path)
        real = os.path.realpath(os.path.join(self._root, path))
        self._confine(real, path)
        try:
            fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise SourceUnreadable(f"cannot be read: {error.strerror or error}", at=path) from error
        try:
            # Where the descriptor leads counts, not where the path led a moment ago.
            self._confine(os.path.realpath(f"/proc/self/fd/{fd}") if os.path.isdir("/proc/self/fd") else real, path)
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
        if real != self._root and not real.startswith(self._root.rstrip(os.sep) + os.sep):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must lie below {self._root}")


def _must_be_a_file(fd: int, path: str) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise SourceUnreadable("not a regular file", at=path)
