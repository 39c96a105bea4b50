"""The least version class of a change, and whether a version number says at least that.

Two packs side by side: what changed, the least version class of it, and whether the newer number says as much.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from contextplane.authoring.diff.change import Change, Effect
from contextplane.authoring.diff.walk import compared
from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value

__all__ = [
    "CLASSES",
    "Bump",
    "BumpTooSmall",
    "Comparison",
    "Side",
    "VersionClass",
    "check_bump",
    "comparison",
    "least_class",
    "required_bump",
]

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
    reasons = tuple((least_class(change), change) for change in changes)
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


class Side(Value, frozen=True):
    """A pack as it was written, and typed."""

    value: Json
    pack: ContextPack


class Comparison(Value, frozen=True):
    """`unsafe`: the errors for which the newer pack may not be published. `refusal`: why its number will not do."""

    old: PackRef
    new: PackRef
    same: bool
    bump: Bump
    unsafe: tuple[Finding, ...]
    refusal: str


def comparison(old: Side, new: Side, report: Report) -> Comparison:
    """Compare two packs; `report` is what the gates say of the newer one."""
    unsafe = tuple(finding for finding in report.findings if finding.severity == "error")
    bump = required_bump(
        compared(old.value, new.value), unsafe=[f"{finding.code} at {finding.at}" for finding in unsafe]
    )
    same = canonical(old.value) == canonical(new.value)
    refs = old.pack.ref, new.pack.ref
    refusal = "" if same else _refusal(*refs, bump, unsafe)
    return Comparison(old=refs[0], new=refs[1], same=same, bump=bump, unsafe=unsafe, refusal=refusal)


def _refusal(old: PackRef, new: PackRef, bump: Bump, unsafe: tuple[Finding, ...]) -> str:
    if old.pack_id != new.pack_id:
        return f"{old.pack_id} and {new.pack_id} are two packs, not two versions of one"
    if unsafe:
        return f"{new} may not be published under any number: the gates find errors in it"
    try:
        check_bump(old, new, bump)
    except BumpTooSmall as error:
        return str(error)
    return ""
