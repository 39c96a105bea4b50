"""The folder `.ctx`: where it is, what its `config.json` says, and how it is laid out the first time.

It does not open the catalog or read objects. The names and modes are those of the reference program.
"""

import os
import re
from typing import ClassVar, Final, Literal

import msgspec

from contextplane.adapters.files.disk import Disk, open_to_read, storage_errors, write_whole
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Document, Value

__all__ = [
    "CATALOG",
    "FORMAT",
    "IN_DATABASE",
    "NAME",
    "REFERENCE_ROOT",
    "Home",
    "StoreConfig",
    "StoreConfigInvalid",
    "StoreExists",
    "StoreNotFound",
    "StoreTooNew",
    "discover",
]

NAME = ".ctx"
CATALOG = "catalog.db"
REFERENCE_ROOT = os.path.join(".agents", "mcp", "context_pack")
"""Where handoff packs are in a folder that has no store of its own or above it."""
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
_STORE_ID = re.compile(r"(?:store_[0-9a-f]{16})?")
_MOST = 64 * 1024


class StoreNotFound(ContextPlaneError):
    """There is no store here: no folder `.ctx` in the working folder or any folder above it."""

    code: ClassVar[str] = "store_not_found"
    family: ClassVar[Family] = "not_found"


class StoreExists(ContextPlaneError):
    """A store, or something else named `.ctx`, stands where a new store should be made."""

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


class _Format(Value, frozen=True):
    """What every version of `config.json` can be asked."""

    format: int = 0


class StoreConfig(Document, frozen=True, omit_defaults=True):
    """What `config.json` says. The reference program writes `version` alone and reads none of it."""

    version: str
    format: int = 0
    store_id: str = ""
    catalog: Literal["", "postgresql"] = ""


class Home(Value, frozen=True):
    """A store's folder."""

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
        """Read `config.json`, refusing what we cannot be sure to understand."""
        path = self.inside(_CONFIG)
        try:
            with storage_errors(path, reading=True), open(open_to_read(path), "rb") as file:
                data = file.read(_MOST)
        except ContextPlaneError as error:
            absent = not os.path.lexists(path)
            hint = "'ctx init' completes a store without one" if absent else "check what lies there"
            raise StoreConfigInvalid(error.message, at=path, hint=hint) from error
        try:
            # The format first, and alone: a newer one may have fields that we do not know.
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
        if _STORE_ID.fullmatch(config.store_id) is None:
            raise StoreConfigInvalid("the store id is not one of ours", at=path, hint="restore it from a copy")
        return config

    @property
    def staging(self) -> str:
        return self.inside("objects", ".staging")

    @property
    def guard(self) -> str:
        return self.inside("catalog.lock")

    def looks_like_a_store(self) -> bool:
        """Whether the folder is empty, or has what only a store has: then it may be completed."""
        return not os.listdir(self.path) or os.path.isdir(self.objects) or os.path.isfile(self.catalog)

    def lay_out(self, disk: Disk) -> None:
        """Make the folders that are not there yet."""
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
            write_whole(self.inside(_CONFIG), data, staging=self.staging, disk=disk)

    def hide_from_git(self, disk: Disk) -> None:
        """Keep a new store out of a repository that it lies in: what runs saw and said is not source code."""
        with storage_errors(self.path):
            write_whole(self.inside(".gitignore"), b"*\n", staging=self.staging, disk=disk)


def discover(start: str, override: str | None) -> Home:
    """Find the store: `override` when given, else the first folder `.ctx` at or above `start`."""
    if override:
        if not os.path.isdir(override):
            raise StoreNotFound(f"CTX_DIR is not a folder: {override}", at=override, hint="unset it, or run 'ctx init'")
        home, below = Home(path=os.path.abspath(override)), os.path.join(override, NAME)
        if not home.has_config() and os.path.isdir(below):
            raise StoreNotFound(
                "not a store", at=override, hint=f"CTX_DIR names the store itself: did you mean {below}?"
            )
        return home
    folder = os.path.abspath(start)
    not_a_folder = ""
    while True:
        candidate = os.path.join(folder, NAME)
        if os.path.isdir(candidate):
            return Home(path=candidate)
        if os.path.lexists(candidate):
            not_a_folder = not_a_folder or f"; {candidate} is not a folder"
        parent = os.path.dirname(folder)
        if parent == folder:
            told = f"no {NAME} here or in any folder above{not_a_folder}"
            raise StoreNotFound(told, at=start, hint=_way_out(start))
        folder = parent


def _way_out(start: str) -> str:
    handoffs = os.path.join(REFERENCE_ROOT, NAME)
    if not os.path.isdir(os.path.join(start, handoffs)):
        return "run 'ctx init'"
    return f"the handoff packs here are in {handoffs}: CTX_DIR={handoffs} ctx fsck; for everything else run 'ctx init'"
