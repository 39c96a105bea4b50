"""Templates: a new context pack to begin from, and a request to compile it with."""

import os
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.packs.files import is_yaml
from contextplane.errors import ContextPlaneError, Family

__all__ = ["PackFileExists", "template_text", "write_request_template", "write_template"]


_FOLDER = os.path.join(os.path.dirname(__file__), "starting_points")
_PACK, _REQUEST = "support_refund.yaml", "support_refund_request.yaml"


class PackFileExists(ContextPlaneError):
    """A new pack would replace a file that is there."""

    code: ClassVar[str] = "pack_file_exists"
    family: ClassVar[Family] = "conflict"


def template_text(*, as_yaml: bool, name: str = _PACK) -> bytes:
    """Return the text of the template pack, or of the request: with comments in YAML, without in JSON."""
    with open(os.path.join(_FOLDER, name), "rb") as file:
        text = file.read()
    if as_yaml:
        return text
    from contextplane.authoring.yaml_reader import read_yaml_file

    return msgspec.json.format(msgspec.json.encode(read_yaml_file(text).value), indent=2) + b"\n"


def write_template(path: str) -> bool:
    """Write the template pack to a file, YAML or JSON by its extension; return whether the file is new.

    A file with any other text is never replaced.
    """
    return _write(path, _PACK)


def write_request_template(path: str) -> bool:
    """Write a request to compile the template pack with; return whether the file is new."""
    return _write(path, _REQUEST)


def _write(path: str, name: str) -> bool:
    text = template_text(as_yaml=is_yaml(path), name=name)
    if os.path.lexists(path):
        if _has_text(path, text):
            return False
        raise PackFileExists("there is something else already", at=path, hint="name another file")
    folder = os.path.dirname(os.path.abspath(path))
    with storage_errors(path):
        write_atomically(os.path.abspath(path), text, staging=folder, disk=Disk())
    return True


def _has_text(path: str, text: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(text) + 1) == text
    except OSError:
        return False
