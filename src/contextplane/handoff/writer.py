"""The repository of handoff packs: write, ttl and delete on one store, through ports alone.

A new revision is made from a document, the revision before it and the files that it refers to, checked in full, and
then stored if the pack is still at the revision that the writer expected.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from contextplane.handoff.anchors import make_anchor
from contextplane.handoff.errors import HandoffInvalid, HandoffNameTaken, HandoffRefusal, RevisionConflict
from contextplane.handoff.finalize import MovedRef, check_finalizable, unanchored_refs
from contextplane.handoff.freshness import DEFAULT_TTL_MINUTES, deadline, is_available, moved_deadline
from contextplane.handoff.reader import (
    DeleteResult,
    HandoffLimits,
    HandoffReader,
    SelectedPack,
    WriteResult,
    as_id,
    not_found,
    packs_named,
)
from contextplane.handoff.source import SourceReader, SourceRefused
from contextplane.handoff.storage import ensure_page_key, store_revision
from contextplane.model.handoff import (
    Anchor,
    HandoffDocument,
    HandoffPack,
    HandoffProvenance,
    KeptRevision,
    LineRange,
    Ref,
    Section,
    pack_bytes,
    stream_name,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, StreamConflict, Transaction, View
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids
from contextplane.store.event_stream import flush_pending
from contextplane.store.handoff_stream import append_deleted, fold_handoff

__all__ = [
    "HandoffRepository",
    "UninitializedRepository",
    "encode_revision",
    "first_revision",
    "next_revision",
    "revision_conflict",
]

_KEYS = 12


def first_revision(
    document: HandoffDocument,
    handoff_id: HandoffId,
    *,
    now: Timestamp,
    reader: SourceReader,
    ttl_minutes: int = DEFAULT_TTL_MINUTES,
) -> HandoffPack:
    """Make a new pack. If the document has no ttl, it lives for `ttl_minutes`."""
    minutes = ttl_minutes if document.ttl_minutes is None else document.ttl_minutes
    return HandoffPack(
        id=handoff_id.text,
        name=document.name,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=_with_anchors(document.sections, (), reader),
        revision=1,
        created_at=str(now),
        updated_at=str(now),
        expires_at=str(deadline(now, minutes, field="document.ttl_minutes")),
    )


def next_revision(
    document: HandoffDocument, before: HandoffPack, *, now: Timestamp, reader: SourceReader
) -> HandoffPack:
    """Make the next revision, with the whole content replaced.

    The name stays; without a ttl, so does the deadline. `updated_at` never goes back.
    """
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
        sections=_with_anchors(document.sections, before.sections, reader),
        revision=before.revision + 1,
        updated_at=str(max(now, before.updated)),
        expires_at=str(expires),
    )


def encode_revision(pack: HandoffPack, max_pack_bytes: int) -> bytes:
    """Encode a revision as its object, or raise `HandoffInvalid` when it is too large or cannot be stored.

    The limit is on what the agent wrote: anchors and the provenance, which are added here, do not count.
    """
    try:
        data = pack_bytes(pack)
    except JsonRefused as error:
        field = f"document{(error.at or '').replace('/', '.')}"
        raise HandoffInvalid(f"cannot be stored: {error.message}", at=field, details={"field": field}) from error
    size = len(data) if len(data) <= max_pack_bytes else len(data) - _added_size(pack)
    if size > max_pack_bytes:
        raise HandoffInvalid(
            f"the pack has {size} bytes, and {max_pack_bytes} are allowed",
            at="document",
            hint="split it into several packs",
            details={"field": "document", "size_bytes": size, "max_pack_bytes": max_pack_bytes},
        )
    return data


def revision_conflict(expected: int, current: HandoffPack, before: HandoffPack | None) -> RevisionConflict:
    """The error of a writer whose expected revision is not the current one.

    `before` is the expected revision, None when it never existed or cannot be read.
    """
    changed = _changed_keys(before.sections if before else (), current.sections)
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


def _changed_keys(before: Sequence[Section], after: Sequence[Section]) -> list[str]:
    old, new = {section.key: section for section in before}, {section.key: section for section in after}
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _added_size(pack: HandoffPack) -> int:
    """The bytes of a pack that are its anchors and its provenance, each with its name and a comma."""
    anchors = (ref.anchor for section in pack.sections for ref in section.refs)
    size = sum(len(canonical({"anchor": msgspec.to_builtins(anchor)})) - 1 for anchor in anchors)
    if pack.provenance is UNSET:
        return size
    return size + len(canonical({"provenance": msgspec.to_builtins(pack.provenance)})) - 1


def _with_anchors(sections: Sequence[Section], before: Sequence[Section], reader: SourceReader) -> tuple[Section, ...]:
    """Anchor each ref to its lines as they are now; a ref to the same lines as before keeps its anchor.

    An author who edits the text of a ref has not looked at its lines again. Another key or other lines are a new ref.
    """
    earlier = _EarlierAnchors(before)
    return tuple(
        msgspec.structs.replace(
            section,
            refs=tuple(
                msgspec.structs.replace(ref, anchor=earlier.anchor(section.key, ref) or _anchor(ref, reader))
                for ref in section.refs
            ),
        )
        for section in sections
    )


class _EarlierAnchors:
    """The anchors of the revision before, by the key, path and lines of their refs."""

    def __init__(self, sections: Sequence[Section]) -> None:
        refs = [(section.key, ref) for section in sections for ref in section.refs]
        self._here = {(key, *_target(ref)): ref.anchor for key, ref in refs}
        # A ref that moved to another section is still the same ref.
        self._anywhere = {_target(ref): ref.anchor for _, ref in refs}

    def anchor(self, section_key: str, ref: Ref) -> Anchor | None:
        return self._here.get((section_key, *_target(ref))) or self._anywhere.get(_target(ref))


def _target(ref: Ref) -> tuple[str, str, LineRange]:
    return ref.key, ref.path, ref.lines


def _anchor(ref: Ref, reader: SourceReader) -> Anchor | None:
    """Anchor a ref; None when its lines do not exist: a draft may refer to files that are not written yet."""
    try:
        lines = reader.lines(ref.path)
    except SourceRefused:
        return None
    return make_anchor(lines, ref.lines)


def _with_deadline(
    before: HandoffPack, expires: Timestamp, now: Timestamp, provenance: HandoffProvenance | UnsetType
) -> WriteResult:
    """Make the next revision of a pack, with the same content and another deadline."""
    updated = str(max(now, before.updated))
    pack = msgspec.structs.replace(
        before,
        revision=before.revision + 1,
        updated_at=updated,
        expires_at=str(expires),
        provenance=provenance,
    )
    # A pack that is stored already is not too large to get a later deadline.
    return WriteResult(pack=pack, digest=Digest.of(encode_revision(pack, _ANY_SIZE)), stored=False)


_TRIES = 16
_ANY_SIZE = 1 << 62

_Check = Callable[[Transaction], None]
"""Raises when the revision must not be stored. It is called in the transaction that would store it."""


class HandoffRepository(HandoffReader):
    """Reads and writes handoff packs. Of two writers with the same expected revision exactly one wins.

    `provenance` returns who is writing now, and on which code.
    """

    def __init__(  # noqa: PLR0913  one port each, all by name
        self,
        catalog: Catalog,
        objects: Objects,
        *,
        clock: Clock,
        ids: Ids,
        reader_factory: Callable[[], SourceReader],
        limits: HandoffLimits,
        provenance: Callable[[], HandoffProvenance | UnsetType] = lambda: UNSET,
    ) -> None:
        super().__init__(catalog, objects, clock=clock, ids=ids, reader_factory=reader_factory, limits=limits)
        self._provenance = provenance

    def write(
        self,
        document: HandoffDocument,
        *,
        identity: str | None = None,
        expected_revision: int | None = None,
        validate_only: bool = False,
    ) -> WriteResult:
        """Replace the whole content of a pack, or make a new one. `validate_only`: check all, store nothing."""
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
        pack = msgspec.structs.replace(pack, provenance=UNSET if validate_only else self._provenance())
        checked = self._check(pack, reader)
        return checked if validate_only else self._advance(checked, "written")

    def ttl(
        self,
        identity: str,
        *,
        expected_revision: int | None,
        ttl_minutes: int | None = None,
        extend_minutes: int | None = None,
    ) -> WriteResult:
        """Move the deadline, which makes a new revision with the same content."""
        now = self._now()
        before = self._at_revision(identity, expected_revision).pack
        expires = moved_deadline(before.expires, now, ttl_minutes=ttl_minutes, extend_minutes=extend_minutes)
        return self._advance(_with_deadline(before, expires, now, self._provenance()), "ttl")

    def extend(self, identity: str, *, extend_minutes: int | None = None) -> WriteResult:
        """Extend the life of a pack at any revision, also of one whose grace time is over.

        Without minutes it is extended by the life of a new pack. `HandoffNameTaken` if its name went to another pack.
        """
        now, identity = self._now(), identity.strip()
        with self._catalog.read() as view:
            row = self._select(view, identity, now, retained=True).row
        before = self.read_kept(row.id, KeptRevision(revision=row.revision, digest=row.digest))
        minutes = self._limits.ttl_minutes if extend_minutes is None else extend_minutes
        expires = moved_deadline(before.expires, now, ttl_minutes=None, extend_minutes=minutes)
        checked = _with_deadline(before, expires, now, self._provenance())
        return self._advance(checked, "ttl", lambda tx: self._refuse_taken(tx, before.name, now, by=row.id))

    def delete(self, identity: str) -> DeleteResult:
        """Delete a pack at any revision, readable or not. From then on it is not found."""
        identity, now = identity.strip(), self._now()
        with self._catalog.write() as tx:
            handoff_id = as_id(identity) or self._select(tx, identity, now).row.id
            row = tx.handoffs.row(handoff_id)
            end = fold_handoff(tx.streams, handoff_id)
            exists = end.state.alive and (row is None or is_available(row.expires, now, self._limits.grace_seconds))
            if exists:
                append_deleted(tx, handoff_id, end, at=now)
        return DeleteResult(id=handoff_id, deleted=exists)

    def flush_pending(self) -> None:
        """Make files of the revisions that wait in the catalog."""
        flush_pending(self._catalog, self._objects)

    def _create(self, document: HandoffDocument, *, validate_only: bool) -> WriteResult:
        reader, provenance = self._reader_factory(), UNSET if validate_only else self._provenance()
        for _ in range(_TRIES):
            now, handoff_id = self._now(), self._ids.handoff_id()
            with self._catalog.read() as view:
                self._refuse_taken(view, document.name, now)
                clash = view.streams.head(stream_name(handoff_id)) > 0
            if clash:
                continue
            pack = first_revision(document, handoff_id, now=now, reader=reader, ttl_minutes=self._limits.ttl_minutes)
            checked = self._check(msgspec.structs.replace(pack, provenance=provenance), reader)
            if validate_only:
                return checked
            try:
                return self._store(checked, "written", lambda tx: self._refuse_taken(tx, document.name, self._now()))
            except StreamConflict:
                continue  # another process made a pack of this id a moment ago
        raise HandoffInvalid("no free id was found", hint="try again", details={"guidance": "try again"})

    def _check(self, pack: HandoffPack, reader: SourceReader) -> WriteResult:
        """Check a revision in every respect but whether another writer is faster."""
        moved: tuple[MovedRef, ...] = check_finalizable(pack, reader.locate) if pack.status == "finalized" else ()
        data = encode_revision(pack, self._limits.max_pack_bytes)
        unanchored = unanchored_refs(pack, reader.locate)
        return WriteResult(pack=pack, digest=Digest.of(data), stored=False, moved=moved, unanchored=unanchored)

    def _at_revision(self, identity: str, expected: int | None) -> SelectedPack:
        """The pack, if it is at the revision that the writer expects; else raise `RevisionConflict`."""
        if expected is None:
            raise HandoffInvalid(
                "expected_revision is required to change a pack",
                details={
                    "required_fields": ["expected_revision"],
                    "guidance": ["call input get for the current revision", "retry with expected_revision set to it"],
                },
            )
        selected = self.get(identity)
        if selected.pack.revision != expected:
            raise self._conflict(expected, selected.pack)
        return selected

    def _advance(
        self, checked: WriteResult, kind: Literal["written", "ttl"], check: _Check | None = None
    ) -> WriteResult:
        """Store the next revision of a pack, if it is still at the one before."""
        pack, expected = checked.pack, checked.pack.revision - 1

        def check_revision(tx: Transaction) -> None:
            row = tx.handoffs.row(pack.handoff_id)
            if row is None:
                raise not_found(pack.id)
            if row.revision != expected:
                raise StreamConflict("another writer was faster", at=stream_name(pack.handoff_id))
            if check is not None:
                check(tx)

        try:
            return self._store(checked, kind, check_revision)
        except StreamConflict as error:
            raise self._conflict(expected, self.get(pack.id).pack) from error

    def _store(self, checked: WriteResult, kind: Literal["written", "ttl"], check: _Check) -> WriteResult:
        def prepare(tx: Transaction) -> None:
            check(tx)
            ensure_page_key(tx, self._ids)

        store_revision(self._catalog, self._objects, pack=checked.pack, kind=kind, prepare=prepare)
        return msgspec.structs.replace(checked, stored=True)

    def _conflict(self, expected: int, current: HandoffPack) -> HandoffRefusal:
        try:
            before = self.revision(current.handoff_id, expected)
        except HandoffRefusal:
            before = None
        return revision_conflict(expected, current, before)

    def _refuse_taken(
        self, view: View | Transaction, name: str | None, now: Timestamp, *, by: HandoffId | None = None
    ) -> None:
        """Refuse a name that another pack than `by` has."""
        if name is None:
            return
        named = packs_named(view.handoffs, name, now, grace_seconds=self._limits.grace_seconds)
        holders = [row for row in named if row.id != by]
        if holders:
            raise HandoffNameTaken(
                "another pack has this name",
                at="document.name",
                hint=f"write to {holders[0].id}, or choose another name",
                details={"field": "document.name", "name": name, "taken_by": [row.id.text for row in holders]},
            )


class UninitializedRepository(HandoffRepository):
    """The empty repository of a place without a store. The first valid write makes a store with `make`."""

    def __init__(  # noqa: PLR0913  one port each, all by name
        self,
        catalog: Catalog,
        objects: Objects,
        *,
        clock: Clock,
        ids: Ids,
        reader_factory: Callable[[], SourceReader],
        limits: HandoffLimits,
        provenance: Callable[[], HandoffProvenance | UnsetType] = lambda: UNSET,
        make: Callable[[], HandoffRepository],
    ) -> None:
        super().__init__(
            catalog,
            objects,
            clock=clock,
            ids=ids,
            reader_factory=reader_factory,
            limits=limits,
            provenance=provenance,
        )
        self._make = make

    def write(
        self,
        document: HandoffDocument,
        *,
        identity: str | None = None,
        expected_revision: int | None = None,
        validate_only: bool = False,
    ) -> WriteResult:
        checked = super().write(document, identity=identity, expected_revision=expected_revision, validate_only=True)
        return checked if validate_only else self._make().write(document)
