"""Handoff packs in the maintenance of a store: rebuilding and comparing their index, and their expiry.

The stream of a pack says which revisions are kept; each of those is a root. The content of a pack is not judged here.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import (
    HANDOFF_REVISION,
    HANDOFFS,
    SCHEMA_VERSION,
    HandoffHistory,
    HandoffPack,
    read_pack,
    root_name,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.objects import Objects
from contextplane.store.damage import FsckFinding
from contextplane.store.event_stream import Folded, pending_bytes, read_object
from contextplane.store.handoff_stream import append_collected, fold_handoff, longest_grace, record_revision

__all__ = [
    "ExpiredHandoff",
    "ExpiryRule",
    "HandoffStream",
    "collect_expired",
    "compare_handoffs",
    "expired_handoffs",
    "handoff_streams",
    "index_handoffs",
    "parse_pack",
    "unkept_revisions",
]


class HandoffStream(Value, frozen=True):
    """The stream of one pack, folded; None when it is not understood, and `why` is the reason."""

    name: str
    id: HandoffId | None
    end: Folded[HandoffHistory] | None
    why: str = ""

    @property
    def history(self) -> HandoffHistory | None:
        return None if self.end is None else self.end.state


def handoff_streams(view: View | Transaction) -> Iterator[HandoffStream]:
    """The streams of all handoff packs, in order."""
    for name in view.streams.names(HANDOFFS):
        try:
            handoff_id = HandoffId(name.removeprefix(HANDOFFS))
            end = fold_handoff(view.streams, handoff_id)
        except ContextPlaneError as error:
            yield HandoffStream(name=name, id=None, end=None, why=error.message)
        else:
            yield HandoffStream(name=name, id=handoff_id, end=end)


def index_handoffs(tx: Transaction, objects: Objects) -> int:
    """Rebuild the list and the roots of handoff packs from their streams; return how many are listed.

    A pack that cannot be read keeps its row: it is damaged, not gone. The roots of a stream that is not understood stay
    as well.
    """
    before = {handoff_id: tx.handoffs.row(handoff_id) for handoff_id in list(tx.handoffs.ids())}
    tx.handoffs.clear()
    for digest in list(tx.objects.of_kind(HANDOFF_REVISION)):
        _record(tx, digest, objects)
    for stream in list(handoff_streams(tx)):
        if stream.id is None or stream.history is None:
            continue
        roots = {root_name(stream.id, revision.revision): revision.digest for revision in stream.history.revisions}
        for name, _ in list(tx.objects.roots(f"{stream.name}/")):
            if name not in roots:
                tx.objects.release(name)
        for name, digest in roots.items():
            tx.objects.keep(name, digest)
            _record(tx, digest, objects)
        row, tags = _row(tx, stream.id, stream.history, objects, before=before.get(stream.id))
        if row is not None:
            tx.handoffs.put(row, tags=tags)
    for name, _ in list(tx.objects.roots(HANDOFFS)):
        if not tx.streams.head(name.rpartition("/")[0]):
            tx.objects.release(name)
    return sum(1 for _ in tx.handoffs.ids())


def compare_handoffs(view: View, objects: Objects) -> Iterator[FsckFinding]:
    """Find streams that are not understood, and revisions, roots and rows that disagree with the streams."""
    for stream in handoff_streams(view):
        if stream.id is None or stream.history is None:
            yield FsckFinding(state="corrupt", what=stream.name, why=stream.why)
        else:
            yield from _compare(view, stream.id, stream.history, objects)
    for name, _ in view.objects.roots(HANDOFFS):
        if not view.streams.head(name.rpartition("/")[0]):
            yield FsckFinding(state="index", what=name, why="kept, and no revision of any pack")
    for handoff_id in view.handoffs.ids():
        if not view.streams.head(stream_name(handoff_id)):
            yield FsckFinding(state="index", what=stream_name(handoff_id), why="listed, and no event speaks of it")


def _compare(view: View, handoff_id: HandoffId, history: HandoffHistory, objects: Objects) -> Iterator[FsckFinding]:
    name = stream_name(handoff_id)
    row, newest = view.handoffs.row(handoff_id), history.newest if history.alive else None
    if newest is None and row is not None:
        yield FsckFinding(state="index", what=name, why="listed, and deleted or collected")
    if newest is not None and (row is None or (row.revision, row.digest) != (newest.revision, newest.digest)):
        yield FsckFinding(state="index", what=name, why="the list does not show its newest revision")
    roots = dict(view.objects.roots(f"{name}/"))
    for revision in history.revisions:
        root = root_name(handoff_id, revision.revision)
        if roots.pop(root, None) != revision.digest:
            yield FsckFinding(state="index", what=root, why="nothing keeps this revision")
        data = _revision_bytes(view, revision.digest, objects)
        pack = parse_pack(data)
        # What cannot be read is reported as an object.
        if data is not None and (pack is None or (pack.id, pack.revision) != (handoff_id.text, revision.revision)):
            yield FsckFinding(state="corrupt", what=root, why="its object is not this revision", needed_by=(name,))
    for root in roots:
        yield FsckFinding(state="index", what=root, why="kept, and no revision that is to be kept")


def _record(tx: Transaction, digest: Digest, objects: Objects) -> None:
    """Record an object as a revision, which refers to no other object."""
    recorded, pending = tx.objects.lookup(digest), pending_bytes(tx.pending, digest)
    try:
        size = objects.size(digest) if pending is None else len(pending)
    except ContextPlaneError:
        size = recorded.size if recorded is not None else 0
    record_revision(tx, digest, size)


def _row(
    tx: Transaction, handoff_id: HandoffId, history: HandoffHistory, objects: Objects, *, before: HandoffRow | None
) -> tuple[HandoffRow | None, tuple[str, ...]]:
    """The row of a pack that is not deleted, and its tags.

    When its newest revision cannot be read, it is made from `before` or from the newest readable revision.
    """
    newest = history.newest if history.alive else None
    if newest is None:
        return None, ()
    for revision in reversed(history.revisions):
        pack = parse_pack(_revision_bytes(tx, revision.digest, objects))
        if pack is not None and pack.id == handoff_id.text:
            if revision is newest:
                return HandoffRow.of(pack, revision.digest), pack.tags
            break
    else:
        pack = None
    if before is not None and before.digest == newest.digest:
        return before, pack.tags if pack else ()
    if pack is None:
        return None, ()
    older = HandoffRow.of(pack, newest.digest)
    row = HandoffRow(
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
    return row, pack.tags


def _revision_bytes(view: View | Transaction, digest: Digest, objects: Objects) -> bytes | None:
    try:
        return read_object(view, objects, digest)
    except ContextPlaneError:
        return None


def parse_pack(data: bytes | None) -> HandoffPack | None:
    """The pack that these bytes are; None when they are none, or its version or times are not understood."""
    if data is None:
        return None
    try:
        pack = read_pack(data)
        Timestamp.parse(pack.updated_at)
        Timestamp.parse(pack.expires_at)
    except (ValueError, InvalidTimestamp):  # ValueError is what msgspec raises for bytes that are no pack
        return None
    return pack if pack.schema_version == SCHEMA_VERSION else None


# --- expiry -----------------------------------------------------------------------------------------------------------


class ExpiredHandoff(Value, frozen=True):
    """An expired or deleted pack, and the revisions that nothing keeps any more."""

    id: HandoffId
    why: Literal["deleted", "expired"]
    revisions: tuple[int, ...]


class ExpiryRule(Value, frozen=True):
    """A pack is expired when it was deleted, or its grace time ended, before `older_than`.

    The longest grace time that was ever recorded in the store counts: a server with that setting may still be running.
    """

    older_than: Timestamp
    grace_seconds: int

    @classmethod
    def before(cls, older_than: datetime, grace_seconds: int, view: View | Transaction) -> "ExpiryRule":
        recorded = longest_grace(view.streams)
        return cls(older_than=Timestamp.of(older_than), grace_seconds=max(grace_seconds, recorded))

    def matches(self, history: HandoffHistory, row: HandoffRow | None) -> bool:
        if not history.revisions:
            return False
        if history.deleted is not None:
            return history.deleted < self.older_than
        if row is None:
            return False  # its deadline cannot be read
        ended = Timestamp(seconds=row.expires.seconds + self.grace_seconds, nanos=row.expires.nanos)
        return ended < self.older_than


def collect_expired(tx: Transaction, rule: ExpiryRule) -> tuple[ExpiredHandoff, ...]:
    """Record each expired pack as collected, and release its revisions."""
    released = list(_expired_streams(tx, rule))
    for handoff_id, end in released:
        # The time of the rule and not of the run: what is collected does not depend on when gc runs.
        append_collected(tx, handoff_id, end, at=rule.older_than)
    return tuple(_expired_handoff(handoff_id, end.state) for handoff_id, end in released)


def expired_handoffs(view: View, rule: ExpiryRule) -> tuple[tuple[ExpiredHandoff, ...], list[Digest]]:
    """The expired packs, and the objects that nothing else keeps, by pack and ascending revision."""
    packs: list[ExpiredHandoff] = []
    objects: list[Digest] = []
    for handoff_id, end in _expired_streams(view, rule):
        history = end.state
        packs.append(_expired_handoff(handoff_id, history))
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


def _expired_handoff(handoff_id: HandoffId, history: HandoffHistory) -> ExpiredHandoff:
    return ExpiredHandoff(
        id=handoff_id,
        why="expired" if history.deleted is None else "deleted",
        revisions=tuple(revision.revision for revision in history.revisions),
    )


def _expired_streams(view: View | Transaction, rule: ExpiryRule) -> Iterator[tuple[HandoffId, Folded[HandoffHistory]]]:
    for stream in handoff_streams(view):
        if stream.id is None or stream.end is None:
            continue
        if rule.matches(stream.end.state, view.handoffs.row(stream.id)):
            yield stream.id, stream.end
