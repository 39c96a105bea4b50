"""The folder of keys, `.ctx/keys/`: private keys, their public halves, and what this client knows of catalogs.

Nobody but their owner can reach any of it, or it is refused. What is written is whole or not there, and no key is ever
replaced.
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from contextplane.adapters.files.disk import Disk, fresh_name, open_to_read, storage_errors
from contextplane.errors import ContextPlaneError, Family

__all__ = ["FileKeys", "KeyExists", "KeyExposed", "KeyNameInvalid", "KeyNotFound", "read_key_file"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PRIVATE, _PUBLIC, _MEMORY = ".key", ".pub", ".json"
_FILE_MODE, _FOLDER_MODE, _OTHERS = 0o600, 0o700, 0o077
_MOST = 16 * 1024 * 1024
_MOST_KEY = 64 * 1024


class KeyNameInvalid(ContextPlaneError):
    """A name that no key can have."""

    code: ClassVar[str] = "key_name_invalid"
    family: ClassVar[Family] = "usage"


class KeyExists(ContextPlaneError):
    """A key of this name is there already, and keys are never replaced."""

    code: ClassVar[str] = "key_exists"
    family: ClassVar[Family] = "conflict"


class KeyNotFound(ContextPlaneError):
    """There is no key of this name, or no such file."""

    code: ClassVar[str] = "key_not_found"
    family: ClassVar[Family] = "not_found"


class KeyExposed(ContextPlaneError):
    """A key file, or the folder of keys, that others than its owner can reach, or that is not ours."""

    code: ClassVar[str] = "key_file_exposed"
    family: ClassVar[Family] = "refused"


class FileKeys:
    """The keys in one folder. It hands out bytes; what they mean is nothing to it."""

    def __init__(self, folder: str, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or Disk()

    def names(self) -> list[str]:
        """The names of all private keys, in order."""
        if not self._is_there():
            return []
        with storage_errors(self._folder, reading=True):
            found = os.listdir(self._folder)
        names = [name.removesuffix(_PRIVATE) for name in found if name.endswith(_PRIVATE)]
        return sorted(name for name in names if _NAME.fullmatch(name))

    def keep(self, name: str, private: bytes, public: bytes) -> None:
        """Keep a new key under a name, both halves in one file; a copy of the public one lies beside it."""
        path = self._path(name, _PRIVATE)
        with storage_errors(self._folder):
            self._disk.make_folder(self._folder, _FOLDER_MODE)
            self._is_there()
            try:
                self._write(path, private + public, self._disk.rename_new)
            except FileExistsError as error:
                raise KeyExists(f"there is a key named {name!r} already", hint="choose another name") from error
            self._write(self.path_of(name), public, self._disk.replace)

    def read(self, name: str) -> bytes:
        """The file of a key: its private half, then its public one."""
        path = self._path(name, _PRIVATE)
        if not self._is_there() or not os.path.lexists(path):
            raise KeyNotFound(f"no key named {name!r} here", at=path, hint="'ctx keys list' shows those that are")
        return _owner_only(path, _MOST_KEY)

    def path_of(self, name: str) -> str:
        """Where the copy of the public half lies, to be handed on."""
        return self._path(name, _PUBLIC)

    def memory(self, of: str) -> str:
        """The file in which this client keeps what it knows of something: the keyring, the registry."""
        return os.path.join(self._folder, of + _MEMORY)

    def remembered(self, of: str) -> bytes | None:
        path = self.memory(of)
        if not self._is_there() or not os.path.lexists(path):
            return None
        return _owner_only(path, _MOST)

    def remember(self, of: str, data: bytes) -> None:
        with storage_errors(self._folder):
            self._disk.make_folder(self._folder, _FOLDER_MODE)
            self._is_there()
            self._write(self.memory(of), data, self._disk.replace)

    def _path(self, name: str, suffix: str) -> str:
        if _NAME.fullmatch(name) is None:
            raise KeyNameInvalid(
                f"not a name of a key: {name[:80]!r}", hint="lower-case letters, digits, _ and -, at most 64"
            )
        return os.path.join(self._folder, name + suffix)

    def _is_there(self) -> bool:
        """Whether the folder is there; refused when others can reach into it."""
        try:
            found = os.lstat(self._folder)
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            raise KeyExposed("not a folder", at=self._folder, hint="move it aside")
        _check_owner(found, self._folder, _FOLDER_MODE)
        return True

    def _write(self, path: str, data: bytes, name_it: Callable[[str, str], None]) -> None:
        """Write a file whole and durably. It is staged in the folder itself: no other place is closed to others."""
        staged = os.path.join(self._folder, f".{fresh_name()}")
        fd = self._disk.create(staged, _FILE_MODE)
        try:
            try:
                self._disk.write_all(fd, data)
                self._disk.sync(fd)
            finally:
                os.close(fd)
            name_it(staged, path)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what counts
                self._disk.remove(staged)
            raise
        self._disk.sync_folder(self._folder)


def read_key_file(path: str) -> bytes:
    """A private key from a file that its owner keeps somewhere else, with the same rights."""
    if not os.path.lexists(path):
        raise KeyNotFound("no such file", at=path)
    return _owner_only(path, _MOST_KEY)


def _owner_only(path: str, most: int) -> bytes:
    """The bytes of a file that only we can reach. Its rights are those of the open file, not of its name."""
    with storage_errors(path, reading=True), open(open_to_read(path), "rb") as file:
        _check_owner(os.fstat(file.fileno()), path, _FILE_MODE)
        return file.read(most)


def _check_owner(found: os.stat_result, path: str, mode: int) -> None:
    if found.st_mode & _OTHERS:
        raise KeyExposed(
            f"others can reach it (mode {stat.S_IMODE(found.st_mode):o})",
            at=path,
            hint=f"chmod {mode:o}; if somebody may have read it, revoke the key",
        )
    if found.st_uid != os.geteuid():
        raise KeyExposed("it belongs to somebody else", at=path, hint="use a key of your own")
