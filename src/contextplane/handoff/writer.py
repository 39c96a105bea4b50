"""The shelf of handoff packs: list, get, write, ttl and delete on one store, through ports alone.

What a new revision is: from a document, the one before it, and the files that it refers to. It stores nothing.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from contextplane.handoff.anchors import anchored
from contextplane.handoff.errors import HandoffInvalid, HandoffNameTaken, HandoffRefusal, RevisionConflict
from contextplane.handoff.finalize import MovedRef, checked, unanchored
from contextplane.handoff.freshness import DEFAULT_TTL_MINUTES, available, deadline, moved_deadline
from contextplane.handoff.reader import Deleted, Found, ReadingShelf, Written, as_id, holders, not_found
from contextplane.handoff.source import SourceReader, SourceRefused
from contextplane.handoff.storage import AT_ONCE, append_deleted, ensure_page_key, history_of, keep, settle
from contextplane.model.handoff import (
    Anchor,
    HandoffDocument,
    HandoffPack,
    Lines,
    Ref,
    Section,
    pack_bytes,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamConflict, Transaction, View

__all__ = ["Shelf", "conflict", "first_revision", "next_revision", "sized_bytes"]

_KEYS = 12


def first_revision(
    document: HandoffDocument, handoff_id: HandoffId, *, now: Timestamp, reader: SourceReader
) -> HandoffPack:
    """A new pack. Without a ttl it is good for 24 hours."""
    minutes = DEFAULT_TTL_MINUTES if document.ttl_minutes is None else document.ttl_minutes
    return HandoffPack(
        id=handoff_id.text,
        name=document.name,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=_anchored(document.sections, (), reader),
        revision=1,
        created_at=str(now),
        updated_at=str(now),
        expires_at=str(deadline(now, minutes, field="document.ttl_minutes")),
    )


def next_revision(
    document: HandoffDocument, before: HandoffPack, *, now: Timestamp, reader: SourceReader
) -> HandoffPack:
    """The whole content replaced. The name stays; without a ttl, so does the deadline. Time never goes back."""
    if document.name is not None and document.name != before.name:
        raise HandoffInvalid(
            "name is immutable",
            at="document.name",
            hint="leave it out, or repeat it",
            details={"field": "document.name", "current": before.name, "guidance": "leave it out, or repeat it"},
        )
    ttl = document.ttl_minutes
    expires = before.expires if ttl is None else deadline(now, ttl, field="document.ttl_minutes")
    return msgspec.structs.replace(
        before,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=_anchored(document.sections, before.sections, reader),
        revision=before.revision + 1,
        updated_at=str(max(now, before.updated)),
        expires_at=str(expires),
    )


def sized_bytes(pack: HandoffPack, max_pack_bytes: int) -> bytes:
    """The object that a revision is, unless it is too large, or holds what cannot be stored.

    Its size is that of what was written: anchors, which we add to it, do not count.
    """
    try:
        data = pack_bytes(pack)
    except JsonRefused as error:
        field = f"document{(error.at or '').replace('/', '.')}"
        raise HandoffInvalid(f"cannot be stored: {error.message}", at=field, details={"field": field}) from error
    size = len(data) if len(data) <= max_pack_bytes else len(data) - _anchors_size(pack)
    if size > max_pack_bytes:
        raise HandoffInvalid(
            f"the pack has {size} bytes, and {max_pack_bytes} are allowed",
            at="document",
            hint="split it into several packs",
            details={"field": "document", "size_bytes": size, "max_pack_bytes": max_pack_bytes},
        )
    return data


def conflict(expected: int, current: HandoffPack, before: HandoffPack | None) -> RevisionConflict:
    """Somebody wrote first. `before` is the expected revision, None when there never was one or it cannot be read."""
    changed = _changed(before.sections if before else (), current.sections)
    return RevisionConflict(
        f"expected revision {expected}, and the pack is at {current.revision}",
        at=current.id,
        hint="get the pack again, merge, and write with its revision",
        details={
            "expected_revision": expected,
            "current_revision": current.revision,
            "actual_revision": current.revision,
            "last_updated_at": str(current.updated).removesuffix("Z") + "+00:00",
            "changed_section_keys": changed[:_KEYS],
            "guidance": (
                "call input get for the latest pack, merge your intent with the changed sections,"
                f" then retry with expected_revision={current.revision}"
            ),
        },
    )


def _changed(before: Sequence[Section], after: Sequence[Section]) -> list[str]:
    old, new = {section.key: section for section in before}, {section.key: section for section in after}
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _anchors_size(pack: HandoffPack) -> int:
    """How many bytes of a pack its anchors are, each with its name and a comma."""
    anchors = (ref.anchor for section in pack.sections for ref in section.refs)
    return sum(len(canonical({"anchor": msgspec.to_builtins(anchor)})) - 1 for anchor in anchors)


def _anchored(sections: Sequence[Section], before: Sequence[Section], reader: SourceReader) -> tuple[Section, ...]:
    """Each ref with what its lines are now; one that leads to the same lines as before keeps what they were then.

    Those who edit what is said of a ref have not looked at its lines again. Another key or other lines are a new ref.
    """
    known = _Known(before)
    return tuple(
        msgspec.structs.replace(
            section,
            refs=tuple(
                msgspec.structs.replace(ref, anchor=known.anchor(section.key, ref) or _anchor(ref, reader))
                for ref in section.refs
            ),
        )
        for section in sections
    )


class _Known:
    """The anchors of the revision before, by the key, the path and the lines of their refs."""

    def __init__(self, sections: Sequence[Section]) -> None:
        refs = [(section.key, ref) for section in sections for ref in section.refs]
        self._here = {(key, *_leads(ref)): ref.anchor for key, ref in refs}
        # A ref that was put into another section is still the same.
        self._anywhere = {_leads(ref): ref.anchor for _, ref in refs}

    def anchor(self, section_key: str, ref: Ref) -> Anchor | None:
        return self._here.get((section_key, *_leads(ref))) or self._anywhere.get(_leads(ref))


def _leads(ref: Ref) -> tuple[str, str, Lines]:
    return ref.key, ref.path, ref.lines


def _anchor(ref: Ref, reader: SourceReader) -> Anchor | None:
    """None where there is nothing to hold on to: a draft may speak of files that are not there yet."""
    try:
        lines = reader.lines(ref.path)
    except SourceRefused:
        return None
    return anchored(lines, ref.lines)


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
        pack = self.get(identity)
        if pack.pack.revision != expected:
            raise self._conflict(expected, pack.pack)
        return pack

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
