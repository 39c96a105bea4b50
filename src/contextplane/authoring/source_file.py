"""An author's file, JSON or YAML: its value, its canonical bytes, and the place of each part.

The canonical bytes are the artifact. The places are for messages that point into the file.
"""

from functools import cached_property
from typing import ClassVar

from contextplane.authoring.positions import LineTable, Place, json_offsets
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import ArtifactKind, Overlay
from contextplane.model.document_kind import document_kind
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.model.value import Value

__all__ = [
    "MAX_BYTES",
    "MAX_PARTS",
    "AuthorFile",
    "AuthorFileTooLarge",
    "NamedFile",
    "NotAContextPack",
    "OverlayFile",
    "artifact_kind",
    "check_size",
    "read_json_file",
    "require_pack",
    "too_many_parts",
]


MAX_BYTES = 4 << 20
"""No pack that a person reviews has more bytes."""

MAX_PARTS = 100_000
"""Nor has one more parts: a thousand rules with all they need are a fifth of that."""

_LARGE = 1 << 20

_KINDS: dict[str, ArtifactKind] = {"overlay_id": "overlay", "catalog_id": "decision_catalog"}
"""The member that tells what kind of artifact a document is. A document with none of them is a pack."""

_OTHER_KINDS = (
    ("overlay_id", "it is an overlay", "'ctx lint PACK --overlay FILE' judges it together with its pack"),
    ("catalog_id", "it is a decision catalog", "'ctx lint FILE' judges it for itself"),
    ("approval_ceiling", "it describes an environment", "'ctx lint PACK --environment FILE' judges a pack by it"),
    *(
        (name, "it looks like the log of a run", "'ctx pack' makes an execution pack of a log")
        for name in ("model", "system_prompt", "prompts", "steps", "outputs")
    ),
)
"""By a member of this name: what a file holds that is no pack, and the command for such a file."""


_OTHER_HINT = "name a pack; 'ctx compile PACK --request FILE' takes a request, 'ctx new FILE' writes a pack"


class AuthorFileTooLarge(ContextPlaneError):
    """A file that is far larger than any document a person can review."""

    code: ClassVar[str] = "author_file_too_large"
    family: ClassVar[Family] = "refused"


class NotAContextPack(ContextPlaneError):
    """A file that holds something else, or does not have the form of a context pack, where one is needed."""

    code: ClassVar[str] = "not_a_context_pack"
    family: ClassVar[Family] = "refused"


class AuthorFile:
    """A file that was read: its value, its canonical bytes, and the place of each of its parts."""

    def __init__(self, value: Json, canonical_bytes: bytes, source: bytes | dict[str, Place]) -> None:
        self.value = value
        self.canonical = canonical_bytes
        self._source = source
        self._has_searched = False

    def place(self, at: str) -> Place:
        """Return the place of the part with this JSON Pointer; for a missing part, that of the part around it."""
        if isinstance(self._source, bytes) and len(self._source) > _LARGE and not self._has_searched:
            # The first place is searched for by itself. For a second one, a table of all places is made, which is slow.
            from contextplane.authoring.pointer_position import json_place  # noqa: PLC0415  most files are small

            self._has_searched = True
            return json_place(self._source, at)
        known = self._offsets if isinstance(self._source, bytes) else self._source
        while at and at not in known:
            at = at.rpartition("/")[0]
        if isinstance(self._source, bytes):
            return self._lines.place(self._offsets.get(at, 0))
        return self._source.get(at, Place(line=1, column=1))

    def with_value(self, value: Json) -> "AuthorFile":
        """Return the file with a value that was changed after reading; places stay those of the text."""
        return AuthorFile(value, self.canonical, self._source)

    def pointer(self, at: str) -> str:
        """Return the JSON Pointer in the text of a part of the value. A completed value has more parts."""
        return at

    @cached_property
    def _lines(self) -> LineTable:
        return LineTable(self._source if isinstance(self._source, bytes) else b"")

    @cached_property
    def _offsets(self) -> dict[str, int]:
        # Made when a place is asked for: a file without findings does not pay for it.
        return json_offsets(self._source) if isinstance(self._source, bytes) else {}


def read_json_file(data: bytes) -> AuthorFile:
    """Read one JSON document strictly. A text that parsers read differently is refused with its place."""
    check_size(data)
    if data.count(b",") > MAX_PARTS:
        raise too_many_parts()
    parsed = parse(data)
    return AuthorFile(parsed.value, parsed.canonical, data)


def too_many_parts() -> AuthorFileTooLarge:
    return AuthorFileTooLarge(f"has more than {MAX_PARTS} parts", hint="keep records and evidence elsewhere")


def check_size(data: bytes) -> None:
    """Refuse a file that is too large."""
    if len(data) > MAX_BYTES:
        raise AuthorFileTooLarge(
            f"has {len(data)} bytes; no document is larger than {MAX_BYTES}", hint="keep records and evidence elsewhere"
        )


class NamedFile(Value, frozen=True):
    """An author's file, and the path that it was given by."""

    path: str
    file: AuthorFile

    def place(self, at: str) -> Place:
        return self.file.place(at)

    def where(self, at: str) -> str:
        """Return the place of a part as editors read it: `refunds.yaml:12:3`."""
        place = self.place(at)
        return f"{self.path}:{place.line}:{place.column}"


class OverlayFile(NamedFile, frozen=True):
    """An author's overlay file, and the parsed overlay."""

    overlay: Overlay


def artifact_kind(source: NamedFile) -> ArtifactKind:
    """Return which kind of artifact a file holds, by the member with its id."""
    members = source.file.value if isinstance(source.file.value, dict) else {}
    kinds = [kind for name, kind in _KINDS.items() if name in members and "pack_meta" not in members]
    return kinds[0] if kinds else "context_pack"


def require_pack(source: NamedFile) -> NamedFile:
    """Return the same file if it may be a context pack; refuse one that plainly holds something else."""
    members = source.file.value if isinstance(source.file.value, dict) else {}
    for name, what, hint in _OTHER_KINDS:
        if name in members and "pack_meta" not in members:
            raise NotAContextPack(f"{what}, not a context pack", at=source.path, hint=hint)
    kind = document_kind(members)
    if kind is not None and "pack_meta" not in members:
        raise NotAContextPack(f"this is {kind}, not a context pack", at=source.path, hint=_OTHER_HINT)
    return source
