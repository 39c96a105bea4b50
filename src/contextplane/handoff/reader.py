"""Reading handoff packs: list, get and history, and the selection of a pack by its id or name.

A pack is available until its grace time is over; its revisions can be read until they are collected. The same rows
always select the same pack, or none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from contextplane.handoff.errors import HandoffAmbiguous, HandoffExpired, HandoffNotFound, HandoffUnreadable
from contextplane.handoff.freshness import DEFAULT_TTL_MINUTES, FreshnessState, deadline_range, is_available
from contextplane.handoff.storage import page_key, read_revision, revision_bytes
from contextplane.model.catalog import HandoffFilter, HandoffPage, HandoffRow
from contextplane.model.handoff import MAX_GRACE_SECONDS, HandoffHistory, HandoffPack, KeptRevision, Status
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.suggestion import closest_name
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.indexes import HandoffIndexView
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids
from contextplane.store.handoff_stream import history_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.handoff.finalize import MovedRef, UnanchoredRef
    from contextplane.handoff.source import SourceReader

__all__ = [
    "DeleteResult",
    "HandoffLimits",
    "HandoffReader",
    "SelectedBy",
    "SelectedPack",
    "Selection",
    "WriteResult",
    "as_id",
    "expired_error",
    "not_found",
    "not_found_by_name",
    "packs_named",
    "select_row",
]

_SHOWN = 60
_COMPARED = 50  # packs among which a similar name is searched

SelectedBy = Literal[
    "exact_id",
    "name_latest_finalized_updated_at_then_revision",
    "name_latest_draft_updated_at_then_revision",
]


class HandoffLimits(Value, frozen=True):
    """The grace time after a deadline, the life of a new pack, and the sizes of packs and source files."""

    grace_seconds: int = 900
    ttl_minutes: int = DEFAULT_TTL_MINUTES
    max_pack_bytes: int = 512 * 1024
    max_source_bytes: int = 2 * 1024 * 1024


class SelectedPack(Value, frozen=True):
    """A revision of a pack, the digest of its object, and the rule that selected the pack."""

    pack: HandoffPack
    digest: Digest
    selected_by: SelectedBy


class WriteResult(Value, frozen=True):
    """A new revision. One that is not `stored` was only checked.

    `moved` refs have their lines elsewhere now; the lines of `unanchored` refs do not exist.
    """

    pack: HandoffPack
    digest: Digest
    stored: bool
    moved: "tuple[MovedRef, ...]" = ()
    unanchored: "tuple[UnanchoredRef, ...]" = ()


class DeleteResult(Value, frozen=True):
    """The pack that was selected, and whether it existed and was deleted."""

    id: HandoffId
    deleted: bool


class Selection(Value, frozen=True):
    """The row of the selected pack, and the rule that selected it."""

    row: HandoffRow
    selected_by: SelectedBy


def as_id(identity: str) -> HandoffId | None:
    """The id that a text is; None when it is a name. A text of the form of an id is never a name."""
    return HandoffId(identity) if HandoffId.has_form(identity) else None


def packs_named(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> tuple[HandoffRow, ...]:
    """The packs that have this name now. A pack whose grace time is over has lost it."""
    return tuple(row for row in index.find_by_name(name) if is_available(row.expires, now, grace_seconds))


def select_row(name: str, rows: Sequence[HandoffRow]) -> Selection:
    """Select one of the packs of a name.

    Finalized before draft, then the latest, then the highest revision; `HandoffAmbiguous` between equals. There is at
    least one row.
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
    return Selection(row=equal[0], selected_by=by)


def not_found_by_name(index: HandoffIndexView, name: str, now: Timestamp, *, grace_seconds: int) -> HandoffNotFound:
    """The error for a name without a pack. It suggests the most similar name among the latest packs."""
    after, until = deadline_range(None, now, grace_seconds)
    latest = index.page(HandoffFilter(after=after, until=until), limit=_COMPARED).rows
    known = tuple(row.name for row in latest if row.name)
    return not_found(name, near=closest_name(name, known) if known else None)


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


def expired_error(identity: str, row: HandoffRow) -> HandoffExpired:
    """The error for a pack whose grace time is over: when it expired, and how it is revived."""
    revive = f"ctx handoff extend {row.id}"
    return HandoffExpired(
        f"the handoff pack {identity[:_SHOWN]!r} expired at {row.expires}",
        hint=f"revive it: {revive}",
        details={
            "requested": identity,
            "id": row.id.text,
            "expired_at": str(row.expires).removesuffix("Z") + "+00:00",
            "guidance": f"its grace time is over: until it is collected, a person revives it with '{revive}'",
        },
    )


