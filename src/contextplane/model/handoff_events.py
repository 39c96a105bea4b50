"""The stream of one handoff pack: what happened to it, and what is left of it. It reads no store."""

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value

__all__ = [
    "HANDOFFS",
    "HandoffHistory",
    "HandoffHistoryUnreadable",
    "Happened",
    "Kept",
    "Kind",
    "deleted_body",
    "folded",
    "kept_body",
    "root_name",
    "stream_name",
]

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
        one = _happened(stream, kind, body)
        happened.append(one)
        if one.digest is not None:
            if one.revision <= last:
                raise _unreadable(stream, f"revision {one.revision} comes after {last}")
            revisions.append(Kept(revision=one.revision, digest=one.digest))
            last, deleted, collected = one.revision, None, False
        elif one.kind == "deleted":
            deleted = one.at
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
