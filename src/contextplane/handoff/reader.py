"""Reading the shelf: what can be had, and what once was.

A pack can be had until its grace time is over; its revisions can be read until they are collected.

What is asked of the shelf, and what it answers with.

Which pack a name or an id means. The same rows always give the same answer, or none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from contextplane.handoff.document import nearest
from contextplane.handoff.errors import HandoffAmbiguous, HandoffNotFound, HandoffUnreadable
from contextplane.handoff.freshness import FreshnessState, available, filter_for
from contextplane.handoff.storage import history_of, page_key, read_revision, revision_bytes
from contextplane.model.catalog import HandoffFilter, HandoffPage, HandoffRow
from contextplane.model.handoff import HandoffHistory, HandoffPack, Kept, Status
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.indexes import HandoffIndexView
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.handoff.finalize import MovedRef, UnanchoredRef
    from contextplane.handoff.source import SourceReader

__all__ = [
    "Chosen",
    "Deleted",
    "Found",
    "HandoffLimits",
    "ReadingShelf",
    "SelectedBy",
    "Written",
    "as_id",
    "chosen",
    "holders",
    "not_found",
    "nothing_named",
]

SelectedBy = Literal[
    "exact_id",
    "name_latest_finalized_updated_at_then_revision",
    "name_latest_draft_updated_at_then_revision",
]


class HandoffLimits(Value, frozen=True):
    """How long a pack can be had after its deadline, how large it may be, and how large a file that it refers to."""

    grace_seconds: int = 900
    max_pack_bytes: int = 512 * 1024
    max_source_bytes: int = 2 * 1024 * 1024


class Found(Value, frozen=True):
    """The newest revision of a pack, the digest of its object, and why it is this one that was found."""

    pack: HandoffPack
    digest: Digest
    selected_by: SelectedBy


class Written(Value, frozen=True):
    """A new revision. One that is not `stored` was only checked; `moved` refs stand elsewhere than they say.

    `unanchored` refs speak of lines that are not there.
    """

    pack: HandoffPack
    digest: Digest
    stored: bool
    moved: "tuple[MovedRef, ...]" = ()
    unanchored: "tuple[UnanchoredRef, ...]" = ()


class Deleted(Value, frozen=True):
    """Which pack was meant, and whether it was there to be deleted."""

    id: HandoffId
    deleted: bool


_SHOWN = 60
_LOOKED_AT = 50


class Chosen(Value, frozen=True):
    """The pack that is meant, and by which rule."""

    row: HandoffRow
    selected_by: SelectedBy


def as_id(identity: str) -> HandoffId | None:
    """The id that a text is; None when it is a name. What looks like an id is never a name."""
    return HandoffId(identity) if HandoffId.PATTERN.fullmatch(identity) else None


def holders(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> tuple[HandoffRow, ...]:
    """Every pack that has this name now. One whose grace time is over has given it back."""
    return tuple(row for row in index.named(name) if available(row.expires, now, grace_seconds))


def chosen(name: str, rows: Sequence[HandoffRow]) -> Chosen:
    """Finalized before draft, then the latest, then the highest revision; nothing decides between equals.

    There is at least one row.
    """
    finalized = [row for row in rows if row.status == "finalized"]
    tier = finalized or rows
    best = max((row.updated, row.revision) for row in tier)
    equal = [row for row in tier if (row.updated, row.revision) == best]
    if len(equal) > 1:
        raise HandoffAmbiguous(
            f"several packs have the name {name[:_SHOWN]!r}, and nothing decides between them",
            hint="name one by its id",
            details={"name": name, "candidate_ids": sorted(row.id.text for row in equal)},
        )
    by: SelectedBy = (
        "name_latest_finalized_updated_at_then_revision" if finalized else "name_latest_draft_updated_at_then_revision"
    )
    return Chosen(row=equal[0], selected_by=by)


def nothing_named(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> HandoffNotFound:
    """What whoever asked for this name is told. The name that was probably meant is one of the latest packs'."""
    after, until = filter_for(None, now, grace_seconds)
    latest = index.page(HandoffFilter(after=after, until=until), limit=_LOOKED_AT).rows
    known = tuple(row.name for row in latest if row.name)
    return not_found(name, near=nearest(name, known) if known else None)


