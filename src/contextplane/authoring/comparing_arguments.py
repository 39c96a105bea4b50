"""Comparing the constraints on one argument of a call, in words that name the argument."""

from collections.abc import Iterator

from contextplane.authoring.change import Effect
from contextplane.authoring.comparing import Sides, Told, flag, items, shown
from contextplane.authoring.keyed import part_at

__all__ = [
    "argument_choices",
    "argument_greatest",
    "argument_least",
    "argument_lifted",
    "argument_pattern",
    "argument_required",
]

_OPPOSITE: dict[Effect, Effect] = {"narrows": "widens", "widens": "narrows"}


def argument_least(sides: Sides) -> Iterator[Told]:
    """The least value that an argument may have: the higher, the stricter."""
    yield _bound(sides, looser="may now be as low as", stricter="must now be at least", higher="narrows")


def argument_greatest(sides: Sides) -> Iterator[Told]:
    """The greatest value that an argument may have: the lower, the stricter."""
    yield _bound(sides, looser="may now be up to", stricter="must now be at most", higher="widens")


def _bound(sides: Sides, *, looser: str, stricter: str, higher: Effect) -> Told:
    """A bound that may be absent: one that comes narrows, one that goes widens."""
    old, new, name = sides.old, sides.new, _argument(sides)
    if new is None:
        return Told(effect="widens", words=f"{name} has lost its bound of {shown(old)}")
    if old is None:
        return Told(effect="narrows", words=f"{name} {stricter} {shown(new)} (had no such bound)")
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return Told(effect="changes", words=f"{name} {stricter} {shown(new)} (was {shown(old)})")
    effect: Effect = higher if new > old else _OPPOSITE[higher]
    return Told(
        effect=effect, words=f"{name} {looser if effect == 'widens' else stricter} {shown(new)} (was {shown(old)})"
    )


def argument_choices(sides: Sides) -> Iterator[Told]:
    """A closed set of values that may be absent: the fewer, the stricter."""
    name = _argument(sides)
    if sides.new is None:
        yield Told(effect="widens", words=f"{name} may now be anything (was one of {shown(sides.old)})")
    elif sides.old is None:
        yield Told(effect="narrows", words=f"{name} must now be one of {shown(sides.new)} (was anything)")
    else:
        yield from items(f"value of {name}", more="widens", less="narrows")(sides)


def argument_required(sides: Sides) -> Iterator[Told]:
    words = f"{_argument(sides)} is {'now' if sides.new is True else 'no longer'} required"
    for told in flag("", true="narrows", false="widens", absent=False)(sides):
        yield Told(effect=told.effect, words=words)


def argument_pattern(sides: Sides) -> Iterator[Told]:
    """A pattern that comes narrows, one that goes widens; of another one it cannot be told."""
    name = _argument(sides)
    if sides.new is None:
        yield Told(effect="widens", words=f"{name} need no longer match {shown(sides.old)}")
    elif sides.old is None:
        yield Told(effect="narrows", words=f"{name} must now match {shown(sides.new)}")
    else:
        yield Told(effect="changes", words=f"{name} must now match {shown(sides.new)} (was {shown(sides.old)})")


def argument_lifted(sides: Sides) -> Iterator[Told]:
    """A flag that weakens the constraint it is part of, and nothing where that comes or goes as a whole."""
    if None in [part_at(tree, sides.way[:-1]) for tree in (sides.before, sides.after)]:
        return
    lifts = "an approval now lifts" if sides.new is True else "no approval lifts any more"
    for told in flag("", true="widens", false="narrows", absent=False)(sides):
        yield Told(effect=told.effect, words=f"{lifts} what bounds the {_argument(sides)}")


def _argument(sides: Sides) -> str:
    return f"argument {sides.way[-2]}"
