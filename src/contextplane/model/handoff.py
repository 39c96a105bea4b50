"""Handoff packs: what one agent passes on to another, anchored to lines of code. Frozen values; no rule lives here.

The stream of one handoff pack: what happened to it, and what is left of it. It reads no store.

How long handoff packs of a store can be had after their deadline, as far as it was ever told. It reads no store.
"""

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value

__all__ = [
    "DEFAULT_GRACE_SECONDS",
    "GRACE_STREAM",
    "HANDOFFS",
    "HANDOFF_REVISION",
    "MOST_GRACE_SECONDS",
    "SCHEMA_VERSION",
    "Anchor",
    "Diagram",
    "HandoffDocument",
    "HandoffHistory",
    "HandoffHistoryUnreadable",
    "HandoffPack",
    "Happened",
    "Kept",
    "Kind",
    "Lines",
    "Ref",
    "Section",
    "Status",
    "deleted_body",
    "folded",
    "grace_body",
    "kept_body",
    "longest_grace",
    "pack_bytes",
    "read_pack",
    "root_name",
    "stream_name",
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


HANDOFFS = "handoff/"
"""The prefix of the streams of handoff packs, and of the roots that their revisions are."""

Kind = Literal["written", "ttl", "imported", "deleted", "collected"]


class HandoffHistoryUnreadable(ContextPlaneError):
    """The stream of a handoff pack holds something that this version does not understand."""

    code: ClassVar[str] = "handoff_history_unreadable"
    family: ClassVar[Family] = "untrusted"


class Happened(Value, frozen=True):
    """One thing that happened. `digest` is that of the revision it made; deleting and collecting make none."""

    kind: Kind
    revision: int
    digest: Digest | None
    at: Timestamp


class Kept(Value, frozen=True):
    """One revision and its object."""

    revision: int
    digest: Digest


class HandoffHistory(Value, frozen=True):
    """What a stream says. `revisions` are those whose objects are kept, ascending; `last` is the newest ever made."""

    happened: tuple[Happened, ...]
    revisions: tuple[Kept, ...]
    last: int
    deleted: Timestamp | None
    collected: bool

    @property
    def newest(self) -> Kept | None:
        """The newest revision of a pack that is still there, deleted or not."""
        return self.revisions[-1] if self.revisions else None

    @property
    def alive(self) -> bool:
        """Neither deleted nor collected. Whether its time is over is said by its deadline."""
        return self.newest is not None and self.deleted is None


class _Kept(Document, frozen=True):
    revision: int
    digest: str
    at: str


class _Ended(Document, frozen=True):
    revision: int
    at: str


_kept = msgspec.json.Decoder(_Kept)
_ended = msgspec.json.Decoder(_Ended)
_MAKING: dict[str, Literal["written", "ttl", "imported"]] = {"written": "written", "ttl": "ttl", "imported": "imported"}
_ENDING: dict[str, Literal["deleted", "collected"]] = {"deleted": "deleted", "collected": "collected"}


def stream_name(handoff_id: HandoffId) -> str:
    return HANDOFFS + handoff_id.text


def root_name(handoff_id: HandoffId, revision: int) -> str:
    return f"{HANDOFFS}{handoff_id.text}/{revision}"


def kept_body(revision: int, digest: Digest, at: Timestamp) -> bytes:
    """The body of an event that made a revision."""
    return canonical({"revision": revision, "digest": str(digest), "at": str(at)})


def deleted_body(revision: int, at: Timestamp) -> bytes:
    """The body of an event that ended a pack at that revision."""
    return canonical({"revision": revision, "at": str(at)})


def folded(stream: str, events: Iterable[tuple[str, bytes]]) -> HandoffHistory:
    """What the (kind, body) events of a stream come to. Revisions rise; nothing is known of what is not understood."""
    happened: list[Happened] = []
    revisions: list[Kept] = []
    last = 0
    deleted: Timestamp | None = None
    collected = False
    for kind, body in events:
        event = _happened(stream, kind, body)
        happened.append(event)
        if event.digest is not None:
            if event.revision <= last:
                raise _unreadable(stream, f"revision {event.revision} comes after {last}")
            revisions.append(Kept(revision=event.revision, digest=event.digest))
            last, deleted, collected = event.revision, None, False
        elif event.kind == "deleted":
            deleted = event.at
        else:
            revisions, collected = [], True
    return HandoffHistory(
        happened=tuple(happened), revisions=tuple(revisions), last=last, deleted=deleted, collected=collected
    )


def _happened(stream: str, kind: str, body: bytes) -> Happened:
    try:
        if making := _MAKING.get(kind):
            kept = _kept.decode(body)
            return Happened(
                kind=making, revision=kept.revision, digest=Digest.parse(kept.digest), at=Timestamp.parse(kept.at)
            )
        if ending := _ENDING.get(kind):
            ended = _ended.decode(body)
            return Happened(kind=ending, revision=ended.revision, digest=None, at=Timestamp.parse(ended.at))
    except (msgspec.DecodeError, UnicodeDecodeError, ContextPlaneError) as error:
        raise _unreadable(stream, f"an event {kind!r} is not of its form: {error}") from error
    raise _unreadable(stream, f"an event of the unknown kind {kind!r}")


def _unreadable(stream: str, why: str) -> HandoffHistoryUnreadable:
    return HandoffHistoryUnreadable(why, at=stream, hint="a newer contextplane may understand it")


GRACE_STREAM = "handoff_grace"
"""The stream of grace times, each longer than the one before: nobody collects what somebody here still serves."""

DEFAULT_GRACE_SECONDS = 900
"""What counts unless somebody said otherwise."""

MOST_GRACE_SECONDS = 2**53 - 1
"""For ever: no longer one can be written down."""


class _Grace(Document, frozen=True):
    at: str
    grace_seconds: int


_grace = msgspec.json.Decoder(_Grace)


def grace_body(seconds: int, at: Timestamp) -> bytes:
    return canonical({"at": str(at), "grace_seconds": seconds})


def longest_grace(bodies: Iterable[bytes]) -> int:
    """The longest of all, and at least the default. One that is not understood may be any: then nothing is over."""
    longest = DEFAULT_GRACE_SECONDS
    for body in bodies:
        try:
            longest = max(longest, _grace.decode(body).grace_seconds)
        except ValueError:  # what msgspec raises
            return MOST_GRACE_SECONDS
    return longest