def not_found(identity: str, *, near: str | None = None) -> HandoffNotFound:
    meant = f"did you mean {near!r}? " if near else ""
    return HandoffNotFound(
        f"no handoff pack {identity[:_SHOWN]!r}",
        hint=f"{meant}'ctx handoff list' shows what there is",
        details={
            "requested": identity,
            "guidance": f"{meant}action list shows what there is",
            **({"nearest_name": near} if near else {}),
        },
    )


class ReadingShelf:
    """Not for two threads at once; any number of processes may have one on the same store."""

    def __init__(  # noqa: PLR0913  one port each, all by name
        self,
        catalog: Catalog,
        objects: Objects,
        *,
        clock: Clock,
        ids: Ids,
        reader_factory: "Callable[[], SourceReader]",
        limits: HandoffLimits,
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        self._clock = clock
        self._ids = ids
        self._reader_factory = reader_factory
        self._limits = limits

    def list(
        self,
        *,
        status: Status | None = None,
        freshness: FreshnessState | None = None,
        query: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> HandoffPage:
        """The packs that can be had, newest first. Expired ones are shown only to whoever asks for them."""
        after, until = filter_for(freshness, self._now(), self._limits.grace_seconds)
        handoff_filter = HandoffFilter(status=status, after=after, until=until, query=query)
        with self._catalog.read() as view:
            return view.handoffs.page(handoff_filter, limit=limit, offset=offset)

    def get(self, identity: str) -> Found:
        """The newest revision of the pack that an id or a name means."""
        with self._catalog.read() as view:
            chosen = self._chosen(view, identity.strip(), self._now())
        row = chosen.row
        pack = read_revision(self._catalog, self._objects, row.digest, handoff_id=row.id, revision=row.revision)
        return Found(pack=pack, digest=row.digest, selected_by=chosen.selected_by)

    def history(self, handoff_id: HandoffId) -> HandoffHistory:
        """All that happened to a pack, whether it can still be had or not."""
        with self._catalog.read() as view:
            history = history_of(view.streams, handoff_id)
        if not history.happened:
            raise not_found(handoff_id.text)
        return history

    def revision(self, handoff_id: HandoffId, revision: int) -> HandoffPack:
        """One frozen revision, whether the pack can still be had or not."""
        return self.at(handoff_id, revision).pack

    def at(self, handoff_id: HandoffId, revision: int) -> Found:
        """The same, with the digest of its object."""
        history = self.history(handoff_id)
        kept = next((one for one in history.revisions if one.revision == revision), None)
        if kept is None:
            gone = history.collected and 1 <= revision <= history.last
            raise HandoffNotFound(
                "this revision was collected" if gone else "there is no such revision",
                at=f"{handoff_id}@{revision}",
                details={"kept_revisions": [revision.revision for revision in history.revisions]},
            )
        return Found(pack=self.kept(handoff_id, kept), digest=kept.digest, selected_by="exact_id")

    def kept(self, handoff_id: HandoffId, kept: Kept) -> HandoffPack:
        """A revision that a history keeps, for whoever has read the history already."""
        return read_revision(self._catalog, self._objects, kept.digest, handoff_id=handoff_id, revision=kept.revision)

    def bytes_of(self, found: Found) -> bytes:
        """The bytes of a revision, as they are stored: they have its digest."""
        return revision_bytes(self._catalog, self._objects, found.digest)

    def page_key(self) -> bytes:
        """The key that page tokens are signed with. Without any pack none was ever signed, and any key will do."""
        with self._catalog.read() as view:
            return page_key(view.streams) or self._ids.secret()

    def _now(self) -> Timestamp:
        return Timestamp.of(self._clock.now())

    def _chosen(self, view: View | Transaction, identity: str, now: Timestamp) -> Chosen:
        """The pack that is meant, if it can be had."""
        handoff_id = as_id(identity)
        if handoff_id is None:
            grace = self._limits.grace_seconds
            rows = holders(view.handoffs, identity, now, grace_seconds=grace)
            if not rows:
                raise nothing_named(view.handoffs, identity, now, grace_seconds=grace)
            return chosen(identity, rows)
        row = view.handoffs.row(handoff_id)
        if row is None and history_of(view.streams, handoff_id).alive:
            raise HandoffUnreadable(
                "this pack is in the store and not in its index: none of its revisions could be read",
                at=handoff_id.text,
                hint="'ctx fsck' tells what is damaged; when that is mended, 'ctx fsck --rebuild'",
                details={"id": handoff_id.text},
            )
        if row is None or not available(row.expires, now, self._limits.grace_seconds):
            raise not_found(identity)
        return Chosen(row=row, selected_by="exact_id")
