"""Handoff packs: what one agent passes on to another, anchored to lines of code.

Frozen values, the bytes of a stored revision, and the event streams: one per pack, and one of grace times. Nothing here
reads a store.
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
    "MAX_GRACE_SECONDS",
    "SCHEMA_VERSION",
    "Anchor",
    "Diagram",
    "HandoffDocument",
    "HandoffEvent",
    "HandoffEventKind",
    "HandoffHistory",
    "HandoffHistoryUnreadable",
    "HandoffPack",
    "HandoffProvenance",
    "KeptRevision",
    "LineRange",
    "Ref",
    "Section",
    "Status",
    "end_event_body",
    "extend_history",
    "grace_event_body",
    "pack_bytes",
    "parse_event",
    "parse_grace",
    "read_pack",
    "revision_event_body",
    "root_name",
    "stream_name",
]

SCHEMA_VERSION = 2
"""The form of a stored handoff pack, the same as the reference server's."""

HANDOFF_REVISION = "handoff_revision"
"""The kind of the object of a revision."""

_SHOWN_COMMIT = 12

Status = Literal["draft", "finalized"]


class LineRange(Value, frozen=True):
    """A range of lines, counted from 1, both ends included."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start + 1


class Anchor(Value, frozen=True):
    """What the lines of a ref were when it was written, to find them again after an edit.

    `digest` is of the lines, `before` and `after` of up to three lines on either side (`""` where the file ends).
    `probe` is the short digest of the most distinctive line, `probe_at` its distance from the first line.
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
    lines: LineRange
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
    """The whole content of a pack as an agent writes it. Its refs have no anchors yet."""

    sections: tuple[Section, ...]
    name: str | None = None
    title: str | None = None
    brief: str | None = None
    tags: tuple[str, ...] = ()
    ttl_minutes: int | None = None
    status: Status = "draft"


class HandoffProvenance(Value, frozen=True, omit_defaults=True):
    """Who wrote a revision, and on which code. All of it is a claim of the writer, and gives no access.

    `client`: the program, as it named itself. `user`: the user of the system. `dirty`: whether tracked files differed
    from the commit. What is not known is left out.
    """

    client: str | None = None
    user: str | None = None
    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None

    @property
    def author_text(self) -> str:
        """The program and the user, for people; empty if neither is known."""
        user = f"user {self.user}" if self.user else ""
        return f"{self.client} ({user})" if self.client and user else self.client or user

    @property
    def commit_text(self) -> str:
        """The commit, its branch and its state, for people; empty if there is no repository."""
        notes = [f"branch {self.branch}"] if self.branch else []
        notes += ["with uncommitted changes"] if self.dirty else []
        commit = self.commit[:_SHOWN_COMMIT] if self.commit else "no commit"
        return f"{commit} ({', '.join(notes)})" if notes else commit if self.commit else ""


class HandoffPack(Value, frozen=True):
    """One revision of a handoff pack, as it is stored and returned. Times are RFC 3339 in UTC.

    Revisions of earlier releases, and imported ones, have no `provenance`.
    """

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
    provenance: HandoffProvenance | msgspec.UnsetType = msgspec.UNSET

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
        """The title, else the name, else "Untitled"."""
        return self.title or self.name or "Untitled"


_decoder = msgspec.json.Decoder(HandoffPack)


def pack_bytes(pack: HandoffPack) -> bytes:
    """The canonical bytes of a revision, which are its object."""
    value: Json = msgspec.to_builtins(pack)
    return canonical(value)


def read_pack(data: bytes) -> HandoffPack:
    """Parse a stored revision. `msgspec.DecodeError` when the bytes are not one."""
    return _decoder.decode(data)


# --- The event stream of a pack ---

HANDOFFS = "handoff/"
"""The prefix of the streams of handoff packs, and of the roots of their revisions."""

HandoffEventKind = Literal["written", "ttl", "imported", "deleted", "collected"]


class HandoffHistoryUnreadable(ContextPlaneError):
    """The stream of a handoff pack holds something that this version does not understand."""

    code: ClassVar[str] = "handoff_history_unreadable"
    family: ClassVar[Family] = "untrusted"


class HandoffEvent(Value, frozen=True):
    """One event of a pack. `digest`: the revision that it made; deleting and collecting make none."""

    kind: HandoffEventKind
    revision: int
    digest: Digest | None
    at: Timestamp


class KeptRevision(Value, frozen=True):
    """A revision whose object is kept, and the digest of that object."""

    revision: int
    digest: Digest


