"""Reading the shelf: what can be had, and what once was.

A pack can be had until its grace time is over; its revisions can be read until they are collected.
"""

from typing import TYPE_CHECKING

from contextplane.handoff.freshness import FreshnessState, available, filter_for
from contextplane.handoff.keeping import history_of, page_key, read_revision, revision_bytes
from contextplane.handoff.kept import Found, HandoffLimits
from contextplane.handoff.names import Chosen, as_id, chosen, holders, not_found, nothing_named
from contextplane.handoff.refusals import HandoffNotFound, HandoffUnreadable
from contextplane.model.handoff import HandoffPack, Status
from contextplane.model.handoff_events import HandoffHistory, Kept
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.clock import Clock
from contextplane.ports.handoff_index import HandoffFilter, HandoffPage
from contextplane.ports.ids import Ids
from contextplane.ports.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.handoff.code import SourceReader

__all__ = ["ReadingShelf"]


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
        wanted = HandoffFilter(status=status, after=after, until=until, query=query)
        with self._catalog.read() as view:
            return view.handoffs.page(wanted, limit=limit, offset=offset)

    def get(self, identity: str) -> Found:
        """The newest revision of the pack that an id or a name means."""
        with self._catalog.read() as view:
            one = self._chosen(view, identity.strip(), self._now())
        row = one.row
        pack = read_revision(self._catalog, self._objects, row.digest, handoff_id=row.id, revision=row.revision)
        return Found(pack=pack, digest=row.digest, selected_by=one.selected_by)

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
                details={"kept_revisions": [one.revision for one in history.revisions]},
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
