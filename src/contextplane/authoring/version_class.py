"""The least version class of a change, and whether the number of the newer version allows it.

`required_bump` derives the class from the changes, `check_bump` checks a number against it, and `compare_versions` does
both for two packs.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from contextplane.authoring.diff.tree import Change, Effect
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates.table import Report
from contextplane.authoring.law import Finding
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value

__all__ = [
    "CLASSES",
    "Bump",
    "BumpTooSmall",
    "ComparedPack",
    "Comparison",
    "VersionClass",
    "check_bump",
    "compare_versions",
    "least_class",
    "required_bump",
]

VersionClass = Literal["patch", "minor", "major", "reject"]

CLASSES: tuple[VersionClass, ...] = ("patch", "minor", "major", "reject")
"""From a change without effect at run time to one that may not be published at all."""

_CLASS_OF_EFFECT: dict[Effect, VersionClass] = {
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
    """The least version class of a set of changes, and the class of each change."""

    least: VersionClass
    reasons: tuple[tuple[VersionClass, Change], ...]


class ComparedPack(Value, frozen=True):
    """One of two packs to compare: its JSON as written, and the same, typed."""

    value: Json
    pack: ContextPack


class Comparison(Value, frozen=True):
    """The comparison of two versions of a pack.

    `unsafe`: the errors for which the newer pack may not be published. `refusal`: why its number is refused, else "".
    """

    old: PackRef
    new: PackRef
    same: bool
    bump: Bump
    unsafe: tuple[Finding, ...]
    refusal: str

    @property
    def undecided(self) -> int:
        """The number of changes whose effect cannot be told."""
        return sum(change.undecided for _, change in self.bump.reasons)


def least_class(change: Change) -> VersionClass:
    """Return the least version class of one change. A pack whose identity changes is no new version of it."""
    return "reject" if change.at in _STABLE else _CLASS_OF_EFFECT[change.effect]


def required_bump(changes: Iterable[Change], *, unsafe: Sequence[str] = ()) -> Bump:
    """Return the highest class of any change. `unsafe`: why the new pack may not be published at all."""
    reasons = tuple((least_class(change), change) for change in changes)
    least: VersionClass = max((version_class for version_class, _ in reasons), key=CLASSES.index, default="patch")
    return Bump(least="reject" if unsafe else least, reasons=reasons)


def check_bump(old: PackRef, new: PackRef, bump: Bump) -> None:
    """Refuse a version number that is too small for the change, or not after the old one."""
    if new.release <= old.release:
        raise BumpTooSmall(f"{new} does not come after {old}", hint="published versions never change: raise the number")
    step = _version_step(old.release, new.release)
    if CLASSES.index(step) < CLASSES.index(bump.least):
        worst = [change.words for version_class, change in bump.reasons if version_class == bump.least]
        raise BumpTooSmall(
            f"{old} to {new} is a {step} version, and the change is {bump.least}: {'; '.join(worst[:3])}",
            hint=f"raise the {bump.least} number" if bump.least != "reject" else "redesign the change",
        )


def _version_step(old: tuple[int, int, int], new: tuple[int, int, int]) -> VersionClass:
    if new[0] != old[0]:
        return "major"
    return "minor" if new[1] != old[1] else "patch"


def compare_versions(old: ComparedPack, new: ComparedPack, report: Report) -> Comparison:
    """Compare two packs. `report` holds the findings of the gates in the newer one."""
    unsafe = tuple(finding for finding in report.findings if finding.severity == "error")
    bump = required_bump(
        compare_packs(old.value, new.value), unsafe=[f"{finding.code} at {finding.at}" for finding in unsafe]
    )
    same = canonical(old.value) == canonical(new.value)
    refs = old.pack.ref, new.pack.ref
    refusal = "" if same else _refusal(*refs, bump, unsafe)
    return Comparison(old=refs[0], new=refs[1], same=same, bump=bump, unsafe=unsafe, refusal=refusal)


def _refusal(old: PackRef, new: PackRef, bump: Bump, unsafe: tuple[Finding, ...]) -> str:
    if old.pack_id != new.pack_id:
        return f"{old.pack_id} and {new.pack_id} are two packs, not two versions of one"
    if unsafe:
        return f"{new} may not be published under any number: the gates report errors in it"
    try:
        check_bump(old, new, bump)
    except BumpTooSmall as error:
        return str(error)
    return ""
