"""The stream of a handoff pack, and the stream of grace times: how they are folded and appended to.

The events of a pack say which revisions are kept. Its revisions are objects, each under a root; the row in the index is
that of its newest revision. What a pack contains is not known here.
"""

from functools import partial
from typing import Literal

from contextplane.model.catalog import Event, HandoffRow, IndexedObject
from contextplane.model.handoff import (
    DEFAULT_GRACE_SECONDS,
    GRACE_STREAM,
    HANDOFF_REVISION,
    MAX_GRACE_SECONDS,
    HandoffEvent,
    HandoffHistory,
    HandoffPack,
    end_event_body,
    extend_history,
    grace_event_body,
    parse_event,
    parse_grace,
    revision_event_body,
    root_name,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, StreamsView, Transaction
from contextplane.store.event_stream import EventStream, Folded

__all__ = [
    "append_collected",
    "append_deleted",
    "append_revision",
    "fold_handoff",
    "history_of",
    "longest_grace",
    "record_grace_time",
    "record_revision",
]


def _describe(name: str) -> EventStream[HandoffEvent, HandoffHistory]:
    return EventStream(
        name=name,
        initial=HandoffHistory(),
        decode=lambda stored: parse_event(stored.stream, stored.kind, stored.body),
        evolve=partial(extend_history, name),
    )


def fold_handoff(streams: StreamsView, handoff_id: HandoffId) -> Folded[HandoffHistory]:
    """Fold the stream of a pack, to append to it."""
    return _describe(stream_name(handoff_id)).fold(streams)


def history_of(streams: StreamsView, handoff_id: HandoffId) -> HandoffHistory:
    """The history of a pack, which is empty if there never was one of this id."""
    return fold_handoff(streams, handoff_id).state


def append_revision(
    tx: Transaction, *, pack: HandoffPack, digest: Digest, size: int, kind: Literal["written", "ttl", "imported"]
) -> None:
    """Record that this revision, whose object is stored, is now the newest one of its pack.

    Only the end of the stream is read: the caller knows by the row, or by the history, that the revision follows.
    """
    stream = stream_name(pack.handoff_id)
    head = 0 if pack.revision == 1 else tx.streams.head(stream)
    body = revision_event_body(pack.revision, digest, pack.updated)
    tx.streams.append(stream, head, [Event(kind=kind, body=body)])
    record_revision(tx, digest, size)
    tx.objects.keep(root_name(pack.handoff_id, pack.revision), digest)
    tx.handoffs.put(HandoffRow.of(pack, digest), tags=pack.tags)


def record_revision(tx: Transaction, digest: Digest, size: int) -> None:
    """Record that an object is a revision, which refers to no other object."""
    tx.objects.record(IndexedObject(digest=digest, kind=HANDOFF_REVISION, size=size, traced=True))


def append_deleted(tx: Transaction, handoff_id: HandoffId, end: Folded[HandoffHistory], *, at: Timestamp) -> None:
    """Record that a pack was deleted. Its revisions stay until they are collected."""
    _append_end(tx, handoff_id, end, Event(kind="deleted", body=end_event_body(end.state.last, at)))


def append_collected(tx: Transaction, handoff_id: HandoffId, end: Folded[HandoffHistory], *, at: Timestamp) -> None:
    """Record that a pack was collected, and release its revisions."""
    _append_end(tx, handoff_id, end, Event(kind="collected", body=end_event_body(end.state.last, at)))
    for revision in end.state.revisions:
        tx.objects.release(root_name(handoff_id, revision.revision))


def _append_end(tx: Transaction, handoff_id: HandoffId, end: Folded[HandoffHistory], event: Event) -> None:
    _describe(stream_name(handoff_id)).append(tx.streams, end, [event])
    tx.handoffs.remove(handoff_id)


# --- grace times ------------------------------------------------------------------------------------------------------

_GRACE: EventStream[int, int] = EventStream(
    name=GRACE_STREAM,
    initial=DEFAULT_GRACE_SECONDS,
    decode=lambda stored: parse_grace(stored.body),
    evolve=lambda longest, more: max([longest, *more]),
)


def longest_grace(streams: StreamsView) -> int:
    """The longest grace time that was ever recorded in the store, and at least the default."""
    return _GRACE.fold(streams).state


def record_grace_time(catalog: Catalog, seconds: int, now: Timestamp) -> None:
    """Record a grace time that is longer than any before, so that gc keeps packs that long.

    A shorter one changes nothing.
    """
    seconds = min(seconds, MAX_GRACE_SECONDS)
    event = Event(kind="longer", body=grace_event_body(seconds, now))
    _GRACE.update(catalog, lambda longest: [event] if seconds > longest else [])
