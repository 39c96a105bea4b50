"""How one part of a pack is compared with what it was: each comparer says what a difference does.

A comparer is given both sides, None where there is none, and where they stand. What it cannot tell it calls `changes`.

One difference between two packs, and what it does to a run.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from contextplane.authoring.diff.change import Effect
from contextplane.authoring.diff.tree import Tree, plain
from contextplane.authoring.finding import HIDDEN, looks_secret
from contextplane.model.json.canonical import canonical
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value
from contextplane.policy.logic.solver import Tries

__all__ = [
    "Comparer",
    "Sides",
    "Told",
    "always",
    "branch_allows",
    "flag",
    "items",
    "ladder",
    "modes",
    "most",
    "moved",
    "names",
    "number",
    "release",
    "shown",
    "whole",
]


class Told(Value, frozen=True):
    """What a comparer says of one difference. `named`: the words say themselves which part they are about."""

    effect: Effect
    words: str
    named: bool = False


class Sides(Value, frozen=True):
    """The two states of one part. `way` leads to it; `before` and `after` are the whole trees.

    `tries`: how much may still be tried to tell what conditions do, for all the parts of one comparison.
    """

    old: Tree
    new: Tree
    way: tuple[str, ...]
    before: Tree
    after: Tree
    tries: Tries

    @property
    def name(self) -> str:
        return self.way[-1] if self.way else "the pack"


class Comparer(Protocol):
    """Says what the differences between two states of a part do."""

    def __call__(self, sides: Sides, /) -> Iterator[Told]: ...


def always(effect: Effect, what: str = "") -> Comparer:
    """Any difference has this effect."""

    def compare(sides: Sides) -> Iterator[Told]:
        yield Told(effect=effect, words=f"{what or sides.name} {moved(sides)}")

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


def names(sides: Sides) -> Iterator[Told]:
    """Names that mean something together: any other set of them is another meaning, another order is not."""
    if _entries(sides.old) != _entries(sides.new):
        yield Told(effect="changes", words=f"{sides.name} {moved(sides)}")


def number(what: str, *, higher: Effect, lower: Effect) -> Comparer:
    """A number that does one thing when it rises and another when it falls. One that comes or goes: see `whole`."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = sides.old, sides.new
        if not isinstance(old, int | float) or not isinstance(new, int | float):
            yield Told(effect="changes", words=f"{what} {moved(sides)}")
        elif old != new:
            yield Told(effect=higher if new > old else lower, words=f"{what} {moved(sides)}")

    return compare


def ladder(what: str, steps: tuple[str, ...], *, up: Effect, down: Effect) -> Comparer:
    """A value of an ordered set. Absent counts as below the lowest."""

    def compare(sides: Sides) -> Iterator[Told]:
        places = [_step(side, steps) for side in (sides.old, sides.new)]
        if None in places:
            yield Told(effect="changes", words=f"{what} {moved(sides)}")
        elif places[0] != places[1]:
            rises = (places[1] or 0) > (places[0] or 0)
            yield Told(effect=up if rises else down, words=f"{what} {moved(sides)}")

    return compare


def modes(what: str) -> Comparer:
    """An approval mode that a rule asks for: the higher, the stricter.

    Where no rule asks for one, the tool's own holds, and none is stricter. So one that comes makes nothing looser only
    when it is the highest.
    """

    def compare(sides: Sides) -> Iterator[Told]:
        if sides.old is None and sides.new != APPROVAL_MODES[-1]:
            yield Told(effect="changes", words=f"{what} {moved(sides)}")
        else:
            yield from ladder(what, APPROVAL_MODES, up="narrows", down="widens")(sides)

    return compare


def most(what: str) -> Comparer:
    """An approval mode that is declared, of something that can do as much: higher lets it do more, lower asks less."""
    return ladder(what, APPROVAL_MODES, up="changes", down="widens")


def release(what: str) -> Comparer:
    """A version X.Y.Z of a part: another X says that it is another thing, whatever else is the same."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (str(side).partition(".")[0] for side in (sides.old, sides.new))
        yield Told(effect="metadata" if old == new else "changes", words=f"{what} {moved(sides)}")

    return compare


def flag(what: str, *, true: Effect, false: Effect, absent: bool) -> Comparer:
    """A truth value that has one effect when it becomes true and another when it becomes false."""

    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (absent if side is None else side for side in (sides.old, sides.new))
        if old is not new:
            yield Told(effect=true if new is True else false, words=f"{what} {moved(sides)}")

    return compare


def branch_allows(sides: Sides) -> Iterator[Told]:
    """The `allow` of a `then` or an `else`. False denies, true allows; where no rule says it, nothing is allowed."""
    if sides.new is False:
        yield Told(effect="narrows", words="denies now")
    elif sides.old is False:
        yield Told(effect="widens", words=f"no longer denies{' and allows now' if sides.new is True else ''}")
    elif sides.new is True:
        yield Told(effect="widens", words="allows now (said nothing of it)")
    else:
        yield Told(effect="narrows", words="no longer says that it allows")


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
    return {canonical(plain(part)): shown(part) for part in parts}


def _step(side: Tree, steps: tuple[str, ...]) -> int | None:
    """The place on a ladder, from 1; 0 where there is nothing, None for what is not on it."""
    if side is None:
        return 0
    return steps.index(side) + 1 if isinstance(side, str) and side in steps else None


_SHOWN = 80


def moved(sides: Sides, longest: int = _SHOWN) -> str:
    """What it was and what it is, for people."""
    if sides.old is None:
        return f"is now {shown(sides.new, longest)}"
    return f"was {shown(sides.old, longest)}, now {'gone' if sides.new is None else shown(sides.new, longest)}"


def shown(side: Tree, longest: int = _SHOWN) -> str:
    """A value for people: a text as it is, anything else as JSON; no secret, and nothing at any length."""
    text = side if isinstance(side, str) else canonical(plain(side)).decode()
    if looks_secret(text):
        return HIDDEN
    return text if len(text) <= longest else text[: longest - 1] + "…"
