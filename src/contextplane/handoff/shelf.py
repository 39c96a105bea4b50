"""The shelf of handoff packs: list, get, write, ttl and delete on one store, through ports alone."""

from collections.abc import Callable
from typing import Literal

import msgspec

from contextplane.handoff.code import SourceReader
from contextplane.handoff.finalize import MovedRef, checked
from contextplane.handoff.freshness import available
from contextplane.handoff.keeping import append_deleted, ensure_page_key, history_of, keep
from contextplane.handoff.kept import Deleted, Found, Written
from contextplane.handoff.lifetimes import moved_deadline
from contextplane.handoff.names import as_id, holders, not_found
from contextplane.handoff.reading import ReadingShelf
from contextplane.handoff.refusals import HandoffInvalid, HandoffNameTaken, HandoffRefusal
from contextplane.handoff.settling import AT_ONCE, settle
from contextplane.handoff.unanchored import unanchored
from contextplane.handoff.writing import conflict, first_revision, next_revision, sized_bytes
from contextplane.model.handoff import HandoffDocument, HandoffPack
from contextplane.model.handoff_events import stream_name
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.streams import StreamConflict

__all__ = ["Shelf"]

_TRIES = 16
_ANY_SIZE = 1 << 62

_Permitted = Callable[[Transaction], None]


class Shelf(ReadingShelf):
    """All of it. Of two writers with the same expected revision exactly one wins."""

    def write(
        self,
        document: HandoffDocument,
        *,
        identity: str | None = None,
        expected_revision: int | None = None,
        validate_only: bool = False,
    ) -> Written:
        """Replace the whole content of a pack, or make a new one; `validate_only` does all of it but storing."""
        if identity is None:
            if expected_revision is not None:
                raise HandoffInvalid(
                    "expected_revision is given, and no pack that it could be of",
                    details={"required_fields": ["id", "name"], "unsupported_field": "expected_revision"},
                )
            return self._create(document, validate_only=validate_only)
        now, reader = self._now(), self._reader_factory()
        before = self._at_revision(identity, expected_revision).pack
        pack = next_revision(document, before, now=now, reader=reader)
        made = self._made(pack, reader)
        return made if validate_only else self._advance(made, "written")

    def ttl(
        self,
        identity: str,
        *,
        expected_revision: int | None,
        ttl_minutes: int | None = None,
        extend_minutes: int | None = None,
    ) -> Written:
        """Move the deadline, which makes a new revision with the same content."""
        now = self._now()
        before = self._at_revision(identity, expected_revision).pack
        expires = moved_deadline(before.expires, now, ttl_minutes=ttl_minutes, extend_minutes=extend_minutes)
        pack = msgspec.structs.replace(
            before, revision=before.revision + 1, updated_at=str(max(now, before.updated)), expires_at=str(expires)
        )
        # A pack that is here already is not too large to live longer.
        made = Written(pack=pack, digest=Digest.of(sized_bytes(pack, _ANY_SIZE)), stored=False)
        return self._advance(made, "ttl")

    def delete(self, identity: str) -> Deleted:
        """Delete a pack, whatever its revision, and whether it can be read or not. It is not found from then on."""
        identity, now = identity.strip(), self._now()
        with self._catalog.write() as tx:
            handoff_id = as_id(identity) or self._chosen(tx, identity, now).row.id
            row = tx.handoffs.row(handoff_id)
            history = history_of(tx.streams, handoff_id)
            there = history.alive and (row is None or available(row.expires, now, self._limits.grace_seconds))
            if there:
                append_deleted(tx, handoff_id, revision=history.last, at=now)
        return Deleted(id=handoff_id, deleted=there)

    def settle(self) -> None:
        """Make files of the revisions that wait in the catalog."""
        settle(self._catalog, self._objects)

    def _create(self, document: HandoffDocument, *, validate_only: bool) -> Written:
        reader = self._reader_factory()
        for _ in range(_TRIES):
            now, handoff_id = self._now(), self._ids.handoff_id()
            with self._catalog.read() as view:
                self._refuse_taken(view, document.name, now)
                clash = view.streams.head(stream_name(handoff_id)) > 0
            if clash:
                continue
            made = self._made(first_revision(document, handoff_id, now=now, reader=reader), reader)
            if validate_only:
                return made
            try:
                return self._stored(made, "written", lambda tx: self._refuse_taken(tx, document.name, self._now()))
            except StreamConflict:
                continue  # another process made a pack of this id a moment ago
        raise HandoffInvalid("no free id was found", hint="try again", details={"guidance": "try again"})

    def _made(self, pack: HandoffPack, reader: SourceReader) -> Written:
        """A revision that may be stored, checked in every respect but who is faster."""
        moved: tuple[MovedRef, ...] = checked(pack, reader.look) if pack.status == "finalized" else ()
        data = sized_bytes(pack, self._limits.max_pack_bytes)
        loose = unanchored(pack, reader.look)
        return Written(pack=pack, digest=Digest.of(data), stored=False, moved=moved, unanchored=loose)

    def _at_revision(self, identity: str, expected: int | None) -> Found:
        """The pack, if it is at the revision that the writer knows."""
        if expected is None:
            raise HandoffInvalid(
                "expected_revision is required to change a pack",
                details={
                    "required_fields": ["expected_revision"],
                    "guidance": ["call input get for the current revision", "retry with expected_revision set to it"],
                },
            )
        found = self.get(identity)
        if found.pack.revision != expected:
            raise self._conflict(expected, found.pack)
        return found

    def _advance(self, made: Written, kind: Literal["written", "ttl"]) -> Written:
        """Store the next revision of a pack, if it is still at the one before."""
        pack, expected = made.pack, made.pack.revision - 1

        def permitted(tx: Transaction) -> None:
            row = tx.handoffs.row(pack.handoff_id)
            if row is None:
                raise not_found(pack.id)
            if row.revision != expected:
                raise StreamConflict("another writer was faster", at=stream_name(pack.handoff_id))

        try:
            return self._stored(made, kind, permitted)
        except StreamConflict as error:
            raise self._conflict(expected, self.get(pack.id).pack) from error

    def _stored(self, made: Written, kind: Literal["written", "ttl"], permitted: _Permitted) -> Written:
        def settled(tx: Transaction) -> None:
            permitted(tx)
            ensure_page_key(tx, self._ids)

        waiting = keep(self._catalog, self._objects, pack=made.pack, kind=kind, permitted=settled)
        if waiting >= AT_ONCE:
            self.settle()
        return msgspec.structs.replace(made, stored=True)

    def _conflict(self, expected: int, current: HandoffPack) -> HandoffRefusal:
        try:
            before = self.revision(current.handoff_id, expected)
        except HandoffRefusal:
            before = None
        return conflict(expected, current, before)

    def _refuse_taken(self, view: View | Transaction, name: str | None, now: Timestamp) -> None:
        if name is None:
            return
        taken = holders(view.handoffs, name, now, grace_seconds=self._limits.grace_seconds)
        if taken:
            raise HandoffNameTaken(
                "another pack has this name",
                at="document.name",
                hint="write to that one by its id, or choose another name",
                details={"field": "document.name", "name": name, "taken_by": [row.id.text for row in taken]},
            )
