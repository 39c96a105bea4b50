"""A new context pack to begin from: the smallest one that does useful work."""

import os
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.errors import ContextPlaneError, Family

__all__ = ["PackFileExists", "begin_pack", "starting_point"]

_STARTING_POINT = os.path.join(os.path.dirname(__file__), "starting_points", "support_refund.yaml")
_YAML = (".yaml", ".yml")


class PackFileExists(ContextPlaneError):
    """A new pack would replace a file that is there."""

    code: ClassVar[str] = "pack_file_exists"
    family: ClassVar[Family] = "conflict"


def starting_point(*, as_yaml: bool) -> bytes:
    """The pack as a file: with comments in YAML, without in JSON."""
    with open(_STARTING_POINT, "rb") as file:
        text = file.read()
    if as_yaml:
        return text
    from contextplane.authoring.author_yaml import read_yaml_file

    return msgspec.json.format(msgspec.json.encode(read_yaml_file(text).value), indent=2) + b"\n"


def begin_pack(path: str) -> bool:
    """Write it to a file, YAML or JSON by its extension; say whether it was not there before.

    A file that says anything else is never replaced.
    """
    text = starting_point(as_yaml=os.path.splitext(path)[1].lower() in _YAML)
    if os.path.lexists(path):
        if _holds(path, text):
            return False
        raise PackFileExists("there is something else already", at=path, hint="name another file")
    folder = os.path.dirname(os.path.abspath(path))
    with storage_errors(path):
        write_whole(os.path.abspath(path), text, staging=folder, disk=Disk())
    return True


def _holds(path: str, text: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(text) + 1) == text
    except OSError:
        return False
