"""Damage in one vocabulary: what is kept was tampered with, is missing, or is unreadable.

Every verb says it in these words, and of the pack or of the part of one that people know it by, never of a file.

What is put back: objects that were damaged until the same bytes came again.

Small objects that wait in the catalog to become files.

What a check finds.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Condition
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import PendingView, View
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects, StorageFailed

__all__ = [
    "DAMAGE",
    "MARK",
    "WAY_OUT",
    "Comparison",
    "Damage",
    "Finding",
    "PutBack",
    "State",
    "damage_by",
    "damage_in",
    "not_whole",
    "said",
    "short",
    "telling",
    "waits",
]

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


class PutBack(Value, frozen=True):
    """An object that is whole again, and what was wrong with it."""

    digest: Digest
    damage: Damage


def not_whole(digests: Iterable[Digest], objects: Objects) -> tuple[PutBack, ...]:
    """Which of these are to be put back: asked before the right bytes take their places."""
    looked = ((digest, damage_in(objects.check(digest))) for digest in digests)
    return tuple(PutBack(digest=digest, damage=damage) for digest, damage in looked if damage is not None)


def waits(pending: PendingView, digest: Digest) -> bytes | None:
    """The bytes of an object that is no file yet. What is not what its name says is as good as not there."""
    data = pending.get(digest)
    return data if data is not None and Digest.of(data) == digest else None


State = Literal["missing", "corrupt", "index", "orphaned", "foreign", "unreadable", "absent"]

DAMAGE: frozenset[State] = frozenset({"missing", "corrupt", "index", "unreadable"})
"""What makes a store unsound, or leaves that open. Orphaned objects take room, foreign things take none of ours, and
what was never here is nothing that was lost."""


class Finding(Value, frozen=True):
    """One thing that is not as it should be.

    `missing`: something refers to it and it is not there. `corrupt`: it is there and is not what it says.
    `unreadable`: it is there, and nobody could look what it is. `orphaned`: it is whole and nothing refers to it.
    `foreign`: it is not ours. `index`: the index says otherwise than the objects. `absent`: a run is a fork of it, and
    it was never here. `ref`: the run, or the part of one, that it is of, as it can be typed: `ctx://<64 hex>:steps/3`.
    """

    state: State
    what: str
    why: str
    needed_by: tuple[str, ...] = ()
    ref: str | None = None


Comparison = Callable[[View], Iterator[Finding]]
"""What another room compares of its own part of the index."""
