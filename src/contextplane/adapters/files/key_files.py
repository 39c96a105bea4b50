"""The folder `.ctx/keys/`: private keys, public keys, and what this client remembers of registries.

A file that others than its owner can access is refused. Files are written whole or not at all, and no key is replaced.
"""

import os
import re
import stat
from contextlib import suppress
from typing import ClassVar

from contextplane.adapters.files.disk import Disk, exposure, open_regular_file, storage_errors, write_atomically
from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "FileKeys",
    "KeyExists",
    "KeyExposed",
    "KeyNameInvalid",
    "KeyNotFound",
    "check_key_name",
    "read_key_file",
    "store_key_file",
]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PRIVATE, _PUBLIC, _MEMORY = ".key", ".pub", ".json"
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_MAX_MEMORY_BYTES = 16 * 1024 * 1024
_MAX_KEY_BYTES = 64 * 1024


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
    """The keys in one folder, as bytes. It does not parse them."""

    def __init__(self, folder: str, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or Disk()

    def names(self) -> list[str]:
        """List the names of all private keys, sorted."""
        if not self._check_folder():
            return []
        with storage_errors(self._folder, reading=True):
            files = os.listdir(self._folder)
        names = [name.removesuffix(_PRIVATE) for name in files if name.endswith(_PRIVATE)]
        return sorted(name for name in names if _NAME.fullmatch(name))

    def store_key(self, name: str, private: bytes, public: bytes) -> None:
        """Store a new key: both halves in one file, and a copy of the public half next to it."""
        path = self._path(name, _PRIVATE)
        with storage_errors(self._folder):
            self._disk.make_folder(self._folder, _FOLDER_MODE)
            self._check_folder()
            try:
                self._write(path, private + public, new=True)
            except FileExistsError as error:
                raise KeyExists(f"there is a key named {name!r} already", hint="choose another name") from error
            self._write(self.public_path(name), public)

    def read(self, name: str) -> bytes:
        """Read the file of a key: its private half, then its public one."""
        path = self._path(name, _PRIVATE)
        if not self._check_folder() or not os.path.lexists(path):
            raise KeyNotFound(
                f"no key named {name!r} here",
                at=path,
                hint="'ctx keys list' shows those that are; a file is named with its folder, such as ./FILE",
            )
        return _read_owner_only(path, _MAX_KEY_BYTES)

    def public_path(self, name: str) -> str:
        """Return the path of the copy of the public half, which users pass on."""
        return self._path(name, _PUBLIC)

    def memory_path(self, subject: str) -> str:
        """Return the file with what this client remembers of a subject: `keyring` or `registry`."""
        return os.path.join(self._folder, subject + _MEMORY)

    def recall(self, subject: str) -> bytes | None:
        path = self.memory_path(subject)
        if not self._check_folder() or not os.path.lexists(path):
            return None
        return _read_owner_only(path, _MAX_MEMORY_BYTES)

    def remember(self, subject: str, data: bytes) -> None:
        with storage_errors(self._folder):
            self._disk.make_folder(self._folder, _FOLDER_MODE)
            self._check_folder()
            self._write(self.memory_path(subject), data)

    def _path(self, name: str, suffix: str) -> str:
        check_key_name(name)
        return os.path.join(self._folder, name + suffix)

    def _check_folder(self) -> bool:
        """Return whether the folder exists; raise `KeyExposed` when others can access it."""
        try:
            status = os.lstat(self._folder)
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(status.st_mode):
            raise KeyExposed("not a folder", at=self._folder, hint="move it aside")
        _check_owner(status, self._folder, _FOLDER_MODE)
        return True

    def _write(self, path: str, data: bytes, *, new: bool = False) -> None:
        """Write a file that only its owner can access. Staged in the same folder: no other is private."""
        write_atomically(path, data, disk=self._disk, new=new, mode=_FILE_MODE)


def check_key_name(name: str) -> None:
    """Refuse a name that no key can have."""
    if _NAME.fullmatch(name) is None:
        raise KeyNameInvalid(
            f"not a name of a key: {name[:80]!r}", hint="lower-case letters, digits, _ and -, at most 64"
        )


def store_key_file(path: str, private: bytes, public: bytes, disk: Disk | None = None) -> str:
    """Store a new key outside of any store, and return the path of its public half.

    The file at `path` has both halves, and the file beside it the public one. Neither replaces another file, and a
    failure leaves neither. Only the owner can access the private half.
    """
    disk, path = disk or Disk(), os.path.abspath(path)
    files = {path: private + public, path + _PUBLIC: public}
    with storage_errors(path):
        for target in files:
            if os.path.lexists(target):
                raise _exists_error(target)
        tried: list[str] = []
        try:
            for target, data in files.items():
                tried.append(target)
                mode = _FILE_MODE if target == path else 0o644
                write_atomically(target, data, disk=disk, new=True, mode=mode)
        except BaseException as error:
            is_taken = isinstance(error, FileExistsError)  # by another program, just now: the file is not ours
            for target in tried[:-1] if is_taken else tried:
                with suppress(OSError):  # the first error counts
                    disk.remove(target)
            if is_taken:
                raise _exists_error(tried[-1]) from error
            raise
    return path + _PUBLIC


def _exists_error(path: str) -> KeyExists:
    return KeyExists("there is such a file already, and no key replaces it", at=path, hint="choose another name")


def read_key_file(path: str) -> bytes:
    """Read a private key from another place; its file must be as private as those in the folder."""
    if not os.path.lexists(path):
        raise KeyNotFound("no such file", at=path)
    return _read_owner_only(path, _MAX_KEY_BYTES)


def _read_owner_only(path: str, limit: int) -> bytes:
    """Read a file that only its owner can access. The mode is that of the open file, not of its name."""
    with storage_errors(path, reading=True), open(open_regular_file(path), "rb") as file:
        _check_owner(os.fstat(file.fileno()), path, _FILE_MODE)
        return file.read(limit)


def _check_owner(status: os.stat_result, path: str, mode: int) -> None:
    if (reason := exposure(status)) is not None:
        is_ours = status.st_uid == os.geteuid()
        hint = f"chmod {mode:o}; if others may have read it, revoke the key" if is_ours else "use a key of your own"
        raise KeyExposed(reason, at=path, hint=hint)
