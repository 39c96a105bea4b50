"""What this client remembers of a store, outside of the store.

So a person who can write the store, and nothing else, cannot change it. Each store has one file, named by a hash of the
path of its folder, in a folder that only this user can access. Files are written whole or not at all. A file that
others can reach is refused, as is one that cannot be read.

A user without a place to write to can still read stores: then nothing is remembered, and `save` returns False.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import (
    Disk,
    exposure,
    hold_lock,
    open_regular_file,
    storage_errors,
    write_atomically,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Document
from contextplane.ports.catalog import CatalogBusy
from contextplane.ports.objects import ObjectObstructed, StorageFull, StorageReadOnly

__all__ = ["ClientState", "ClientStateInvalid", "MirrorMemory", "StoreMemory"]

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_NAME_DIGITS = 32
_MAX_BYTES = 16 * 1024 * 1024
_LOCK = "lock"
_LOCK_SECONDS = 10.0


class ClientStateInvalid(ContextPlaneError):
    """The file in which this client keeps what it knows of a store is unreadable, or not private to it."""

    code: ClassVar[str] = "client_state_invalid"
    family: ClassVar[Family] = "untrusted"


class MirrorMemory(Document, frozen=True, omit_defaults=True):
    """What a client remembers of another store whose versions were imported into this one.

    - `note`: the newest checkpoint that was imported, as it was signed.
    - `trust_root`: what the user trusts for that store, if not the trust root of this one.
    - `bundles`: the digest of the bundle of each version.
    """

    note: str = ""
    trust_root: tuple[str, ...] = ()
    bundles: dict[str, str] = msgspec.field(default_factory=dict)


class StoreMemory(Document, frozen=True, omit_defaults=True):
    """What a client remembers of one store.

    - `path`: the store's folder, for people. A file about another path is refused.
    - `origin`: the log that the store had.
    - `note`: the highest checkpoint that was seen, as it was signed. `voids`: the number of void entries in its log;
      None if it is not known.
    - `keyring_seq`, `keyring_head`: the number of events of the keyring, and the digest of the last one.
    - `trust_root`: what the user trusts without having seen it here, as it was typed.
    - `judged`: digests that were verified, and need not be again.
    - `mirrors`: other stores by their origin.
    """

    path: str
    origin: str = ""
    note: str = ""
    voids: int | None = None
    keyring_seq: int = 0
    keyring_head: str = ""
    trust_root: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    mirrors: dict[str, MirrorMemory] = msgspec.field(default_factory=dict)


def _place_of(store_path: str) -> str:
    """Return the place of a store. A link in its place does not lead to another memory."""
    folder, name = os.path.split(os.path.abspath(store_path))
    return os.path.join(os.path.realpath(folder), name)


class ClientState:
    """The memory of one store: `folder` holds those of all stores, `store_path` is the store's folder.

    Without a folder nothing is remembered. A store that is moved is a new one.
    """

    def __init__(self, folder: str | None, store_path: str, disk: Disk | None = None) -> None:
        real = os.fsencode(_place_of(store_path))
        self._folder = None if folder is None else os.path.abspath(folder)
        self._disk = disk or Disk()
        self._store = real.decode(errors="backslashreplace")
        self.path = os.path.join(self._folder or "", f"{hashlib.sha256(real).hexdigest()[:_NAME_DIGITS]}.json")

    def load(self) -> StoreMemory:
        """Return what is remembered; a memory without content if there is none."""
        if not self._check_folder():
            return StoreMemory(path=self._store)
        try:
            with storage_errors(self.path, reading=True), open(open_regular_file(self.path), "rb") as file:
                reason = exposure(os.fstat(file.fileno()))
                data = file.read(_MAX_BYTES + 1)
        except ObjectObstructed as error:
            raise self._invalid("a link, or something else that is not a file") from error
        except ContextPlaneError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return StoreMemory(path=self._store)
            raise self._invalid(error.message) from error
        if reason is not None:
            raise self._invalid(reason)
        return self._parse(data)

    def save(self, memory: StoreMemory) -> bool:
        """Replace what is remembered; return whether it was written. False: there is no place to write to."""
        return self._write(lambda: memory)

    def update(self, change: Callable[[StoreMemory], StoreMemory]) -> bool:
        """Change what is remembered, and return whether that is on disk now.

        No other process or thread changes it between the memory that `change` gets and the one that it returns.
        """

        def next_memory() -> StoreMemory | None:
            memory = self.load()
            after = change(memory)
            return None if after == memory else after

        return self._write(next_memory)

    def forget(self) -> None:
        """Remove what is remembered, readable or not."""
        with storage_errors(self.path), suppress(FileNotFoundError, NotADirectoryError):
            self._disk.remove(self.path)

    def _write(self, memory: Callable[[], StoreMemory | None]) -> bool:
        """Write under the lock of the folder; None changes nothing."""
        if self._folder is None or not self._make_folder(self._folder):
            return False
        lock = os.path.join(self._folder, _LOCK)
        try:
            with (
                storage_errors(self.path),
                hold_lock(lock, exclusive=True, timeout=_LOCK_SECONDS, mode=_FILE_MODE),
            ):
                content = memory()
                if content is None:
                    return True
                data = msgspec.json.encode(msgspec.structs.replace(content, path=self._store))
                if len(data) > _MAX_BYTES:
                    return False  # it could not be read again
                write_atomically(self.path, data, disk=self._disk, mode=_FILE_MODE)
        except (StorageReadOnly, StorageFull, CatalogBusy):
            return False
        return True

    def _make_folder(self, folder: str) -> bool:
        """Create the folder and those above it; return whether it is there. Raise if it is not private."""
        if self._check_folder():
            return True
        missing = []
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        try:
            for name in reversed(missing):
                self._disk.make_folder(name, _FOLDER_MODE)
                self._disk.sync_folder(os.path.dirname(name))
        except OSError:
            return False
        return self._check_folder()

    def _check_folder(self) -> bool:
        """Return whether the folder exists; raise when others can access it."""
        if self._folder is None:
            return False
        try:
            status = os.lstat(self._folder)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False  # such as the home of an account that has none, or of another user
        reason = exposure(status) if stat.S_ISDIR(status.st_mode) else "not a folder"
        if reason is not None:
            raise ClientStateInvalid(
                reason, at=self._folder, hint=f"chmod {_FOLDER_MODE:o} it, or name another with XDG_STATE_HOME"
            )
        return True

    def _parse(self, data: bytes) -> StoreMemory:
        if len(data) > _MAX_BYTES:
            raise self._invalid(f"more than {_MAX_BYTES} bytes")
        try:
            memory = msgspec.json.decode(data, type=StoreMemory)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self._invalid(f"it was changed: {error}") from error
        if memory.path != self._store:
            raise self._invalid(f"it is about another store: {memory.path[:200]!r}")
        return memory

    def _invalid(self, reason: str) -> ClientStateInvalid:
        return ClientStateInvalid(
            reason, at=self.path, hint="remove it to trust the store as it is, after a look at why it changed"
        )
