"""Two revisions of handoff packs side by side: what they say of themselves, their sections, refs and diagrams.

Parts are matched by their keys. Numbers of revisions and times of writing always differ and are not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import UNSET, UnsetType

from contextplane.audit.text_diff import TextDiff, compared
from contextplane.model.handoff import Diagram, HandoffPack, Ref, Section
from contextplane.model.value import Value

__all__ = ["HandoffChange", "handoff_diff"]

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
