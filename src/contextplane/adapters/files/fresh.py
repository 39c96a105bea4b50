"""A new file under a name that nobody has: there whole and durable, or not at all, also when its writer is killed.

Where the system can, it has no name at all before it is whole. Where it cannot, it has one that begins with
`.ctx-export-`, and only there a killed process leaves something behind.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from contextplane.adapters.files.disk import Disk, fresh_name, open_to_read
from contextplane.adapters.files.pump import CHUNK

__all__ = ["FreshFile", "fresh_file"]

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
        with open(ours, "rb") as one, open(open_to_read(self._target), "rb") as other:
            while chunk := one.read(CHUNK):
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
