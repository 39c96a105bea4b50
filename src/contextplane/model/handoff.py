"""Handoff packs: what one agent passes on to another, anchored to lines of code. Frozen values; no rule lives here."""

from typing import Literal

import msgspec

from contextplane.model.canonical import Json, canonical
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = [
    "HANDOFF_REVISION",
    "SCHEMA_VERSION",
    "Anchor",
    "Diagram",
    "HandoffDocument",
    "HandoffPack",
    "Lines",
    "Ref",
    "Section",
    "Status",
    "pack_bytes",
    "read_pack",
]

SCHEMA_VERSION = 2
"""The form of a stored handoff pack, the same as the reference server's."""

HANDOFF_REVISION = "handoff_revision"
"""The kind of the object that one revision is."""

Status = Literal["draft", "finalized"]


class Lines(Value, frozen=True):
    """A range of lines, counted from 1, both ends included."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start + 1


class Anchor(Value, frozen=True):
    """What the lines of a ref were when it was written, so that they are found again after an edit.

    `digest` is of the lines, `before` and `after` of up to three lines on either side (`""` where the file ends).
    `probe` is the short digest of the line that tells most, `probe_at` its distance from the first line.
    """

    digest: str
    before: str
    after: str
    probe: str
    probe_at: int


class Ref(Value, frozen=True):
    """A finding's place in the code. Without an anchor only its line numbers are known."""

    key: str
    path: str
    lines: Lines
    title: str | None = None
    why: str | None = None
    group: str | None = None
    anchor: Anchor | None = None


class Diagram(Value, frozen=True):
    """A mermaid drawing. Its text is not checked."""

    key: str
    title: str
    mermaid: str
    why: str | None = None


class Section(Value, frozen=True):
    """One part of a pack; its key is unique in the pack, those of refs and of diagrams within the section."""

    key: str
    title: str
    description: str | None = None
    refs: tuple[Ref, ...] = ()
    diagrams: tuple[Diagram, ...] = ()


class HandoffDocument(Value, frozen=True):
    """What an agent writes: the whole content of a pack. Its refs have no anchors yet."""

    sections: tuple[Section, ...]
    name: str | None = None
    title: str | None = None
    brief: str | None = None
    tags: tuple[str, ...] = ()
    ttl_minutes: int | None = None
    status: Status = "draft"


class HandoffPack(Value, frozen=True):
    """One revision of a handoff pack, as it is stored and returned. Times are RFC 3339 in UTC."""

    id: str
    name: str | None
    title: str | None
    brief: str | None
    status: Status
    tags: tuple[str, ...]
    sections: tuple[Section, ...]
    revision: int
    created_at: str
    updated_at: str
    expires_at: str
    schema_version: int = SCHEMA_VERSION

    @property
    def handoff_id(self) -> HandoffId:
        return HandoffId(self.id)

    @property
    def expires(self) -> Timestamp:
        return Timestamp.parse(self.expires_at)

    @property
    def updated(self) -> Timestamp:
        return Timestamp.parse(self.updated_at)

    @property
    def heading(self) -> str:
        """What it is called."""
        return self.title or self.name or "Untitled"


_decoder = msgspec.json.Decoder(HandoffPack)


def pack_bytes(pack: HandoffPack) -> bytes:
    """The canonical bytes of a revision: the object it is."""
    value: Json = msgspec.to_builtins(pack)
    return canonical(value)


def read_pack(data: bytes) -> HandoffPack:
    """A revision from its stored bytes. `msgspec.DecodeError` when they are none."""
    return _decoder.decode(data)
