"""Writing what is expected of a golden case into its file.

A JSON file is written whole. A YAML file is its author's, with comments and an order of its own: `expected` is put at
its end, or where it stood before, and everything else stays as it is.
"""

import os
from typing import cast

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.app.authored import Authored, is_yaml
from contextplane.app.documents import document as document_of
from contextplane.errors import ContextPlaneError
from contextplane.model.canonical import Json, canonical

__all__ = ["text_with", "write_back"]

_INDENT = "  "


def text_with(file: Authored, case: dict[str, Json], expected: Json) -> bytes | None:
    """The file with what is expected of its case; None when a YAML file has a form that this cannot be put into."""
    document: dict[str, Json] = {**case, "expected": expected}
    if is_yaml(file.path):
        with document_of(file.path, piped=False) as source:
            text = bytes(source).decode()
        if not text.lstrip().startswith("{"):
            return _put(text, file, document)
    # A YAML file that is JSON in fact is written as such.
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def write_back(file: Authored, text: bytes) -> None:
    """Write a file anew, whole or not at all. What a link within the folder leads to is written, and not the link."""
    path = os.path.realpath(file.path)
    with storage_errors(file.path):
        write_whole(path, text, staging=os.path.dirname(path), disk=Disk())


def _put(text: str, file: Authored, document: dict[str, Json]) -> bytes | None:
    """The text with `expected` in it. It is read again, and counts only when it says just that."""
    from contextplane.authoring.author_yaml import read_yaml_file

    lines = text.splitlines(keepends=True)
    before, after = lines, list[str]()
    if "expected" in cast("dict[str, Json]", file.file.value):
        starts = sorted(file.place(f"/{name}").line for name in cast("dict[str, Json]", file.file.value))
        start = file.place("/expected").line
        end = next((line for line in starts if line > start), len(lines) + 1)
        # What is said above the next part belongs to it.
        while end - 2 >= start and lines[end - 2].lstrip()[:1] in {"", "#"}:
            end -= 1
        before, after = lines[: start - 1], lines[end - 1 :]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    told = msgspec.json.format(msgspec.json.encode(document["expected"]), indent=2).decode()
    made = "".join([*before, f"expected: {told}".replace("\n", f"\n{_INDENT}"), "\n", *after]).encode()
    try:
        return made if read_yaml_file(made).canonical == canonical(document) else None
    except ContextPlaneError:
        return None
