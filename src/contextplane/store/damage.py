"""Damage of stored objects in one vocabulary, and the findings of a check.

An object was tampered with, is missing, or is unreadable. Every verb says so in these words, and names the pack or the
part of a pack that the object belongs to, never a file.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ObjectCondition
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import View
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects, StorageFailed

__all__ = [
    "DAMAGE",
    "DAMAGE_LABEL",
    "WAY_OUT",
    "Comparison",
    "Damage",
    "FindingState",
    "FsckFinding",
    "RepairedObject",
    "damage_by",
    "damage_context",
    "damage_in",
    "damage_sentence",
    "damaged_among",
    "short_ref",
]

Damage: TypeAlias = Literal["tampered", "missing", "unreadable"]

DAMAGE_LABEL: dict[Damage, str] = {"tampered": "tampered with", "missing": "missing", "unreadable": "unreadable"}
"""The label beside the name of a damaged object."""

_DIGITS = 12
_PREDICATES: dict[Damage, str] = {
    "tampered": "was tampered with",
    "missing": "is missing",
    "unreadable": "is unreadable",
}
_READING = "cannot be read: "  # how the messages of storage begin
_HEALS = "packing the same log again or importing the run heals it; 'ctx fsck' lists all damage"
WAY_OUT: dict[Damage, str] = {
    "tampered": _HEALS,
    "missing": _HEALS,
    "unreadable": "check the file and its permissions; 'ctx fsck' lists all damage",
}


_OBSTRUCTED = (
    "move the file in its place away, then pack the same log again or import the run; 'ctx fsck' lists all damage"
)


def short_ref(pack: Digest, part: str = "") -> str:
    """The reference of a pack or a part of it, short enough for a line: `ctx://ab12cd34ef56:steps/3`."""
    return f"ctx://{pack.hex[:_DIGITS]}" + (f":{part}" if part else "")


def damage_in(condition: ObjectCondition) -> Damage | None:
    """The damage of an object that was checked; None when it is whole."""
    if condition.state == "whole":
        return None
    return "tampered" if condition.state == "corrupt" else condition.state


def damage_by(error: ContextPlaneError) -> Damage | None:
    """The damage that an error reports; None when the error has another cause.

    Something other than a file in the place of an object counts as tampered with, as other bytes do.
    """
    if isinstance(error, ObjectCorrupt | ObjectObstructed):
        return "tampered"
    if isinstance(error, ObjectNotFound):
        return "missing"
    return "unreadable" if isinstance(error, StorageFailed) else None


def damage_sentence(what: str, damage: Damage, why: str = "") -> str:
    """The damage as a sentence: `its manifest was tampered with`. If unreadable, it ends with why."""
    reason = f": {why.removeprefix(_READING)}" if damage == "unreadable" and why else ""
    return f"{what} {_PREDICATES[damage]}{reason}"


@contextmanager
def damage_context(where: str, what: str, digest: Digest) -> Iterator[None]:
    """Reword errors in this block that are damage of an object: `what`, at `where`. Code and family stay.

    The place of the object, and the message of storage, move to the details.
    """
    try:
        yield
    except ContextPlaneError as error:
        damage = damage_by(error)
        if damage is not None:
            observed = {"damage": damage, "digest": str(digest), "place": error.at, "why": error.message}
            error.details = {**error.details, **observed}
            obstructed = isinstance(error, ObjectObstructed)
            error.at, error.hint = where, _OBSTRUCTED if obstructed else WAY_OUT[damage]
            error.message = damage_sentence(what, damage, error.message)
        raise


class RepairedObject(Value, frozen=True):
    """An object that is whole again because the same bytes were stored again, and its former damage."""

    digest: Digest
    damage: Damage


def damaged_among(digests: Iterable[Digest], objects: Objects) -> tuple[RepairedObject, ...]:
    """The damaged ones of these objects. Call it before the right bytes are stored, which repairs them."""
    damages = ((digest, damage_in(objects.check(digest))) for digest in digests)
    return tuple(RepairedObject(digest=digest, damage=damage) for digest, damage in damages if damage is not None)


FindingState = Literal["missing", "corrupt", "index", "orphaned", "foreign", "unreadable", "absent"]

DAMAGE: frozenset[FindingState] = frozenset({"missing", "corrupt", "index", "unreadable"})
"""The states that make a store unsound, or leave that open. An orphaned object only takes space, a foreign file is not
ours, and an absent object was never in this store."""


class FsckFinding(Value, frozen=True):
    """One finding of a check: something in the store that is not as it should be.

    - `missing`: something refers to it, and it is not there.
    - `corrupt`: it is there, and its bytes are not what its name says.
    - `unreadable`: it is there, and cannot be read.
    - `orphaned`: it is whole, and nothing refers to it.
    - `foreign`: it was not written by this program.
    - `index`: the index contradicts the objects.
    - `absent`: a run is a fork of it, and it was never here.

    `ref`: the run, or the part of one, that it belongs to, as it can be typed: `ctx://<64 hex>:steps/3`.
    """

    state: FindingState
    what: str
    why: str
    needed_by: tuple[str, ...] = ()
    ref: str | None = None


Comparison = Callable[[View], Iterator[FsckFinding]]
"""How another package compares its own part of the index with what that is made from."""
