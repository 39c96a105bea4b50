"""The least version class of a change, and whether a version number says at least that."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from contextplane.authoring.change import Change, Effect
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.value import Value

__all__ = ["CLASSES", "Bump", "BumpTooSmall", "VersionClass", "check_bump", "least_class", "required_bump"]

VersionClass = Literal["patch", "minor", "major", "reject"]

CLASSES: tuple[VersionClass, ...] = ("patch", "minor", "major", "reject")
"""From nothing at run time to what may not be published at all."""

_OF_EFFECT: dict[Effect, VersionClass] = {
    "metadata": "patch",
    "narrows": "minor",
    "wording": "minor",
    "reads_more": "minor",
    "locale": "major",
    "endpoint": "major",
    "removes": "major",
    "changes": "major",
    "widens": "major",
}
_STABLE = ("/contract_meta/contract_name", "/pack_meta/pack_id")


class BumpTooSmall(ContextPlaneError):
    """A version number that promises less change than there is."""

    code: ClassVar[str] = "version_bump_too_small"
    family: ClassVar[Family] = "refused"


class Bump(Value, frozen=True):
    """The least class, and for every change the class that it asks for."""

    least: VersionClass
    reasons: tuple[tuple[VersionClass, Change], ...]


def least_class(change: Change) -> VersionClass:
    """What one change asks for. An identity that changes is no new version of the same pack."""
    return "reject" if change.at in _STABLE else _OF_EFFECT[change.effect]


def required_bump(changes: Iterable[Change], *, unsafe: Sequence[str] = ()) -> Bump:
    """The highest class that any change asks for; `unsafe`: why the new pack may not be published at all."""
    reasons = tuple((least_class(one), one) for one in changes)
    least: VersionClass = max((one for one, _ in reasons), key=CLASSES.index, default="patch")
    return Bump(least="reject" if unsafe else least, reasons=reasons)


def check_bump(old: PackRef, new: PackRef, bump: Bump) -> None:
    """Refuse a number that is too small for the change, or that does not come after the old one."""
    if new.release <= old.release:
        raise BumpTooSmall(f"{new} does not come after {old}", hint="published versions never change: raise the number")
    given = _given(old.release, new.release)
    if CLASSES.index(given) < CLASSES.index(bump.least):
        worst = [change.words for one, change in bump.reasons if one == bump.least]
        raise BumpTooSmall(
            f"{old} to {new} is a {given} version, and the change is {bump.least}: {'; '.join(worst[:3])}",
            hint=f"raise the {bump.least} number" if bump.least != "reject" else "redesign the change",
        )


def _given(old: tuple[int, int, int], new: tuple[int, int, int]) -> VersionClass:
    if new[0] != old[0]:
        return "major"
    return "minor" if new[1] != old[1] else "patch"
