"""Storing a revision: in one transaction its event, its index row, its root, and its object as long as that is small.

A larger object is stored before. So a revision of which an event speaks is there, whenever the power fails.

Small objects that wait in the catalog become files, many at a time. Whoever is interrupted begins again.

Telling the store how long its packs are served after their deadline, so that nobody collects them before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Literal

from contextplane.handoff.errors import HandoffUnreadable
from contextplane.model.catalog import MAX_INLINE, Event, HandoffRow, Recorded
from contextplane.model.handoff import (
    GRACE_STREAM,
    HANDOFF_REVISION,
    MOST_GRACE_SECONDS,
    SCHEMA_VERSION,
    HandoffHistory,
    HandoffPack,
    deleted_body,
    folded,
    grace_body,
    kept_body,
    longest_grace,
    pack_bytes,
    read_pack,
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
    "AT_ONCE",
    "PAGE_KEY",
    "append_deleted",
    "append_revision",
    "ensure_page_key",
    "history_of",
    "keep",
    "page_key",
    "read_revision",
    "record_revision",
    "revision_bytes",
    "settle",
    "tell_grace",
]

PAGE_KEY = "handoff_page_key"
"""The stream with the key that page tokens are signed with. A store has one as soon as it has a pack."""


def keep(
    catalog: Catalog,
    objects: Objects,
    *,
    pack: HandoffPack,
    kind: Literal["written", "ttl"],
    permitted: Callable[[Transaction], None],
) -> int:
    """Store a revision durably, if `permitted` does not object when our turn has come; how many wait to be files now.

    `StreamConflict` when it is a first revision and there is a pack of that id.
    """
    data = pack_bytes(pack)
    digest = Digest.of(data)
    small = len(data) <= MAX_INLINE
    with nullcontext() if small else _put(catalog, objects, data), catalog.write() as tx:
        permitted(tx)
        append_revision(tx, pack=pack, digest=digest, size=len(data), kind=kind)
        if small:
            # Durable with this commit, which is then the only wait for the disk; it becomes a file later.
            tx.pending.put(digest, data)
        return tx.pending.count()


@contextmanager
def _put(catalog: Catalog, objects: Objects, data: bytes) -> Iterator[None]:
    """Within the block the object is stored, and is not collected although nothing refers to it yet."""
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
    """Write down that this revision, whose object is stored, is now the newest one."""
    stream = stream_name(pack.handoff_id)
    head = 0 if pack.revision == 1 else tx.streams.head(stream)
    body = kept_body(pack.revision, digest, pack.updated)
    tx.streams.append(stream, head, [Event(kind=kind, body=body)])
    record_revision(tx, digest, size)
    tx.objects.keep(root_name(pack.handoff_id, pack.revision), digest)
    tx.handoffs.put(HandoffRow.of(pack, digest))


def append_deleted(tx: Transaction, handoff_id: HandoffId, *, revision: int, at: Timestamp) -> None:
    """Write down that a pack was deleted. Its revisions stay until they are collected."""
    stream = stream_name(handoff_id)
    tx.streams.append(stream, tx.streams.head(stream), [Event(kind="deleted", body=deleted_body(revision, at))])
    tx.handoffs.remove(handoff_id)


def history_of(streams: StreamsView, handoff_id: HandoffId) -> HandoffHistory:
    stream = stream_name(handoff_id)
    return folded(stream, ((event.kind, event.body) for event in streams.read(stream)))


def read_revision(
    catalog: Catalog, objects: Objects, digest: Digest, *, handoff_id: HandoffId, revision: int
) -> HandoffPack:
    """A stored revision. One that is missing or damaged is told as that, and never as not found."""
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
    """The bytes of a stored revision, wherever they are by now."""
    with catalog.read() as view:
        waiting = view.pending.get(digest)
    # It may have become a file since; it never goes the other way.
    return waiting if waiting is not None and Digest.of(waiting) == digest else objects.get(digest)


def ensure_page_key(tx: Transaction, ids: Ids) -> None:
    if tx.streams.head(PAGE_KEY) == 0:
        tx.streams.append(PAGE_KEY, 0, [Event(kind="made", body=canonical({"key": ids.secret().hex()}))])


def page_key(streams: StreamsView) -> bytes | None:
    """The key of this store: the event as it stands. None while there is no pack."""
    return next((event.body for event in streams.read(PAGE_KEY)), None)


def record_revision(tx: Transaction, digest: Digest, size: int) -> None:
    """Say what an object is: a revision, which refers to no other object."""
    tx.objects.record(Recorded(digest=digest, kind=HANDOFF_REVISION, size=size, traced=True))


def _unreadable(at: str, digest: Digest, why: str) -> HandoffUnreadable:
    return HandoffUnreadable(
        f"this revision cannot be read: {why}",
        at=at,
        hint="'ctx fsck' lists all damage",
        details={"revision": at, "digest": str(digest), "reason": why},
    )


AT_ONCE = 256
"""So many wait at most for whoever writes them: they take room in the catalog, and syncing many at once is cheap."""


def settle(catalog: Catalog, objects: Objects) -> None:
    """Put all that waits into the object store, durably, and only then take it out of the catalog."""
    while True:
        with catalog.read() as view:
            # What is not what its name says stays where it is, and is found missing by a check.
            waiting = [(digest, data) for digest, data in view.pending.some(AT_ONCE) if Digest.of(data) == digest]
        if not waiting:
            return
        with objects.batch() as batch:
            for _, data in waiting:
                batch.put(data)
            batch.commit()
            # Within the batch: none of them is collected before the catalog lets go of it.
            with catalog.write(survives="crash") as tx:
                for digest, _ in waiting:
                    tx.pending.remove(digest)


def tell_grace(catalog: Catalog, seconds: int, now: Timestamp) -> None:
    """Write down a grace time that is longer than any that was told before; a shorter one changes nothing."""
    seconds = min(seconds, MOST_GRACE_SECONDS)
    with catalog.read() as view:
        if seconds <= _longest(view):
            return
    with catalog.write() as tx:
        if seconds > _longest(tx):
            event = Event(kind="longer", body=grace_body(seconds, now))
            tx.streams.append(GRACE_STREAM, tx.streams.head(GRACE_STREAM), [event])


def _longest(view: View | Transaction) -> int:
    return longest_grace(event.body for event in view.streams.read(GRACE_STREAM))