class HandoffReader:
    """Reads the handoff packs of one store. Not thread-safe; many processes may read the same store."""

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

    def list(  # noqa: PLR0913  one filter each, all by name
        self,
        *,
        status: Status | None = None,
        freshness: FreshnessState | None = None,
        query: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        retained: bool = False,
    ) -> HandoffPage:
        """The available packs, newest first. Expired ones are listed only when `freshness` asks for them.

        `retained`: list expired packs too, also those whose grace time is over.
        """
        grace = MAX_GRACE_SECONDS if retained else self._limits.grace_seconds
        after, until = deadline_range(freshness, self._now(), grace)
        after = None if retained and freshness is None else after
        handoff_filter = HandoffFilter(status=status, after=after, until=until, query=query)
        with self._catalog.read() as view:
            return view.handoffs.page(handoff_filter, limit=limit, offset=offset)

    def get(self, identity: str) -> SelectedPack:
        """The newest revision of the pack with this id or name."""
        with self._catalog.read() as view:
            selection = self._select(view, identity.strip(), self._now())
        row = selection.row
        pack = read_revision(self._catalog, self._objects, row.digest, handoff_id=row.id, revision=row.revision)
        return SelectedPack(pack=pack, digest=row.digest, selected_by=selection.selected_by)

    def history(self, handoff_id: HandoffId) -> HandoffHistory:
        """The events of a pack, whether it is still available or not."""
        with self._catalog.read() as view:
            history = history_of(view.streams, handoff_id)
        if not history.events:
            raise not_found(handoff_id.text)
        return history

    def revision(self, handoff_id: HandoffId, revision: int) -> HandoffPack:
        """One revision, whether the pack is still available or not."""
        return self.get_revision(handoff_id, revision).pack

    def get_revision(self, handoff_id: HandoffId, revision: int) -> SelectedPack:
        """One revision with the digest of its object, whether the pack is still available or not."""
        history = self.history(handoff_id)
        kept = next((kept for kept in history.revisions if kept.revision == revision), None)
        if kept is None:
            gone = history.collected and 1 <= revision <= history.last
            raise HandoffNotFound(
                "this revision was collected" if gone else "there is no such revision",
                at=f"{handoff_id}@{revision}",
                details={"kept_revisions": [kept.revision for kept in history.revisions]},
            )
        return SelectedPack(pack=self.read_kept(handoff_id, kept), digest=kept.digest, selected_by="exact_id")

    def read_kept(self, handoff_id: HandoffId, kept: KeptRevision) -> HandoffPack:
        """Read a revision of a history that the caller has already."""
        return read_revision(self._catalog, self._objects, kept.digest, handoff_id=handoff_id, revision=kept.revision)

    def bytes_of(self, selected: SelectedPack) -> bytes:
        """The bytes of a revision as they are stored: they have its digest."""
        return revision_bytes(self._catalog, self._objects, selected.digest)

    def page_key(self) -> bytes:
        """The key that page tokens are signed with; a random one while the store has no pack, hence no token."""
        with self._catalog.read() as view:
            return page_key(view.streams) or self._ids.secret()

    def _now(self) -> Timestamp:
        return Timestamp.of(self._clock.now())

    def _select(self, view: View | Transaction, identity: str, now: Timestamp, *, retained: bool = False) -> Selection:
        """Select an available pack by its id or name.

        A pack whose grace time is over is `HandoffExpired`, unless `retained` packs are selected, too.
        """
        handoff_id = as_id(identity)
        if handoff_id is None:
            return self._select_by_name(view, identity, now, retained=retained)
        row = view.handoffs.row(handoff_id)
        if row is None and history_of(view.streams, handoff_id).alive:
            raise HandoffUnreadable(
                "this pack is in the store and not in its index: none of its revisions could be read",
                at=handoff_id.text,
                hint="'ctx fsck' lists the damage; repair it, then run 'ctx fsck --rebuild'",
                details={"id": handoff_id.text},
            )
        if row is None:
            raise not_found(identity)
        if not retained and not is_available(row.expires, now, self._limits.grace_seconds):
            raise expired_error(identity, row)
        return Selection(row=row, selected_by="exact_id")

    def _select_by_name(self, view: View | Transaction, name: str, now: Timestamp, *, retained: bool) -> Selection:
        grace = self._limits.grace_seconds
        rows = packs_named(view.handoffs, name, now, grace_seconds=grace)
        if rows:
            return select_row(name, rows)
        former = view.handoffs.find_by_name(name)
        if not former:
            raise not_found_by_name(view.handoffs, name, now, grace_seconds=grace)
        if retained:
            return select_row(name, former)
        raise expired_error(name, max(former, key=lambda row: row.expires))
