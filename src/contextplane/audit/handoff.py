"""Compares two revisions of handoff packs, and verifies a handoff pack.

Comparing matches sections, refs and diagrams by their keys. Revision numbers and times of writing always differ and are
not compared. Verifying checks that the history is whole, and that every revision has the bytes that its event names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar, assert_never

from msgspec import UNSET, UnsetType

from contextplane.audit.text_diff import TextDiff, diff_texts
from contextplane.audit.verify import Answer, VerificationProblem, gravest_answer
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.reader import not_found
from contextplane.handoff.storage import revision_bytes
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import (
    SCHEMA_VERSION,
    Diagram,
    HandoffEvent,
    HandoffHistory,
    HandoffPack,
    KeptRevision,
    Ref,
    Section,
    pack_bytes,
    read_pack,
    root_name,
    stream_name,
)
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog
from contextplane.ports.objects import ObjectCorrupt, Objects
from contextplane.store.handoff_stream import history_of

__all__ = ["HandoffChange", "HandoffVerdict", "diff_handoffs", "verify_handoff"]

FieldValue = str | list[str] | None
P = TypeVar("P", Section, Ref, Diagram)

_LONG_LINE = 80
_MAX_TEXTS = 100
_LEFT_OUT = TextDiff(state="left_out", why=f"only the first {_MAX_TEXTS} texts are compared line by line")


# --- comparing --------------------------------------------------------------------------------------------------------


class HandoffChange(Value, frozen=True, omit_defaults=True):
    """A difference. `at`: its place, by keys; `a` and `b`: the values; `text`: how long texts differ."""

    type: Literal["added", "removed", "changed", "reordered"]
    at: str
    description: str
    a: FieldValue | UnsetType = UNSET
    b: FieldValue | UnsetType = UNSET
    text: TextDiff | UnsetType = UNSET


def diff_handoffs(a: HandoffPack, b: HandoffPack) -> tuple[HandoffChange, ...]:
    """Every difference: of the packs, then of each section in the order of `a`, then of those only in `b`."""
    return tuple(_HandoffComparison().packs(a, b))


class _HandoffComparison:
    """A comparison of two packs. It counts the texts that were compared line by line."""

    def __init__(self) -> None:
        self._texts = 0

    def packs(self, a: HandoffPack, b: HandoffPack) -> Iterator[HandoffChange]:
        yield from self._fields(
            {"id": a.id, "name": a.name, "title": a.title, "brief": a.brief, "status": a.status, "tags": [*a.tags]},
            {"id": b.id, "name": b.name, "title": b.title, "brief": b.brief, "status": b.status, "tags": [*b.tags]},
            at="",
            of="",
        )
        yield from self._fields({"expires_at": a.expires_at}, {"expires_at": b.expires_at}, at="", of="")
        yield from self._lists(a.sections, b.sections, at="sections", what="section")

    def _section(self, a: Section, b: Section, at: str) -> Iterator[HandoffChange]:
        yield from self._lists(a.refs, b.refs, at=f"{at}/refs", what="ref")
        yield from self._lists(a.diagrams, b.diagrams, at=f"{at}/diagrams", what="diagram")

    def _lists(self, a: Sequence[P], b: Sequence[P], *, at: str, what: str) -> Iterator[HandoffChange]:
        """Yield what was removed, changed and added among parts with keys, and whether the order differs."""
        ours, theirs = {part.key: part for part in a}, {part.key: part for part in b}
        for key, part in ours.items():
            if key not in theirs:
                yield HandoffChange(type="removed", at=f"{at}/{key}", description=f"{what} {key} was removed")
            else:
                yield from self._part(part, theirs[key], at=f"{at}/{key}", of=f"{what} {key}")
        for key in theirs:
            if key not in ours:
                yield HandoffChange(type="added", at=f"{at}/{key}", description=f"{what} {key} was added")
        both_a, both_b = [key for key in ours if key in theirs], [key for key in theirs if key in ours]
        if both_a != both_b:
            order = f"the {what}s stand in another order"
            yield HandoffChange(type="reordered", at=at, description=order, a=list(both_a), b=list(both_b))

    def _part(self, a: P, b: P, *, at: str, of: str) -> Iterator[HandoffChange]:
        if a == b:
            return
        yield from self._fields(_part_fields(a), _part_fields(b), at=f"{at}/", of=of)
        match a, b:
            case Section(), Section():
                yield from self._section(a, b, at)

    def _fields(
        self, a: Mapping[str, FieldValue], b: Mapping[str, FieldValue], *, at: str, of: str
    ) -> Iterator[HandoffChange]:
        for name, ours in a.items():
            theirs = b[name]
            if ours == theirs:
                continue
            label = f"{name} of {of}" if of else name
            if name == "anchor":
                words = f"{of} is anchored to other lines of code than before"
                yield HandoffChange(type="changed", at=f"{at}{name}", description=words, a=ours, b=theirs)
            elif ours is None or theirs is None:
                words = f"{label} was {'added' if ours is None else 'removed'}"
                yield HandoffChange(
                    type="added" if ours is None else "removed", at=f"{at}{name}", description=words, a=ours, b=theirs
                )
            else:
                text = self._text(ours, theirs)
                yield HandoffChange(
                    type="changed", at=f"{at}{name}", description=f"{label} differs", a=ours, b=theirs, text=text
                )

    def _text(self, a: FieldValue, b: FieldValue) -> TextDiff | UnsetType:
        """How two texts differ that are too long for one line."""
        if not (isinstance(a, str) and isinstance(b, str)) or (max(len(a), len(b)) <= _LONG_LINE and "\n" not in a + b):
            return UNSET
        self._texts += 1
        return diff_texts(a, b) if self._texts <= _MAX_TEXTS else _LEFT_OUT


def _part_fields(part: Section | Ref | Diagram) -> dict[str, FieldValue]:
    """The fields of a part that are compared, in the order in which differences are listed."""
    match part:
        case Section():
            return {"title": part.title, "description": part.description}
        case Ref():
            lines, anchor = f"{part.lines.start}-{part.lines.end}", part.anchor.digest if part.anchor else None
            fields: dict[str, FieldValue] = {"path": part.path, "lines": lines, "title": part.title, "why": part.why}
            return {**fields, "group": part.group, "anchor": anchor}
        case Diagram():
            return {"title": part.title, "why": part.why, "mermaid": part.mermaid}
        case unreachable:
            assert_never(unreachable)


# --- verifying --------------------------------------------------------------------------------------------------------


class HandoffVerdict(Value, frozen=True):
    """The result of verifying a handoff pack. `revisions`: those whose bytes match their events."""

    id: HandoffId
    answer: Answer
    revisions: tuple[KeptRevision, ...]
    events: int
    size: int
    problems: tuple[VerificationProblem, ...]


def verify_handoff(
    handoff_id: HandoffId, revision: int | None, *, catalog: Catalog, objects: Objects
) -> HandoffVerdict:
    """Verify all kept revisions of a pack, or one of them; and always its whole history."""
    with catalog.read() as view:
        history = history_of(view.streams, handoff_id)
        seqs = [event.seq for event in view.streams.read(stream_name(handoff_id))]
        row = view.handoffs.row(handoff_id)
        roots = dict(view.objects.roots(f"{stream_name(handoff_id)}/"))
    if not history.events:
        raise not_found(handoff_id.text)
    selected = [kept for kept in history.revisions if revision in (None, kept.revision)]
    if not selected and revision is not None:
        raise HandoffNotFound(
            "this revision was collected" if history.collected and revision <= history.last else "no such revision",
            at=f"{handoff_id}@{revision}",
            hint=f"'ctx handoff log {handoff_id}' lists them",
        )
    check = _HandoffCheck(catalog, objects, handoff_id)
    check.problems += _check_history(handoff_id, history, seqs)
    check.problems += _check_listing(handoff_id, history, row)
    times = {event.revision: event.at for event in history.events if event.digest is not None}
    for kept in selected:
        if roots.get(root_name(handoff_id, kept.revision)) != kept.digest:
            check.note("unchecked", f"{handoff_id}@{kept.revision}", "nothing keeps it from being collected")
        check.revision(kept, times[kept.revision])
    if not selected:
        check.note("unknown", str(handoff_id), "all its revisions were collected")
    return HandoffVerdict(
        id=handoff_id,
        answer=gravest_answer(check.problems),
        revisions=tuple(check.whole),
        events=len(history.events),
        size=check.size,
        problems=tuple(check.problems),
    )


def _check_history(handoff_id: HandoffId, history: HandoffHistory, seqs: list[int]) -> Iterator[VerificationProblem]:
    """Check that no event is missing: event numbers and revision numbers must have no gap."""
    if seqs != list(range(1, len(seqs) + 1)):
        yield VerificationProblem(answer="modified", what=f"history of {handoff_id}", why="events are missing from it")
    last, before = 0, None
    for event in history.events:
        if event.digest is None:
            continue
        if event.kind != "imported" and event.revision != last + 1:
            yield VerificationProblem(answer="modified", what=f"history of {handoff_id}", why=_gap(event, last))
        if before is not None and event.at < before:
            yield VerificationProblem(
                answer="modified", what=f"{handoff_id}@{event.revision}", why="it is older than the one before"
            )
        last, before = event.revision, event.at


def _check_listing(
    handoff_id: HandoffId, history: HandoffHistory, row: HandoffRow | None
) -> Iterator[VerificationProblem]:
    """Check that the catalog lists the newest revision. If it lists a later one, events were cut off."""
    newest = history.newest if history.alive else None
    if row is not None and row.revision > history.last:
        yield VerificationProblem(answer="modified", what=f"history of {handoff_id}", why="its last events are missing")
    elif (row and (row.revision, row.digest)) != (newest and (newest.revision, newest.digest)):
        yield VerificationProblem(
            answer="unchecked", what=str(handoff_id), why="the list does not match its history: see 'ctx fsck'"
        )


def _gap(event: HandoffEvent, last: int) -> str:
    return f"revision {event.revision} was written after {last}: the revisions between them are missing"


class _HandoffCheck:
    """Checks revisions, and collects problems instead of stopping."""

    def __init__(self, catalog: Catalog, objects: Objects, handoff_id: HandoffId) -> None:
        self._catalog = catalog
        self._objects = objects
        self._id = handoff_id
        self.problems: list[VerificationProblem] = []
        self.whole: list[KeptRevision] = []
        self.size = 0

    def revision(self, kept: KeptRevision, at: Timestamp) -> None:
        what = f"{self._id}@{kept.revision} {kept.digest}"
        try:
            data = revision_bytes(self._catalog, self._objects, kept.digest)
        except ObjectCorrupt as error:
            self.note("modified", what, error.message)
        except ContextPlaneError as error:
            self.note("unchecked", what, error.message)
        else:
            self.size += len(data)
            self._pack(what, kept, data, at)

    def _pack(self, what: str, kept: KeptRevision, data: bytes, at: Timestamp) -> None:
        """Check bytes that have the right digest."""
        try:
            pack = read_pack(data)
            why = self._mismatch(pack, data, kept.revision, at)
        except (ValueError, ContextPlaneError) as error:
            why = f"not a handoff pack: {error}"
        else:
            if pack.schema_version != SCHEMA_VERSION:
                self.note("unchecked", what, f"schema_version {pack.schema_version} is not understood")
                return
        if why:
            self.note("modified", what, why)
        else:
            self.whole.append(kept)

    def _mismatch(self, pack: HandoffPack, data: bytes, revision: int, at: Timestamp) -> str:
        """Why a pack is not this revision; empty if it is."""
        if (pack.id, pack.revision) != (self._id.text, revision):
            return f"its object is {pack.id}@{pack.revision}"
        if pack.updated != at:
            return f"its event says {at}, and it says {pack.updated}"
        return "" if pack_bytes(pack) == data else "its bytes are not in the one form that a pack has"

    def note(self, answer: Literal["modified", "unchecked", "unknown"], what: str, why: str) -> None:
        self.problems.append(VerificationProblem(answer=answer, what=what, why=why))
