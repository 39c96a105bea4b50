"""Two revisions of handoff packs side by side: what they say of themselves, their sections, refs and diagrams.

Parts are matched by their keys. Numbers of revisions and times of writing always differ and are not compared.

Whether a handoff pack is what was written: its history whole, and every revision the bytes that its event names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import UNSET, UnsetType

from contextplane.audit.text_diff import TextDiff, compared
from contextplane.audit.verify import Answer, Trouble, answer_of
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.reader import not_found
from contextplane.handoff.storage import history_of, revision_bytes
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import (
    SCHEMA_VERSION,
    Diagram,
    HandoffHistory,
    HandoffPack,
    Happened,
    Kept,
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

__all__ = ["HandoffChange", "HandoffVerdict", "handoff_diff", "verify_handoff"]

Side = str | list[str] | None
P = TypeVar("P", Section, Ref, Diagram)

_LONG = 80
_TEXTS = 100
_LEFT_OUT = TextDiff(state="left_out", why=f"only the first {_TEXTS} texts are compared line by line")


class HandoffChange(Value, frozen=True, omit_defaults=True):
    """One difference. `at` is its place, by keys; `a` and `b` what each has there; `text` how long texts differ."""

    type: Literal["added", "removed", "changed", "reordered"]
    at: str
    description: str
    a: Side | UnsetType = UNSET
    b: Side | UnsetType = UNSET
    text: TextDiff | UnsetType = UNSET


def handoff_diff(a: HandoffPack, b: HandoffPack) -> tuple[HandoffChange, ...]:
    """Every difference: first of the packs, then of each section in the order of `a`, then what only `b` has."""
    return tuple(_Comparing().packs(a, b))


class _Comparing:
    """Compares, and counts the texts that were compared line by line."""

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

    def _within(self, a: Section, b: Section, at: str) -> Iterator[HandoffChange]:
        yield from self._lists(a.refs, b.refs, at=f"{at}/refs", what="ref")
        yield from self._lists(a.diagrams, b.diagrams, at=f"{at}/diagrams", what="diagram")

    def _lists(self, a: Sequence[P], b: Sequence[P], *, at: str, what: str) -> Iterator[HandoffChange]:
        """What was removed, changed and added among parts with keys, and whether the rest stands in another order."""
        ours, theirs = {one.key: one for one in a}, {one.key: one for one in b}
        for key, one in ours.items():
            if key not in theirs:
                yield HandoffChange(type="removed", at=f"{at}/{key}", description=f"{what} {key} was removed")
            else:
                yield from self._part(one, theirs[key], at=f"{at}/{key}", of=f"{what} {key}")
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
        yield from self._fields(_told(a), _told(b), at=f"{at}/", of=of)
        match a, b:
            case Section(), Section():
                yield from self._within(a, b, at)

    def _fields(self, a: Mapping[str, Side], b: Mapping[str, Side], *, at: str, of: str) -> Iterator[HandoffChange]:
        for name, ours in a.items():
            theirs = b[name]
            if ours == theirs:
                continue
            called = f"{name} of {of}" if of else name
            if name == "anchor":
                words = f"{of} is anchored to other lines of code than before"
                yield HandoffChange(type="changed", at=f"{at}{name}", description=words, a=ours, b=theirs)
            elif ours is None or theirs is None:
                words = f"{called} was {'added' if ours is None else 'removed'}"
                yield HandoffChange(
                    type="added" if ours is None else "removed", at=f"{at}{name}", description=words, a=ours, b=theirs
                )
            else:
                text = self._text(ours, theirs)
                yield HandoffChange(
                    type="changed", at=f"{at}{name}", description=f"{called} differs", a=ours, b=theirs, text=text
                )

    def _text(self, a: Side, b: Side) -> TextDiff | UnsetType:
        """How two texts differ that are too long to be told in one line."""
        if not (isinstance(a, str) and isinstance(b, str)) or (max(len(a), len(b)) <= _LONG and "\n" not in a + b):
            return UNSET
        self._texts += 1
        return compared(a, b) if self._texts <= _TEXTS else _LEFT_OUT


def _told(part: Section | Ref | Diagram) -> dict[str, Side]:
    """What a part says of itself, in the order in which it is told."""
    match part:
        case Section():
            return {"title": part.title, "description": part.description}
        case Ref():
            lines, anchor = f"{part.lines.start}-{part.lines.end}", part.anchor.digest if part.anchor else None
            told: dict[str, Side] = {"path": part.path, "lines": lines, "title": part.title, "why": part.why}
            return {**told, "group": part.group, "anchor": anchor}
        case Diagram():
            return {"title": part.title, "why": part.why, "mermaid": part.mermaid}


class HandoffVerdict(Value, frozen=True):
    """What checking showed. `revisions`: those whose bytes are what their events say."""

    id: HandoffId
    answer: Answer
    revisions: tuple[Kept, ...]
    events: int
    size: int
    troubles: tuple[Trouble, ...]


def verify_handoff(
    handoff_id: HandoffId, revision: int | None, *, catalog: Catalog, objects: Objects
) -> HandoffVerdict:
    """Check all that is kept of a pack, or one of its revisions; of its history always all of it."""
    with catalog.read() as view:
        history = history_of(view.streams, handoff_id)
        seqs = [event.seq for event in view.streams.read(stream_name(handoff_id))]
        row = view.handoffs.row(handoff_id)
        roots = dict(view.objects.roots(f"{stream_name(handoff_id)}/"))
    if not history.happened:
        raise not_found(handoff_id.text)
    wanted = [one for one in history.revisions if revision in (None, one.revision)]
    if not wanted and revision is not None:
        raise HandoffNotFound(
            "this revision was collected" if history.collected and revision <= history.last else "no such revision",
            at=f"{handoff_id}@{revision}",
            hint=f"'ctx handoff log {handoff_id}' lists them",
        )
    check = _Check(catalog, objects, handoff_id)
    check.troubles += _chain(handoff_id, history, seqs)
    check.troubles += _listed(handoff_id, history, row)
    times = {event.revision: event.at for event in history.happened if event.digest is not None}
    for one in wanted:
        if roots.get(root_name(handoff_id, one.revision)) != one.digest:
            check.note("unchecked", f"{handoff_id}@{one.revision}", "nothing keeps it from being collected")
        check.revision(one, times[one.revision])
    if not wanted:
        check.note("unknown", str(handoff_id), "all its revisions were collected")
    return HandoffVerdict(
        id=handoff_id,
        answer=answer_of(check.troubles),
        revisions=tuple(check.whole),
        events=len(history.happened),
        size=check.size,
        troubles=tuple(check.troubles),
    )


def _chain(handoff_id: HandoffId, history: HandoffHistory, seqs: list[int]) -> Iterator[Trouble]:
    """No event is missing: they are numbered without a gap, and every write made the revision after the last one."""
    if seqs != list(range(1, len(seqs) + 1)):
        yield Trouble(answer="modified", what=f"history of {handoff_id}", why="events are missing from it")
    last, before = 0, None
    for event in history.happened:
        if event.digest is None:
            continue
        if event.kind != "imported" and event.revision != last + 1:
            yield Trouble(answer="modified", what=f"history of {handoff_id}", why=_gap(event, last))
        if before is not None and event.at < before:
            yield Trouble(
                answer="modified", what=f"{handoff_id}@{event.revision}", why="it is older than the one before"
            )
        last, before = event.revision, event.at


def _listed(handoff_id: HandoffId, history: HandoffHistory, row: HandoffRow | None) -> Iterator[Trouble]:
    """The list shows the newest revision. One that it shows and that no event made was cut off from the history."""
    newest = history.newest if history.alive else None
    if row is not None and row.revision > history.last:
        yield Trouble(answer="modified", what=f"history of {handoff_id}", why="its last events are missing")
    elif (row and (row.revision, row.digest)) != (newest and (newest.revision, newest.digest)):
        yield Trouble(
            answer="unchecked", what=str(handoff_id), why="it is listed otherwise than its history says: see 'ctx fsck'"
        )


def _gap(event: Happened, last: int) -> str:
    return f"revision {event.revision} was written after {last}: what is between them is missing"


class _Check:
    """Looks at revisions, and notes what is wrong instead of stopping."""

    def __init__(self, catalog: Catalog, objects: Objects, handoff_id: HandoffId) -> None:
        self._catalog = catalog
        self._objects = objects
        self._id = handoff_id
        self.troubles: list[Trouble] = []
        self.whole: list[Kept] = []
        self.size = 0

    def revision(self, kept: Kept, at: Timestamp) -> None:
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

    def _pack(self, what: str, kept: Kept, data: bytes, at: Timestamp) -> None:
        """Look at bytes that have the right digest."""
        try:
            pack = read_pack(data)
            why = self._differs(pack, data, kept.revision, at)
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

    def _differs(self, pack: HandoffPack, data: bytes, revision: int, at: Timestamp) -> str:
        """Why a pack is not this revision; empty when it is."""
        if (pack.id, pack.revision) != (self._id.text, revision):
            return f"its object is {pack.id}@{pack.revision}"
        if pack.updated != at:
            return f"its event says {at}, and it says {pack.updated}"
        return "" if pack_bytes(pack) == data else "its bytes are not in the one form that a pack has"

    def note(self, answer: Literal["modified", "unchecked", "unknown"], what: str, why: str) -> None:
        self.troubles.append(Trouble(answer=answer, what=what, why=why))
