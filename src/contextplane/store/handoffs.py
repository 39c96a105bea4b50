"""Handoff packs as the care of the store sees them: their index made anew and compared with what it is made from.

Their streams say which revisions are kept; each of those is a root. It does not judge what is in a pack.

Which handoff packs are over for good, so that nothing keeps their revisions any more.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, HandoffRow, Recorded
from contextplane.model.handoff import (
    GRACE_STREAM,
    HANDOFF_REVISION,
    HANDOFFS,
    SCHEMA_VERSION,
    HandoffHistory,
    HandoffPack,
    deleted_body,
    folded,
    longest_grace,
    read_pack,
    root_name,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.objects import Objects
from contextplane.store.damage import Finding, waits

__all__ = [
    "HandoffOver",
    "Over",
    "Stream",
    "compare_handoffs",
    "handoff_streams",
    "index_handoffs",
    "pack_of",
    "release_over",
    "unkept_revisions",
    "would_release",
]


class Stream(Value, frozen=True):
    """One stream, and what it comes to; None when that is not understood, for which `why` is the reason."""

    name: str
    id: HandoffId | None
    history: HandoffHistory | None
    why: str = ""


def handoff_streams(view: View | Transaction) -> Iterator[Stream]:
    """Every stream of a handoff pack, in order."""
    for name in view.streams.names(HANDOFFS):
        try:
            handoff_id = HandoffId(name.removeprefix(HANDOFFS))
            history = folded(name, ((event.kind, event.body) for event in view.streams.read(name)))
        except ContextPlaneError as error:
            yield Stream(name=name, id=None, history=None, why=error.message)
        else:
            yield Stream(name=name, id=handoff_id, history=history)


def index_handoffs(tx: Transaction, objects: Objects) -> int:
    """Make the list and the roots of handoff packs again from their streams; return how many packs are listed.

    What cannot be read keeps the row that it had: it is damaged, and not gone. So do the roots of a stream that is not
    understood.
    """
    before = {handoff_id: tx.handoffs.row(handoff_id) for handoff_id in list(tx.handoffs.ids())}
    tx.handoffs.clear()
    for digest in list(tx.objects.of_kind(HANDOFF_REVISION)):
        _record(tx, digest, objects)
    for stream in list(handoff_streams(tx)):
        if stream.id is None or stream.history is None:
            continue
        kept = {root_name(stream.id, revision.revision): revision.digest for revision in stream.history.revisions}
        for name, _ in list(tx.objects.roots(f"{stream.name}/")):
            if name not in kept:
                tx.objects.release(name)
        for name, digest in kept.items():
            tx.objects.keep(name, digest)
            _record(tx, digest, objects)
        row = _row(tx, stream.id, stream.history, objects, before=before.get(stream.id))
        if row is not None:
            tx.handoffs.put(row)
    for name, _ in list(tx.objects.roots(HANDOFFS)):
        if not tx.streams.head(name.rpartition("/")[0]):
            tx.objects.release(name)
    return sum(1 for _ in tx.handoffs.ids())


def compare_handoffs(view: View, objects: Objects) -> Iterator[Finding]:
    """Every stream is understood, its revisions are roots and are what they say, and the list shows the newest."""
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            yield Finding(state="corrupt", what=stream.name, why=stream.why)
        else:
            yield from _compare(view, stream.id, stream.history, objects)
    for name, _ in view.objects.roots(HANDOFFS):
        if not view.streams.head(name.rpartition("/")[0]):
            yield Finding(state="index", what=name, why="kept, and no revision of any pack")
    for handoff_id in view.handoffs.ids():
        if not view.streams.head(stream_name(handoff_id)):
            yield Finding(state="index", what=stream_name(handoff_id), why="listed, and no event speaks of it")


def _compare(view: View, handoff_id: HandoffId, history: HandoffHistory, objects: Objects) -> Iterator[Finding]:
    name = stream_name(handoff_id)
    row, newest = view.handoffs.row(handoff_id), history.newest if history.alive else None
    if newest is None and row is not None:
        yield Finding(state="index", what=name, why="listed, and deleted or collected")
    if newest is not None and (row is None or (row.revision, row.digest) != (newest.revision, newest.digest)):
        yield Finding(state="index", what=name, why="the list does not show its newest revision")
    roots = dict(view.objects.roots(f"{name}/"))
    for revision in history.revisions:
        root = root_name(handoff_id, revision.revision)
        if roots.pop(root, None) != revision.digest:
            yield Finding(state="index", what=root, why="nothing keeps this revision")
        data = _bytes(view, revision.digest, objects)
        pack = pack_of(data)
        # What cannot be read is told of as an object.
        if data is not None and (pack is None or (pack.id, pack.revision) != (handoff_id.text, revision.revision)):
            yield Finding(state="corrupt", what=root, why="its object is not this revision", needed_by=(name,))
    for root in roots:
        yield Finding(state="index", what=root, why="kept, and no revision that is to be kept")


def _record(tx: Transaction, digest: Digest, objects: Objects) -> None:
    """Say again what an object is: a revision refers to no other object, so all that it refers to is known."""
    known, waiting = tx.objects.recorded(digest), waits(tx.pending, digest)
    try:
        size = objects.size(digest) if waiting is None else len(waiting)
    except ContextPlaneError:
        size = known.size if known is not None else 0
    tx.objects.record(Recorded(digest=digest, kind=HANDOFF_REVISION, size=size, traced=True))


def _row(
    tx: Transaction, handoff_id: HandoffId, history: HandoffHistory, objects: Objects, *, before: HandoffRow | None
) -> HandoffRow | None:
    """The row of a pack that is there; where its newest revision cannot be read, what is known of it from elsewhere."""
    newest = history.newest if history.alive else None
    if newest is None:
        return None
    for revision in reversed(history.revisions):
        pack = pack_of(_bytes(tx, revision.digest, objects))
        if pack is not None and pack.id == handoff_id.text:
            if revision is newest:
                return HandoffRow.of(pack, revision.digest)
            break
    else:
        pack = None
    if before is not None and before.digest == newest.digest:
        return before
    if pack is None:
        return None
    older = HandoffRow.of(pack, newest.digest)
    return HandoffRow(
        id=older.id,
        name=older.name,
        title=older.title,
        brief=older.brief,
        status=older.status,
        revision=newest.revision,
        digest=newest.digest,
        updated=older.updated,
        expires=older.expires,
    )


def _bytes(view: View | Transaction, digest: Digest, objects: Objects) -> bytes | None:
    waiting = waits(view.pending, digest)
    if waiting is not None:
        return waiting
    try:
        return objects.get(digest)
    except ContextPlaneError:
        return None


def pack_of(data: bytes | None) -> HandoffPack | None:
    """The pack that some bytes are; None when they are none, or one of a form or with times unknown to us."""
    if data is None:
        return None
    try:
        pack = read_pack(data)
        Timestamp.parse(pack.updated_at)
        Timestamp.parse(pack.expires_at)
    except (ValueError, InvalidTimestamp):  # ValueError is what msgspec raises for bytes that are no pack
        return None
    return pack if pack.schema_version == SCHEMA_VERSION else None


class HandoffOver(Value, frozen=True):
    """A pack that is over, why it is, and the revisions that nothing keeps any more."""

    id: HandoffId
    why: Literal["deleted", "expired"]
    revisions: tuple[int, ...]


class Over(Value, frozen=True):
    """A pack is over when it was deleted, or its grace time ended, before `older_than`.

    The longest grace time counts that anybody ever told the store: whoever said so may still be serving the pack.
    """

    older_than: Timestamp
    grace_seconds: int

    @classmethod
    def before(cls, older_than: datetime, grace_seconds: int, view: View | Transaction) -> "Over":
        told = longest_grace(event.body for event in view.streams.read(GRACE_STREAM))
        return cls(older_than=Timestamp.of(older_than), grace_seconds=max(grace_seconds, told))

    def holds(self, history: HandoffHistory, row: HandoffRow | None) -> bool:
        if not history.revisions:
            return False
        if history.deleted is not None:
            return history.deleted < self.older_than
        if row is None:
            return False  # its deadline cannot be read
        ended = Timestamp(seconds=row.expires.seconds + self.grace_seconds, nanos=row.expires.nanos)
        return ended < self.older_than


def release_over(tx: Transaction, over: Over) -> tuple[HandoffOver, ...]:
    """Write down of each pack that is over that it was collected, and keep its revisions no more."""
    released = list(_over(tx, over))
    for stream, handoff_id, history in released:
        # The moment before which it was over: what is collected does not depend on when somebody came to do it.
        body = deleted_body(history.last, over.older_than)
        tx.streams.append(stream, tx.streams.head(stream), [Event(kind="collected", body=body)])
        for revision in history.revisions:
            tx.objects.release(root_name(handoff_id, revision.revision))
        tx.handoffs.remove(handoff_id)
    return tuple(_told(handoff_id, history) for _, handoff_id, history in released)


def would_release(view: View, over: Over) -> tuple[tuple[HandoffOver, ...], list[Digest]]:
    """The packs that are over, and the objects that nothing else keeps, ascending within each pack by revision."""
    packs: list[HandoffOver] = []
    objects: list[Digest] = []
    for _, handoff_id, history in _over(view, over):
        packs.append(_told(handoff_id, history))
        objects += [
            revision.digest
            for revision in history.revisions
            if view.objects.referrers(revision.digest) == (root_name(handoff_id, revision.revision),)
        ]
    return tuple(packs), objects


def unkept_revisions(view: View) -> Iterator[str]:
    """The names of the roots that should keep a revision and do not."""
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            continue
        roots = dict(view.objects.roots(f"{stream.name}/"))
        for revision in stream.history.revisions:
            name = root_name(stream.id, revision.revision)
            if roots.get(name) != revision.digest:
                yield name


def _told(handoff_id: HandoffId, history: HandoffHistory) -> HandoffOver:
    return HandoffOver(
        id=handoff_id,
        why="expired" if history.deleted is None else "deleted",
        revisions=tuple(revision.revision for revision in history.revisions),
    )


def _over(view: View | Transaction, over: Over) -> Iterator[tuple[str, HandoffId, HandoffHistory]]:
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            continue
        if over.holds(stream.history, view.handoffs.row(stream.id)):
            yield stream.name, stream.id, stream.history
