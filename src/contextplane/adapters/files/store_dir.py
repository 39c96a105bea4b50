"""The folder `.ctx` of a store: its discovery, its `config.json`, and its first layout.

It does not open the catalog or read objects. The names and modes are those of the reference program.
"""

import os
from typing import ClassVar, Final, Literal

import msgspec

from contextplane.adapters.files.disk import Disk, open_regular_file, storage_errors, write_atomically
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Document, Value

__all__ = [
    "CATALOG",
    "FORMAT",
    "IN_DATABASE",
    "NAME",
    "REFERENCE_ROOT",
    "StoreConfig",
    "StoreConfigInvalid",
    "StoreDirectory",
    "StoreEntryIsLink",
    "StoreExists",
    "StoreNotFound",
    "StoreOfAnotherUser",
    "StoreTooNew",
    "discover_store",
    "reject_other_owner",
]

NAME = ".ctx"
CATALOG = "catalog.db"
REFERENCE_ROOT = os.path.join(".agents", "mcp", "context_pack")
"""Where handoff packs are in a folder without a store in it or above it."""
FORMAT = 1
IN_DATABASE: Final = "postgresql"
"""In `config.json`: the catalog is in a database, not in the folder."""
_VERSION = "0.1"
_CONFIG = "config.json"
_FOLDERS = {
    "objects": 0o777,
    "objects/.staging": 0o777,
    "packs": 0o777,
    "refs": 0o777,
    "drafts": 0o777,
    "keys": 0o700,
}
_PARTS = frozenset(_FOLDERS)
"""Names that must not be links. `config.json` is read without following one, and replaced whole."""
_CATALOG_PARTS = "catalog."
"""How the names of the catalog, of its logs and of its locks begin."""
_OBJECT_PARTS = (os.path.join("objects", ".staging"), os.path.join("objects", ".lock"))
_HEX = "0123456789abcdef"
_STORE_ID_PREFIX, _STORE_ID_LENGTH = "store_", 22
_MAX_CONFIG_BYTES = 64 * 1024


def _is_store_id(text: str) -> bool:
    digits = text.removeprefix(_STORE_ID_PREFIX)
    return len(text) == _STORE_ID_LENGTH and len(digits) == len(text) - len(_STORE_ID_PREFIX) and not digits.strip(_HEX)


class StoreNotFound(ContextPlaneError):
    """There is no store here: no folder `.ctx` in the working folder or any folder above it."""

    code: ClassVar[str] = "store_not_found"
    family: ClassVar[Family] = "not_found"


class StoreExists(ContextPlaneError):
    """A store, or something else named `.ctx`, is in the place of the new store."""

    code: ClassVar[str] = "store_exists"
    family: ClassVar[Family] = "conflict"


class StoreConfigInvalid(ContextPlaneError):
    """The store's `config.json` is missing, unreadable, or not one of ours."""

    code: ClassVar[str] = "store_config_invalid"
    family: ClassVar[Family] = "refused"


class StoreTooNew(ContextPlaneError):
    """The store was laid out by a newer contextplane. An old one refuses rather than guess."""

    code: ClassVar[str] = "store_format_newer"
    family: ClassVar[Family] = "refused"


class StoreOfAnotherUser(ContextPlaneError):
    """A store that was found by a search, and belongs to another user, who could have prepared it."""

    code: ClassVar[str] = "store_of_another_user"
    family: ClassVar[Family] = "refused"


class StoreEntryIsLink(ContextPlaneError):
    """A part of a store is a symbolic link, so that writes would go to another place."""

    code: ClassVar[str] = "store_entry_is_link"
    family: ClassVar[Family] = "refused"


class _Format(Value, frozen=True):
    """The field that every version of `config.json` has."""

    format: int = 0


class StoreConfig(Document, frozen=True, omit_defaults=True):
    """The content of `config.json`. The reference program writes only `version`, and reads nothing."""

    version: str
    format: int = 0
    store_id: str = ""
    catalog: Literal["", "postgresql"] = ""


