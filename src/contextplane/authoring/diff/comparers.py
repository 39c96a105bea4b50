"""Comparers: each compares two states of a part of a pack, and yields differences with their effects.

A comparer is given a pair of states, None for a part that is absent. A difference of unknown effect is `changes`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from contextplane.authoring.diff.tree import Effect, Tree, is_rank_as_high, part_at, plain, required_rank
from contextplane.authoring.law import HIDDEN, looks_secret
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value
from contextplane.policy.clock import LOCAL_CLOCK
from contextplane.policy.redaction.schema_marks import KEYWORD, find_marks

__all__ = [
    "Comparer",
    "Difference",
    "Pair",
    "added_or_removed",
    "always",
    "branch_allows",
    "flag",
    "format_transition",
    "format_value",
    "items",
    "ladder",
    "max_mode",
    "names",
    "number",
    "release",
    "required_mode",
    "timezone",
    "tool_schema",
]


_LOCAL_CLOCK = tuple(name.encode() for name in sorted(LOCAL_CLOCK))


class Difference(Value, frozen=True):
    """The effect of one difference, in words. `named`: the words already name the part.

    `undecided`: the effect cannot be told.
    """

    effect: Effect
    words: str
    named: bool = False
    undecided: bool = False


class Pair(Value, frozen=True):
    """The two states of one part. `path` is its place; `before` and `after` are the whole trees."""

    old: Tree
    new: Tree
    path: tuple[str, ...]
    before: Tree
    after: Tree

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "the pack"


class Comparer(Protocol):
    """Yields the differences between the two states of a part, with their effects."""

    def __call__(self, pair: Pair, /) -> Iterator[Difference]: ...


def always(effect: Effect, what: str = "") -> Comparer:
    """Compare a part in which any difference has this effect."""

    def compare(pair: Pair) -> Iterator[Difference]:
        yield Difference(effect=effect, words=f"{what or pair.name} {format_transition(pair)}")

    return compare


def items(what: str, *, more: Effect, less: Effect) -> Comparer:
    """Compare unordered lists: each added entry has one effect, each removed entry another."""

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = _entries(pair.old), _entries(pair.new)
        for entry, text in new.items():
            if entry not in old:
                yield Difference(effect=more, words=f"new {what} {text}")
        for entry, text in old.items():
            if entry not in new:
                yield Difference(effect=less, words=f"{what} {text} is gone")

    return compare


def names(pair: Pair) -> Iterator[Difference]:
    """Compare names that have a meaning together: another set changes it, another order does not."""
    if _entries(pair.old) != _entries(pair.new):
        yield Difference(effect="changes", words=f"{pair.name} {format_transition(pair)}")


def number(what: str, *, higher: Effect, lower: Effect, absent: float | None = None) -> Comparer:
    """Compare numbers: rising has one effect, falling another.

    `absent`: the default. Without one, a number that is added or removed `changes`.
    """

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = (absent if side is None else side for side in (pair.old, pair.new))
        if not isinstance(old, int | float) or not isinstance(new, int | float):
            yield Difference(effect="changes", words=f"{what} {format_transition(pair)}")
        elif old != new:
            yield Difference(effect=higher if new > old else lower, words=f"{what} {format_transition(pair)}")

    return compare


def ladder(what: str, steps: tuple[str, ...], *, up: Effect, down: Effect) -> Comparer:
    """Compare values of an ordered set. An absent value is below the lowest."""

    def compare(pair: Pair) -> Iterator[Difference]:
        places = [_step(side, steps) for side in (pair.old, pair.new)]
        if None in places:
            yield Difference(effect="changes", words=f"{what} {format_transition(pair)}")
        elif places[0] != places[1]:
            rises = (places[1] or 0) > (places[0] or 0)
            yield Difference(effect=up if rises else down, words=f"{what} {format_transition(pair)}")

    return compare


def required_mode(what: str) -> Comparer:
    """Compare the approval mode that a rule requires: the higher, the stricter.

    Where no rule requires one, that of the tool holds, which may be higher. So an added mode is sure to loosen nothing
    only when it is the highest, and no decision caps it.
    """

    def compare(pair: Pair) -> Iterator[Difference]:
        rule, branch = pair.path[:-2], pair.path[:-1]
        old, new = (
            required_rank(part_at(tree, branch), part_at(tree, rule), tree) for tree in (pair.before, pair.after)
        )
        narrows, widens = is_rank_as_high(new, old), is_rank_as_high(old, new)
        effect: Effect = "narrows" if narrows else "widens" if widens or new is None else "changes"
        yield Difference(effect=effect, words=f"{what} {format_transition(pair)}")

    return compare


def max_mode(what: str) -> Comparer:
    """Compare the approval mode that a tool or a decision declares as its maximum.

    A higher one permits more, a lower one requires less.
    """
    return ladder(what, APPROVAL_MODES, up="changes", down="widens")


def release(what: str) -> Comparer:
    """Compare versions X.Y.Z of a part: another X is another part, even if all else is the same."""

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = (str(side).partition(".")[0] for side in (pair.old, pair.new))
        yield Difference(effect="metadata" if old == new else "changes", words=f"{what} {format_transition(pair)}")

    return compare


def flag(what: str, *, true: Effect, false: Effect, absent: bool) -> Comparer:
    """Compare booleans: becoming true has one effect, becoming false another. `absent`: the default."""

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = (absent if side is None else side for side in (pair.old, pair.new))
        if old is not new:
            yield Difference(effect=true if new is True else false, words=f"{what} {format_transition(pair)}")

    return compare


def branch_allows(pair: Pair) -> Iterator[Difference]:
    """Compare the `allow` of a branch: false denies, true allows. Without any true, nothing is allowed."""
    if pair.new is False:
        yield Difference(effect="narrows", words="denies now")
    elif pair.old is False:
        yield Difference(effect="widens", words=f"no longer denies{' and allows now' if pair.new is True else ''}")
    elif pair.new is True:
        yield Difference(effect="widens", words="allows now (did not before)")
    else:
        yield Difference(effect="narrows", words="no longer allows")


def timezone(pair: Pair) -> Iterator[Difference]:
    """Compare timezones: a default, unless a condition reads the clock there. Then each window moves."""
    reads = any(name in canonical(plain(side)) for side in (pair.before, pair.after) for name in _LOCAL_CLOCK)
    effect: Effect = "changes" if reads else "locale"
    yield Difference(
        effect=effect, words=f"timezone {format_transition(pair)}{', which conditions read the clock by' * reads}"
    )


def added_or_removed(added: Callable[[Pair], Difference], removed: Callable[[Pair], Difference]) -> Comparer:
    """Compare a part with an id that is on one side only. Parts on both sides are compared by their parts."""

    def compare(pair: Pair) -> Iterator[Difference]:
        yield added(pair) if pair.old is None else removed(pair)

    return compare


def tool_schema(what: str) -> Comparer:
    """Compare the JSON Schema of a tool, mark of `x-redact` by mark, and then without them.

    A new mark masks more, so it narrows. One that is gone shows what was masked, so it widens.
    """

    def compare(pair: Pair) -> Iterator[Difference]:
        old, new = _marks(pair.old), _marks(pair.new)
        for place in [*new, *(place for place in old if place not in new)]:
            if old.get(place) == new.get(place):
                continue
            was, now = (format_value(marks.get(place)) for marks in (old, new))
            name = f"{what}{place}"
            if place not in old:
                yield Difference(effect="narrows", words=f"{name} is now masked ({KEYWORD}: {now})")
            elif place not in new:
                yield Difference(effect="widens", words=f"{name} is no longer masked ({KEYWORD} was {was})")
            else:
                yield Difference(effect="wording", words=f"{name} is masked as {now} (was {was})")
        if _form_without_marks(pair.old) != _form_without_marks(pair.new):
            yield Difference(effect="changes", words=f"{what} {format_transition(pair)}")

    return compare


def _marks(side: Tree) -> dict[str, Any]:
    """Map the place of each schema that is marked to its mark; `false` marks nothing."""
    marks = find_marks(plain(side))
    return {place.removesuffix(f"/{KEYWORD}"): mark for place, mark in marks if mark is not False}


def _form_without_marks(side: Tree) -> bytes:
    """The canonical form of a schema without its marks."""
    return canonical(_without_marks(plain(side), is_schema=True))


def _without_marks(part: Json, *, is_schema: bool) -> Json:
    if isinstance(part, Mapping):
        return {
            name: _without_marks(member, is_schema=name != "properties" or not is_schema)
            for name, member in part.items()
            if name != KEYWORD or not is_schema
        }
    return [_without_marks(element, is_schema=True) for element in part] if isinstance(part, list) else part


def _entries(side: Tree) -> dict[bytes, str]:
    """Map the canonical bytes of each entry to its text for messages: the text "1" is not the number."""
    if side is None:
        return {}
    parts: list[Tree] = list(side) if isinstance(side, list | tuple | Mapping) else [side]
    return {canonical(plain(part)): format_value(part) for part in parts}


def _step(side: Tree, steps: tuple[str, ...]) -> int | None:
    """Return the place on a ladder, from 1; 0 for an absent value, None for one that is not on it."""
    if side is None:
        return 0
    return steps.index(side) + 1 if isinstance(side, str) and side in steps else None


_MAX_LENGTH = 80


def format_transition(pair: Pair, longest: int = _MAX_LENGTH) -> str:
    """Format the old and the new state for a reviewer."""
    if pair.old is None:
        return f"is now {format_value(pair.new, longest)}"
    new = "gone" if pair.new is None else format_value(pair.new, longest)
    return f"was {format_value(pair.old, longest)}, now {new}"


def format_value(side: Tree, longest: int = _MAX_LENGTH) -> str:
    """Format a value for a reviewer: a text as is, anything else as JSON; shortened, and no secret."""
    text = side if isinstance(side, str) else canonical(plain(side)).decode()
    if looks_secret(text):
        return HIDDEN
    return text if len(text) <= longest else text[: longest - 1] + "…"