class HandoffHistory(Value, frozen=True):
    """The state of a pack after all events of its stream.

    `revisions` are those whose objects are kept, ascending; `last` is the number of the newest ever made.
    """

    events: tuple[HandoffEvent, ...] = ()
    revisions: tuple[KeptRevision, ...] = ()
    last: int = 0
    deleted: Timestamp | None = None
    collected: bool = False

    @property
    def newest(self) -> KeptRevision | None:
        """The newest revision that is kept, whether or not the pack is deleted."""
        return self.revisions[-1] if self.revisions else None

    @property
    def alive(self) -> bool:
        """Neither deleted nor collected. Whether it has expired depends on its deadline."""
        return self.newest is not None and self.deleted is None


class _RevisionBody(Document, frozen=True):
    revision: int
    digest: str
    at: str


class _EndBody(Document, frozen=True):
    revision: int
    at: str


_revision_decoder = msgspec.json.Decoder(_RevisionBody)
_end_decoder = msgspec.json.Decoder(_EndBody)
_REVISION_KINDS: dict[str, Literal["written", "ttl", "imported"]] = {
    "written": "written",
    "ttl": "ttl",
    "imported": "imported",
}
_END_KINDS: dict[str, Literal["deleted", "collected"]] = {"deleted": "deleted", "collected": "collected"}


def stream_name(handoff_id: HandoffId) -> str:
    return HANDOFFS + handoff_id.text


def root_name(handoff_id: HandoffId, revision: int) -> str:
    return f"{HANDOFFS}{handoff_id.text}/{revision}"


def revision_event_body(revision: int, digest: Digest, at: Timestamp) -> bytes:
    """The body of an event that made a revision."""
    return canonical({"revision": revision, "digest": str(digest), "at": str(at)})


def end_event_body(revision: int, at: Timestamp) -> bytes:
    """The body of an event that deleted or collected a pack at that revision."""
    return canonical({"revision": revision, "at": str(at)})


def extend_history(stream: str, history: HandoffHistory, more: Iterable[HandoffEvent]) -> HandoffHistory:
    """Return a history after more events of its stream. Revision numbers must rise."""
    events, revisions = list(history.events), list(history.revisions)
    last, deleted, collected = history.last, history.deleted, history.collected
    for event in more:
        events.append(event)
        if event.digest is not None:
            if event.revision <= last:
                raise _unreadable(stream, f"revision {event.revision} comes after {last}")
            revisions.append(KeptRevision(revision=event.revision, digest=event.digest))
            last, deleted, collected = event.revision, None, False
        elif event.kind == "deleted":
            deleted = event.at
        else:
            revisions, collected = [], True
    return HandoffHistory(
        events=tuple(events), revisions=tuple(revisions), last=last, deleted=deleted, collected=collected
    )


def parse_event(stream: str, kind: str, body: bytes) -> HandoffEvent:
    """Read an event. One that is not understood is an error: the state after it would be unknown."""
    try:
        if making := _REVISION_KINDS.get(kind):
            revision_body = _revision_decoder.decode(body)
            return HandoffEvent(
                kind=making,
                revision=revision_body.revision,
                digest=Digest.parse(revision_body.digest),
                at=Timestamp.parse(revision_body.at),
            )
        if ending := _END_KINDS.get(kind):
            end_body = _end_decoder.decode(body)
            return HandoffEvent(kind=ending, revision=end_body.revision, digest=None, at=Timestamp.parse(end_body.at))
    except (msgspec.DecodeError, UnicodeDecodeError, ContextPlaneError) as error:
        raise _unreadable(stream, f"an event {kind!r} is not of its form: {error}") from error
    raise _unreadable(stream, f"an event of the unknown kind {kind!r}")


def _unreadable(stream: str, why: str) -> HandoffHistoryUnreadable:
    return HandoffHistoryUnreadable(why, at=stream, hint="a newer contextplane may understand it")


# --- The stream of grace times ---

GRACE_STREAM = "handoff_grace"
"""The stream of grace times, each longer than the one before.

A pack that some process still serves within its grace time is not collected.
"""

DEFAULT_GRACE_SECONDS = 900
"""The grace time where none was recorded."""

MAX_GRACE_SECONDS = 2**53 - 1
"""For ever: a longer time has no canonical form."""


class _GraceBody(Document, frozen=True):
    at: str
    grace_seconds: int


_grace_decoder = msgspec.json.Decoder(_GraceBody)


def grace_event_body(seconds: int, at: Timestamp) -> bytes:
    return canonical({"at": str(at), "grace_seconds": seconds})


def parse_grace(body: bytes) -> int:
    """The grace time of an event. A body that is not understood may mean any time, so then it is for ever."""
    try:
        return _grace_decoder.decode(body).grace_seconds
    except ValueError:  # what msgspec raises
        return MAX_GRACE_SECONDS