class StoreDirectory(Value, frozen=True):
    """The folder of a store, and the paths in it."""

    path: str

    def inside(self, *parts: str) -> str:
        return os.path.join(self.path, *parts)

    @property
    def objects(self) -> str:
        return self.inside("objects")

    @property
    def packs(self) -> str:
        return self.inside("packs")

    @property
    def catalog(self) -> str:
        return self.inside(CATALOG)

    def has_config(self) -> bool:
        return os.path.lexists(self.inside(_CONFIG))

    def config(self) -> StoreConfig:
        """Read `config.json`. A newer format, or an unknown field, is refused."""
        path = self.inside(_CONFIG)
        try:
            with storage_errors(path, reading=True), open(open_regular_file(path), "rb") as file:
                data = file.read(_MAX_CONFIG_BYTES)
        except ContextPlaneError as error:
            absent = not os.path.lexists(path)
            hint = "'ctx init' completes a store without one" if absent else "check the file there"
            raise StoreConfigInvalid(error.message, at=path, hint=hint) from error
        try:
            # The format first, and alone: a newer one may have unknown fields.
            if (newer := msgspec.json.decode(data, type=_Format).format) > FORMAT:
                raise StoreTooNew(
                    f"this store has format {newer}, this contextplane knows {FORMAT}",
                    at=path,
                    hint="upgrade contextplane",
                )
            config = msgspec.json.decode(data, type=StoreConfig)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StoreConfigInvalid(
                f"not a store's configuration: {error}", at=path, hint="restore it from a copy"
            ) from error
        if config.version != _VERSION:
            raise StoreConfigInvalid(
                f"unknown store version {config.version!r}", at=path, hint=f"this one knows {_VERSION!r}"
            )
        if config.store_id and not _is_store_id(config.store_id):
            raise StoreConfigInvalid("the store id is not one of ours", at=path, hint="restore it from a copy")
        return config

    @property
    def staging(self) -> str:
        return self.inside("objects", ".staging")

    @property
    def catalog_lock(self) -> str:
        return self.inside("catalog.lock")

    def looks_like_store(self) -> bool:
        """Whether the folder is empty or has parts of a store, so that `init` may complete it."""
        return not os.listdir(self.path) or os.path.isdir(self.objects) or os.path.isfile(self.catalog)

    def reject_links(self) -> None:
        """Refuse a store of which a part is a link. The folder of the store itself may be one.

        The folders of objects by their first digits are checked when one of them is first written to.
        """
        with storage_errors(self.path, reading=True):
            with os.scandir(self.path) as entries:  # one call says of all entries whether they are links
                links = [entry.name for entry in entries if entry.is_symlink()]
            links += [name for name in _OBJECT_PARTS if not links and os.path.islink(self.inside(name))]
        for name in links:
            if name in _PARTS or name in _OBJECT_PARTS or name.startswith(_CATALOG_PARTS):
                raise StoreEntryIsLink(
                    "a part of a store cannot be a link",
                    at=self.inside(name),
                    hint=f"replace it by what it leads to, or move all of {NAME} there and make {NAME} a link",
                )

    def lay_out(self, disk: Disk) -> None:
        """Create the folders that are missing."""
        with storage_errors(self.path):
            if disk.make_folder(self.path):
                disk.sync_folder(os.path.dirname(self.path))
            for name, mode in _FOLDERS.items():
                disk.make_folder(self.inside(name), mode)

    def write_config(self, store_id: str, disk: Disk, *, catalog: Literal["", "postgresql"] = "") -> None:
        """Write `config.json` whole or not at all: its store id says that everything else is in place."""
        config = StoreConfig(version=_VERSION, format=FORMAT, store_id=store_id, catalog=catalog)
        data = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
        with storage_errors(self.path):
            write_atomically(self.inside(_CONFIG), data, staging=self.staging, disk=disk)

    def hide_from_git(self, disk: Disk) -> None:
        """Write a `.gitignore`, because recordings of runs do not belong into a repository."""
        with storage_errors(self.path):
            write_atomically(self.inside(".gitignore"), b"*\n", staging=self.staging, disk=disk)


def discover_store(start: str, override: str | None, *, sudo_uid: int | None = None) -> StoreDirectory:
    """Find the store: `override` when given, else the first folder `.ctx` at or above `start`.

    One that is found by the search must belong to this user; `sudo_uid` is the user who became root with sudo.
    """
    directory = _find_store(start, override, sudo_uid)
    directory.reject_links()
    return directory


def reject_other_owner(path: str, sudo_uid: int | None) -> None:
    """Refuse a store of another user. Root may use its own stores, and those of the user of sudo.

    If the folder is a link, both the link and the folder must be ours.
    """
    uid = os.geteuid()
    owners = {uid, sudo_uid} if uid == 0 and sudo_uid is not None else {uid}
    for status in (os.lstat(path), os.stat(path)):
        if status.st_uid not in owners:
            raise StoreOfAnotherUser(
                f"it belongs to another user (uid {status.st_uid})",
                at=path,
                hint=f"to use it on purpose, name it: CTX_DIR={path}",
            )


def _find_store(start: str, override: str | None, sudo_uid: int | None) -> StoreDirectory:
    if override:
        if not os.path.isdir(override):
            raise StoreNotFound(
                "not a folder",
                at=override,
                hint="check the path, or CTX_DIR if that names it; 'ctx init' makes a store",
            )
        directory, below = StoreDirectory(path=os.path.abspath(override)), os.path.join(override, NAME)
        if not directory.has_config() and os.path.isdir(below):
            raise StoreNotFound(
                "not a store", at=override, hint=f"CTX_DIR names the store itself: did you mean {below}?"
            )
        return directory
    folder = os.path.abspath(start)
    not_a_folder = ""
    while True:
        candidate = os.path.join(folder, NAME)
        if os.path.isdir(candidate):
            reject_other_owner(candidate, sudo_uid)
            return StoreDirectory(path=candidate)
        if os.path.lexists(candidate):
            not_a_folder = not_a_folder or f"; {candidate} is not a folder"
        parent = os.path.dirname(folder)
        if parent == folder:
            message = f"no {NAME} here or in any folder above{not_a_folder}"
            raise StoreNotFound(message, at=start, hint=_not_found_hint(start))
        folder = parent


def _not_found_hint(start: str) -> str:
    handoffs = os.path.join(REFERENCE_ROOT, NAME)
    if not os.path.isdir(os.path.join(start, handoffs)):
        return "run 'ctx init'"
    return f"the handoff packs here are in {handoffs}: CTX_DIR={handoffs} ctx fsck; for everything else run 'ctx init'"
