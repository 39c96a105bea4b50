"""Storing and reading revisions of handoff packs, and the page key of a store.

One transaction holds the event of a revision, its index row, its root and, if it is small, its object. A larger object
is stored before. So the object of a revision that has an event exists, even when the power fails.
"""

from collections.abc import Callable
from typing import Literal

from contextplane.handoff.errors import HandoffUnreadable
from contextplane.model.catalog import Event
from contextplane.model.handoff import HANDOFF_REVISION, SCHEMA_VERSION, HandoffPack, pack_bytes, read_pack
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.ports.catalog import Catalog, StreamsView, Transaction
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects
from contextplane.ports.world import Ids
from contextplane.store.event_stream import pending_bytes, write_with_objects
from contextplane.store.handoff_stream import append_revision

__all__ = [
    "PAGE_KEY",
    "ensure_page_key",
    "page_key",
    "read_revision",
    "revision_bytes",
    "store_revision",
]

PAGE_KEY = "handoff_page_key"
"""The stream with the key that page tokens are signed with. A store has one as soon as it has a pack."""


def store_revision(
    catalog: Catalog,
    objects: Objects,
    *,
    pack: HandoffPack,
    kind: Literal["written", "ttl"],
    prepare: Callable[[Transaction], None],
) -> None:
    """Store a revision durably. When very many small ones wait in the catalog, they become files.

    `prepare` is called first in the transaction, and prevents it by raising. `StreamConflict` when it is a first
    revision and there is a pack of that id.
    """
    data = pack_bytes(pack)
    with write_with_objects(catalog, objects, [data], kind=HANDOFF_REVISION) as tx:
        prepare(tx)
        append_revision(tx, pack=pack, digest=Digest.of(data), size=len(data), kind=kind)


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
        pending = pending_bytes(view.pending, digest)
    # It may have become a file since; it never goes the other way.
    return objects.get(digest) if pending is None else pending


def ensure_page_key(tx: Transaction, ids: Ids) -> None:
    if tx.streams.head(PAGE_KEY) == 0:
        tx.streams.append(PAGE_KEY, 0, [Event(kind="made", body=canonical({"key": ids.secret().hex()}))])


def page_key(streams: StreamsView) -> bytes | None:
    """The page key of this store: the whole body of its event. None while there is no pack."""
    return next((event.body for event in streams.read(PAGE_KEY)), None)


def _unreadable(at: str, digest: Digest, why: str) -> HandoffUnreadable:
    return HandoffUnreadable(
        f"this revision cannot be read: {why}",
        at=at,
        hint="'ctx fsck' lists all damage",
        details={"revision": at, "digest": str(digest), "reason": why},
    )
