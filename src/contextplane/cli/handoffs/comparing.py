"""`ctx diff pk_...@3 pk_...@5`: two revisions of handoff packs, in words and as unified diffs."""

from collections.abc import Iterator

from msgspec import UNSET

from contextplane.audit.handoff_diff import HandoffChange, handoff_diff
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.handoffs.naming import found
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.screen import Screen, clean, counted, shortened
from contextplane.cli.text_lines import text_lines
from contextplane.handoff.kept import Found
from contextplane.model.canonical import SORTED
from contextplane.model.reference import HandoffRef

__all__ = ["diff"]

_INDENT = " " * 6


def diff(a: HandoffRef, b: HandoffRef, screen: Screen, *, exit_code: bool) -> int:
    with opening_desk(screen) as desk:
        ours, theirs = found(str(a), desk), found(str(b), desk)
    changes = handoff_diff(ours.pack, theirs.pack)
    _tell(changes, ours, theirs, screen)
    screen.answer(
        {
            "pack_a": _name(ours),
            "pack_b": _name(theirs),
            "digest_a": str(ours.digest),
            "digest_b": str(theirs.digest),
            "has_drift": bool(changes),
            "entries": changes,
        }
    )
    return DRIFT if exit_code and changes else OK


def _name(one: Found) -> str:
    return f"{one.pack.id}@{one.pack.revision}"


def _tell(changes: tuple[HandoffChange, ...], ours: Found, theirs: Found, screen: Screen) -> None:
    if not changes:
        same = ours.digest == theirs.digest
        why = "It is the same revision." if same else "The revisions differ only in their number and their times."
        screen.say(f"No differences found. {why}")
        return
    screen.say(f"Comparing {_name(ours)} vs {_name(theirs)}")
    screen.say()
    screen.say(f"{counted(len(changes), 'difference')} found:")
    screen.say()
    for number, change in enumerate(changes, 1):
        screen.say(f"  {number}. {_line(change)}")
        for line in text_lines(change.text, screen) if change.text is not UNSET else ():
            screen.say(_INDENT + line)


def _line(change: HandoffChange) -> str:
    told = f"[{change.type}] {shortened(clean(change.description))}"
    values = " -> ".join(_values(change)) if change.text is UNSET else ""
    return f"{told}: {values}" if values else told


def _values(change: HandoffChange) -> Iterator[str]:
    """What each has, where that is short enough to be told beside the words."""
    for value in (change.a, change.b):
        if value is UNSET or value is None:
            continue
        yield shortened(clean(value if isinstance(value, str) else SORTED.encode(value).decode()))
