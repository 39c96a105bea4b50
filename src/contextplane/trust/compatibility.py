"""Step 9 of the trust decision: this runtime, and the ontologies that are present, are what a pack requires.

What is required and not understood is refused: an old runtime fails closed.
"""

from collections.abc import Iterator
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import RUNTIME_CONTRACT, ContextPack
from contextplane.model.value import Value
from contextplane.model.version_range import RangeInvalid, VersionRange

__all__ = [
    "OntologyIncompatible",
    "OntologyMissing",
    "Present",
    "RequirementUnknown",
    "RequirementUnstated",
    "RuntimeTooNew",
    "RuntimeTooOld",
    "check_compatibility",
]

_REQUIRES = "/contract_meta/compatibility/requires"
_ONTOLOGY = "/intelligence_refs/ontology"
Version = tuple[int, int, int]


class RuntimeTooOld(ContextPlaneError):
    """A pack that requires a newer runtime than this one."""

    code: ClassVar[str] = "runtime_too_old"
    family: ClassVar[Family] = "refused"


class RuntimeTooNew(ContextPlaneError):
    """A pack that requires an older runtime than this one."""

    code: ClassVar[str] = "runtime_too_new"
    family: ClassVar[Family] = "refused"


class OntologyMissing(ContextPlaneError):
    """The ontology that a pack pins is not present in the version that it pins."""

    code: ClassVar[str] = "ontology_missing"
    family: ClassVar[Family] = "refused"


class OntologyIncompatible(ContextPlaneError):
    """An ontology in a version that the pack does not admit."""

    code: ClassVar[str] = "ontology_incompatible"
    family: ClassVar[Family] = "refused"


class RequirementUnknown(ContextPlaneError):
    """Something is required that this runtime does not know."""

    code: ClassVar[str] = "requirement_unknown"
    family: ClassVar[Family] = "refused"


class RequirementUnstated(ContextPlaneError):
    """A pack does not say which runtime, or which ontology, it requires."""

    code: ClassVar[str] = "requirement_unstated"
    family: ClassVar[Family] = "refused"


class Present(Value, frozen=True):
    """What is here: the runtime's contract, and every ontology as `ont.support@1.0.0`."""

    ontologies: tuple[str, ...] = ()
    runtime: str = RUNTIME_CONTRACT


def check_compatibility(pack: ContextPack, present: Present) -> None:
    """Refuse a pack unless all that it requires is here. The first refusal is raised, the others are in its details."""
    # (9) what it requires
    refusals = list(_refusals(pack, present))
    if refusals:
        first, *others = refusals
        first.details["also"] = [{"code": other.code, "at": other.at, "message": other.message} for other in others]
        raise first


def _refusals(pack: ContextPack, present: Present) -> Iterator[ContextPlaneError]:
    requires = pack.contract_meta.compatibility.requires
    for name in ("runtime", "ontology"):
        if name not in requires:
            yield RequirementUnstated(f"nothing is required of the {name}", at=_REQUIRES, hint="say which versions")
    for name, text in requires.items():
        at = f"{_REQUIRES}/{name}"
        try:
            admitted = VersionRange.parse(text)
        except RangeInvalid as error:
            yield error.under(at)
            continue
        if name == "runtime":
            yield from _runtime(admitted, text, present, at)
        elif name == "ontology":
            pinned = pack.intelligence_refs.ontology
            if _numbers(pinned.version) not in admitted:
                yield OntologyIncompatible(
                    f"{pinned.namespace}@{pinned.version} is pinned, and {text} is required", at=f"{_ONTOLOGY}/version"
                )
        else:
            yield RequirementUnknown(
                f"{name[:60]!r} is required, which this runtime does not know", at=at, hint="use a newer runtime"
            )
    yield from _pinned_ontology(pack, present)


def _runtime(admitted: VersionRange, text: str, present: Present, at: str) -> Iterator[ContextPlaneError]:
    here = _numbers(present.runtime)
    if here in admitted:
        return
    said = f"this runtime has the contract {present.runtime}, and {text} is required"
    if any(low > here for low, _ in admitted.intervals):
        yield RuntimeTooOld(said, at=at, hint="use a newer runtime")
    else:
        yield RuntimeTooNew(said, at=at, hint="publish the pack for this contract, or use an older runtime")


def _pinned_ontology(pack: ContextPack, present: Present) -> Iterator[ContextPlaneError]:
    """The pinned version itself must be here: another one that is admitted may mean other things."""
    pinned = pack.intelligence_refs.ontology
    if f"{pinned.namespace}@{pinned.version}" not in present.ontologies:
        others = [ontology for ontology in present.ontologies if ontology.startswith(f"{pinned.namespace}@")]
        yield OntologyMissing(
            f"{pinned.namespace}@{pinned.version} is not here",
            at=_ONTOLOGY,
            hint=f"here is {', '.join(sorted(others)[:3])}" if others else "publish it here first",
        )


def _numbers(version: str) -> Version:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch
