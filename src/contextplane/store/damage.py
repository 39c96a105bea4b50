"""Damage in one vocabulary: what is kept was tampered with, is missing, or is unreadable.

Every verb says it in these words, and of the pack or of the part of one that people know it by, never of a file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.ports.objects import Condition, ObjectCorrupt, ObjectNotFound, ObjectObstructed, StorageFailed

__all__ = ["MARK", "WAY_OUT", "Damage", "damage_by", "damage_in", "said", "short", "telling"]

Damage: TypeAlias = Literal["tampered", "missing", "unreadable"]

MARK: dict[Damage, str] = {"tampered": "tampered with", "missing": "missing", "unreadable": "unreadable"}
"""What stands beside the name of something that is damaged."""

_DIGITS = 12
_SAID: dict[Damage, str] = {"tampered": "was tampered with", "missing": "is missing", "unreadable": "is unreadable"}
_READING = "cannot be read: "  # how storage begins to tell why
_HEALS = "packing the same log again or importing the run heals it; 'ctx fsck' lists all damage"
WAY_OUT: dict[Damage, str] = {
    "tampered": _HEALS,
    "missing": _HEALS,
    "unreadable": "check what lies there, and its permissions; 'ctx fsck' lists all damage",
}


_OBSTRUCTED = (
    "move aside what stands in its place, then pack the same log again or import the run; 'ctx fsck' lists all damage"
)


def short(pack: Digest, part: str = "") -> str:
    """What a pack or a part of it is called, short enough for a line: `ctx://ab12cd34ef56:steps/3`."""
    return f"ctx://{pack.hex[:_DIGITS]}" + (f":{part}" if part else "")


def damage_in(condition: Condition) -> Damage | None:
    """What is wrong with an object that was looked at; None when it is whole."""
    if condition.state == "whole":
        return None
    return "tampered" if condition.state == "corrupt" else condition.state


def damage_by(error: ContextPlaneError) -> Damage | None:
    """What is wrong with an object that could not be read; None when that is not why.

    Something else in the place of an object is not what its name says, as other bytes are not.
    """
    if isinstance(error, ObjectCorrupt | ObjectObstructed):
        return "tampered"
    if isinstance(error, ObjectNotFound):
        return "missing"
    return "unreadable" if isinstance(error, StorageFailed) else None


def said(what: str, damage: Damage, why: str = "") -> str:
    """The sentence: `its manifest was tampered with`. Why it is unreadable belongs to it."""
    reason = f": {why.removeprefix(_READING)}" if damage == "unreadable" and why else ""
    return f"{what} {_SAID[damage]}{reason}"


@contextmanager
def telling(where: str, what: str, digest: Digest) -> Iterator[None]:
    """Within the block damage to an object is told in our words: `what`, at `where`. Code and family stay.

    Where the object lies, and what was found there, is in the details.
    """
    try:
        yield
    except ContextPlaneError as error:
        damage = damage_by(error)
        if damage is not None:
            found = {"damage": damage, "digest": str(digest), "place": error.at, "why": error.message}
            error.details = {**error.details, **found}
            obstructed = isinstance(error, ObjectObstructed)
            error.at, error.hint = where, _OBSTRUCTED if obstructed else WAY_OUT[damage]
            error.message = said(what, damage, error.message)
        raise
