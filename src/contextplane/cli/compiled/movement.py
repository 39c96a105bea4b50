"""What moved between two compiled contexts, a line for each thing."""

from collections.abc import Iterable

from contextplane.app.account import Item, Moved
from contextplane.app.compiling import Compiled
from contextplane.cli.compiled.lines import Head, say_words, short
from contextplane.cli.screen import Screen, clean

__all__ = ["say_moved", "tell_moved"]

_MOST = 40
_BEFORE = 80
"""What something was may be cut short sooner than what it is now."""

_ABSENT = {"gate": "not active", "redaction": "not active"}
"""What is said of a thing that the account does not hold; of all others, that it is not there."""


def tell_moved(found: Compiled, knobs: str, screen: Screen) -> None:
    """What the knobs moved."""
    screen.say(f"moved by {short(knobs)}:")
    moved = found.moved
    say_moved(moved, "  ", screen)
    if found.refused_before:
        screen.say(f"  everything: without that, it is refused with {found.refused_before}")
    elif not moved:
        screen.say("  nothing but the hash" if found.hash_moved else "  nothing")


def say_moved(found: Iterable[Moved], indent: str, screen: Screen) -> None:
    """A line for each thing that is otherwise; very many are counted."""
    things = list(found)
    for one in things[:_MOST]:
        name = f"{one.kind} {clean(one.id)}: "
        say_words(
            Head(f"{indent}{_mark(one, screen)} {name}", len(indent) + 2 + len(name), len(indent) + 4),
            _change(one),
            screen,
        )
    if len(things) > _MOST:
        screen.say(f"{indent}and {len(things) - _MOST} more")


def _mark(one: Moved, screen: Screen) -> str:
    was, is_ = one.before is not None and one.before.inside, one.after is not None and one.after.inside
    if was == is_:
        return screen.paint("yellow", "~")
    return screen.paint("green", "+") if is_ else screen.paint("red", "-")


def _change(one: Moved) -> str:
    return f"{_words(one, one.before, _BEFORE)} -> {_words(one, one.after)}"


def _words(one: Moved, item: Item | None, longest: int = 150) -> str:
    return short(item.words, longest) if item is not None else _ABSENT.get(one.kind, "not there")
