"""Storing and reading revisions of handoff packs, the page key, and the grace time of a store.

One transaction holds the event of a revision, its index row, its root and, if it is small, its object. A larger object
is stored before. So the object of a revision that has an event exists, even when the power fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Literal

from contextplane.handoff.errors import HandoffUnreadable
from contextplane.model.catalog import MAX_INLINE, Event, HandoffRow, IndexedObject
from contextplane.model.handoff import (
    GRACE_STREAM,
    HANDOFF_REVISION,
    MAX_GRACE_SECONDS,
    SCHEMA_VERSION,
    HandoffHistory,
    HandoffPack,
    end_event_body,
    fold_events,
    grace_event_body,
    longest_grace,
    pack_bytes,
    read_pack,
    revision_event_body,
    root_name,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, StreamsView, Transaction, View
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects
from contextplane.ports.world import Ids

__all__ = [
    "PAGE_KEY",
    "append_deleted",
    "append_revision",
    "ensure_page_key",
    "history_of",
    "page_key",
    "read_revision",
    "record_grace_time",
    "record_revision",
    "revision_bytes",
    "store_revision",
]

PAGE_KEY = "handoff_page_key"
"""The stream with the key that page tokens are signed with. A store has one as soon as it has a pack."""

MAX_PENDING = 256
"""When so many small revisions wait in the catalog, the writer makes files of them: they take space there."""


def store_revision(
    catalog: Catalog,
    objects: Objects,
    *,
    pack: HandoffPack,
    kind: Literal["written", "ttl"],
    prepare: Callable[[Transaction], None],
) -> int:
    """Store a revision durably; return how many small objects wait in the catalog now.

    `prepare` is called first in the transaction, and prevents it by raising. `StreamConflict` when it is a first
    revision and there is a pack of that id.
    """
    data = pack_bytes(pack)
    digest = Digest.of(data)
    small = len(data) <= MAX_INLINE
    with nullcontext() if small else _stored_object(catalog, objects, data), catalog.write() as tx:
        prepare(tx)
        append_revision(tx, pack=pack, digest=digest, size=len(data), kind=kind)
        if small:
            # Durable with this commit, which is then the only wait for the disk; it becomes a file later.
            tx.pending.put(digest, data)
        return tx.pending.count()


@contextmanager
def _stored_object(catalog: Catalog, objects: Objects, data: bytes) -> Iterator[None]:
    """Store the object; within the block it is not collected although nothing refers to it yet."""
    with objects.batch() as batch:
        digest = batch.put(data)
        # Before it is visible: what a killed process leaves behind is then known, and can be collected.
        with catalog.write(survives="crash") as tx:
            record_revision(tx, digest, len(data))
        batch.commit()
        yield


def append_revision(
    tx: Transaction, *, pack: HandoffPack, digest: Digest, size: int, kind: Literal["written", "ttl", "imported"]
) -> None:
    """Record that this revision, whose object is stored, is now the newest one of its pack."""
    stream = stream_name(pack.handoff_id)
    head = 0 if pack.revision == 1 else tx.streams.head(stream)
    body = revision_event_body(pack.revision, digest, pack.updated)
    tx.streams.append(stream, head, [Event(kind=kind, body=body)])
    record_revision(tx, digest, size)
    tx.objects.keep(root_name(pack.handoff_id, pack.revision), digest)
    tx.handoffs.put(HandoffRow.of(pack, digest))


def append_deleted(tx: Transaction, handoff_id: HandoffId, *, revision: int, at: Timestamp) -> None:
    """Record that a pack was deleted. Its revisions stay until they are collected."""
    stream = stream_name(handoff_id)
    tx.streams.append(stream, tx.streams.head(stream), [Event(kind="deleted", body=end_event_body(revision, at))])
    tx.handoffs.remove(handoff_id)


def history_of(streams: StreamsView, handoff_id: HandoffId) -> HandoffHistory:
    stream = stream_name(handoff_id)
    return fold_events(stream, ((event.kind, event.body) for event in streams.read(stream)))


def read_revision(
    catalog: Catalog, objects: Objects, digest: Digest, *, handoff_id: HandoffId, revision: int
) -> HandoffPack:
    """Read a stored revision. One that is missing or damaged is `HandoffUnreadable`, never not found."""
    at = f"{handoff_id}@{revision}"
    try:
        pack = read_pack(revision_bytes(catalog, objects, digest))
    except (ObjectNotFound, ObjectCorrupt, ObjectObstructed) as error:
        raise _unreadable(at, digest, error.message) from error
    except ValueError as error:  # what msgspec raises for bytes that are no pack
        raise _unreadable(at, digest, str(error)) from error
    if pack.schema_version != SCHEMA_VERSION:
        raise _unreadable(at, digest, f"schema_version {pack.schema_version}, and only {SCHEMA_VERSION} is understood")
    if (pack.id, pack.revision) != (handoff_id.text, revision):
        raise _unreadable(at, digest, f"the object is {pack.id}@{pack.revision}")
    return pack


def revision_bytes(catalog: Catalog, objects: Objects, digest: Digest) -> bytes:
    """The bytes of a stored revision, from the catalog or the object store."""
    with catalog.read() as view:
        pending = view.pending.get(digest)
    # It may have become a file since; it never goes the other way.
    return pending if pending is not None and Digest.of(pending) == digest else objects.get(digest)


def ensure_page_key(tx: Transaction, ids: Ids) -> None:
    if tx.streams.head(PAGE_KEY) == 0:
        tx.streams.append(PAGE_KEY, 0, [Event(kind="made", body=canonical({"key": ids.secret().hex()}))])


def page_key(streams: StreamsView) -> bytes | None:
    """The page key of this store: the whole body of its event. None while there is no pack."""
    return next((event.body for event in streams.read(PAGE_KEY)), None)


def record_revision(tx: Transaction, digest: Digest, size: int) -> None:
    """Record that an object is a revision, which refers to no other object."""
    tx.objects.record(IndexedObject(digest=digest, kind=HANDOFF_REVISION, size=size, traced=True))


def _unreadable(at: str, digest: Digest, why: str) -> HandoffUnreadable:
    return HandoffUnreadable(
        f"this revision cannot be read: {why}",
        at=at,
        hint="'ctx fsck' lists all damage",
        details={"revision": at, "digest": str(digest), "reason": why},
    )


def record_grace_time(catalog: Catalog, seconds: int, now: Timestamp) -> None:
    """Record a grace time that is longer than any before, so that gc keeps packs that long.

    A shorter one changes nothing.
    """
    seconds = min(seconds, MAX_GRACE_SECONDS)
    with catalog.read() as view:
        if seconds <= _longest(view):
            return
    with catalog.write() as tx:
        if seconds > _longest(tx):
            event = Event(kind="longer", body=grace_event_body(seconds, now))
            tx.streams.append(GRACE_STREAM, tx.streams.head(GRACE_STREAM), [event])


def _longest(view: View | Transaction) -> int:
    return longest_grace(event.body for event in view.streams.read(GRACE_STREAM))
