"""How one part of a pack is compared with what it was: each comparer says what a difference does.

A comparer is given both sides, None where there is none, and where they stand. What it cannot tell it calls `changes`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from contextplane.authoring.change import Effect
from contextplane.authoring.keyed import Tree, part_at, plain
from contextplane.model.canonical import canonical
from contextplane.model.context_pack.terms import APPROVAL_MODES
from contextplane.model.value import Value

__all__ = [
    "Comparer",
    "Sides",
    "Told",
    "always",
    "bound",
    "choices",
    "flag",
    "items",
    "ladder",
    "lifted",
    "modes",
    "most",
    "number",
    "release",
    "whole",
]


class Told(Value, frozen=True):
    """What a comparer says of one difference."""

    effect: Effect
    words: str


class Sides(Value, frozen=True):
    """The two states of one part. `way` leads to it; `before` and `after` are the whole trees."""

    old: Tree
    new: Tree
    way: tuple[str, ...]
    before: Tree
    after: Tree

    @property
    def name(self) -> str:
        return self.way[-1]


class Comparer(Protocol):
    """Says what the differences between two states of a part do."""

    def __call__(self, sides: Sides, /) -> Iterator[Told]: ...


def always(effect: Effect, what: str = "") -> Comparer:
    """Any difference has this effect."""

    def compare(sides: Sides) -> Iterator[Told]:
        yield Told(effect=effect, words=f"{what or sides.name} {_moved(sides)}")

    return compare


def items(what: str, *, more: Effect, less: Effect) -> Comparer:
    """A list whose order does not count: each added entry has one effect, each removed entry another."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = _entries(sides.old), _entries(sides.new)
        for entry, shown in new.items():
            if entry not in old:
                yield Told(effect=more, words=f"new {what} {shown}")
        for entry, shown in old.items():
            if entry not in new:
                yield Told(effect=less, words=f"{what} {shown} is gone")

    return compare


def number(what: str, *, higher: Effect, lower: Effect) -> Comparer:
    """A number that does one thing when it rises and another when it falls. One that comes or goes: see `whole`."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = sides.old, sides.new
        if not isinstance(old, int | float) or not isinstance(new, int | float):
            yield Told(effect="changes", words=f"{what} {_moved(sides)}")
        elif old != new:
            yield Told(effect=higher if new > old else lower, words=f"{what} {_moved(sides)}")

    return compare


def bound(what: str, *, up: Effect, down: Effect) -> Comparer:
    """A limit that may be absent: one that comes narrows, one that goes widens."""

    def compare(sides: Sides) -> Iterator[Told]:
        if sides.old is None or sides.new is None:
            yield Told(effect="narrows" if sides.old is None else "widens", words=f"{what} {_moved(sides)}")
        else:
            yield from number(what, higher=up, lower=down)(sides)

    return compare


def choices(what: str) -> Comparer:
    """A closed set of values that may be absent: the fewer, the stricter."""

    def compare(sides: Sides) -> Iterator[Told]:
        if sides.old is None or sides.new is None:
            yield Told(effect="narrows" if sides.old is None else "widens", words=f"{what} {_moved(sides)}")
        else:
            yield from items(f"value of {what}", more="widens", less="narrows")(sides)

    return compare


def ladder(what: str, steps: tuple[str, ...], *, up: Effect, down: Effect) -> Comparer:
    """A value of an ordered set. Absent counts as below the lowest."""

    def compare(sides: Sides) -> Iterator[Told]:
        places = [_step(side, steps) for side in (sides.old, sides.new)]
        if None in places:
            yield Told(effect="changes", words=f"{what} {_moved(sides)}")
        elif places[0] != places[1]:
            rises = (places[1] or 0) > (places[0] or 0)
            yield Told(effect=up if rises else down, words=f"{what} {_moved(sides)}")

    return compare


def modes(what: str) -> Comparer:
    """An approval mode that is asked for: the higher, the stricter."""
    return ladder(what, APPROVAL_MODES, up="narrows", down="widens")


def most(what: str) -> Comparer:
    """An approval mode that is declared, of something that can do as much: higher lets it do more, lower asks less."""
    return ladder(what, APPROVAL_MODES, up="changes", down="widens")


def release(what: str) -> Comparer:
    """A version X.Y.Z of a part: another X says that it is another thing, whatever else is the same."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (str(side).partition(".")[0] for side in (sides.old, sides.new))
        yield Told(effect="metadata" if old == new else "changes", words=f"{what} {_moved(sides)}")

    return compare


def flag(what: str, *, true: Effect, false: Effect, absent: bool) -> Comparer:
    """A truth value that has one effect when it becomes true and another when it becomes false."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (absent if side is None else side for side in (sides.old, sides.new))
        if old is not new:
            yield Told(effect=true if new is True else false, words=f"{what} {_moved(sides)}")

    return compare


def lifted(what: str) -> Comparer:
    """A flag that weakens the constraint it is part of, and nothing where that comes or goes as a whole."""

    def compare(sides: Sides) -> Iterator[Told]:
        constraints = [part_at(tree, sides.way[:-1]) for tree in (sides.before, sides.after)]
        if None not in constraints:
            yield from flag(what, true="widens", false="narrows", absent=False)(sides)

    return compare


def whole(added: Callable[[Sides], Told], removed: Callable[[Sides], Told]) -> Comparer:
    """A part with an id that is there on one side only. A part that is on both is compared by its own parts."""

    def compare(sides: Sides) -> Iterator[Told]:
        yield added(sides) if sides.old is None else removed(sides)

    return compare


def _entries(side: Tree) -> dict[bytes, str]:
    """The entries of a list by what they are, each with how it is shown: the text "1" is not the number."""
    if side is None:
        return {}
    parts: list[Tree] = list(side) if isinstance(side, list | tuple | Mapping) else [side]
    return {canonical(plain(one)): _shown(one) for one in parts}


def _step(side: Tree, steps: tuple[str, ...]) -> int | None:
    """The place on a ladder, from 1; 0 where there is nothing, None for what is not on it."""
    if side is None:
        return 0
    return steps.index(side) + 1 if isinstance(side, str) and side in steps else None


def _moved(sides: Sides) -> str:
    if sides.old is None:
        return f"is now {_shown(sides.new)}"
    return f"was {_shown(sides.old)}, now {'gone' if sides.new is None else _shown(sides.new)}"


_SHOWN = 80


def _shown(side: Tree) -> str:
    text = side if isinstance(side, str) else canonical(plain(side)).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
