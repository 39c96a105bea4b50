"""The file that an author edits, JSON or YAML: its value, its canonical bytes, and where each part stands.

Where the parts of a JSON text stand, for findings that point into an author's file.
"""

from functools import cached_property
from typing import ClassVar

from contextplane.authoring.positions import Lines, Place, json_offsets
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.model.value import Value

__all__ = [
    "LARGEST",
    "MOST_PARTS",
    "AuthorFile",
    "AuthorFileTooLarge",
    "Authored",
    "OverlayFile",
    "bounded",
    "read_json_file",
    "too_many_parts",
]


LARGEST = 4 << 20
"""No pack that a person reviews is larger."""

MOST_PARTS = 100_000
"""Nor has one more parts: a thousand rules with all they need are a fifth of that."""

_LARGE = 1 << 20


class AuthorFileTooLarge(ContextPlaneError):
    """A file that is far larger than any document a person can review."""

    code: ClassVar[str] = "author_file_too_large"
    family: ClassVar[Family] = "refused"


class AuthorFile:
    """What was read. The canonical bytes are the artifact; the file is only how it is edited."""

    def __init__(self, value: Json, canonical_bytes: bytes, source: bytes | dict[str, Place]) -> None:
        self.value = value
        self.canonical = canonical_bytes
        self._source = source
        self._asked = False

    def place(self, at: str) -> Place:
        """Where the part with this JSON Pointer stands; for one that is missing, where it would."""
        if isinstance(self._source, bytes) and len(self._source) > _LARGE and not self._asked:
            # One place is looked for by itself. Who asks for more is given them out of a table of all, which is dear.
            from contextplane.authoring.pointer_position import json_place  # noqa: PLC0415  most files are small

            self._asked = True
            return json_place(self._source, at)
        known = self._offsets if isinstance(self._source, bytes) else self._source
        while at and at not in known:
            at = at.rpartition("/")[0]
        if isinstance(self._source, bytes):
            return self._lines.place(self._offsets.get(at, 0))
        return self._source.get(at, Place(line=1, column=1))

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._source if isinstance(self._source, bytes) else b"")

    @cached_property
    def _offsets(self) -> dict[str, int]:
        # Only when something is to be pointed at: a file without findings does not pay for it.
        return json_offsets(self._source) if isinstance(self._source, bytes) else {}


def read_json_file(data: bytes) -> AuthorFile:
    """Read one JSON document strictly. What cannot be read the same way by everybody is refused with its place."""
    if bounded(data).count(b",") > MOST_PARTS:
        raise too_many_parts()
    parsed = parse(data)
    return AuthorFile(parsed.value, parsed.canonical, data)


def too_many_parts() -> AuthorFileTooLarge:
    return AuthorFileTooLarge(f"has more than {MOST_PARTS} parts", hint="keep records and evidence elsewhere")


def bounded(data: bytes) -> bytes:
    """The same bytes, unless they are too many."""
    if len(data) > LARGEST:
        raise AuthorFileTooLarge(
            f"has {len(data)} bytes; no document is larger than {LARGEST}", hint="keep records and evidence elsewhere"
        )
    return data


class Authored(Value, frozen=True):
    """A file, and the name that it was given by."""

    path: str
    file: AuthorFile

    def place(self, at: str) -> Place:
        return self.file.place(at)

    def where(self, at: str) -> str:
        """The place of a part as editors take it: `refunds.yaml:12:3`."""
        place = self.place(at)
        return f"{self.path}:{place.line}:{place.column}"


class OverlayFile(Authored, frozen=True):
    """The same of an overlay, and the overlay."""

    overlay: Overlay
