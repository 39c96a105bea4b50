"""A new context pack to begin from, and a request to compile it with."""

import os
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.app.packs.files import _YAML
from contextplane.errors import ContextPlaneError, Family

__all__ = ["PackFileExists", "begin_pack", "begin_request", "starting_point"]


_FOLDER = os.path.join(os.path.dirname(__file__), "starting_points")


_PACK, _REQUEST = "support_refund.yaml", "support_refund_request.yaml"


class PackFileExists(ContextPlaneError):
    """A new pack would replace a file that is there."""

    code: ClassVar[str] = "pack_file_exists"
    family: ClassVar[Family] = "conflict"


def starting_point(*, as_yaml: bool, name: str = _PACK) -> bytes:
    """The pack as a file, or the request: with comments in YAML, without in JSON."""
    with open(os.path.join(_FOLDER, name), "rb") as file:
        text = file.read()
    if as_yaml:
        return text
    from contextplane.authoring.yaml_reader import read_yaml_file

    return msgspec.json.format(msgspec.json.encode(read_yaml_file(text).value), indent=2) + b"\n"


def begin_pack(path: str) -> bool:
    """Write it to a file, YAML or JSON by its extension; say whether it was not there before.

    A file that says anything else is never replaced.
    """
    return _begin(path, _PACK)


def begin_request(path: str) -> bool:
    """The same of a request to compile that pack with."""
    return _begin(path, _REQUEST)


def _begin(path: str, name: str) -> bool:
    text = starting_point(as_yaml=os.path.splitext(path)[1].lower() in _YAML, name=name)
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
