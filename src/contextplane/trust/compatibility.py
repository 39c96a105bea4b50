"""Step 9 of the trust decision: this runtime and its ontologies satisfy what a pack requires.

A requirement that this runtime does not know is refused: an old runtime fails closed.
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
    "RequirementUnknown",
    "RequirementUnstated",
    "RuntimeCapabilities",
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


class RuntimeCapabilities(Value, frozen=True):
    """The runtime's contract version, and every available ontology as `ont.support@1.0.0`."""

    ontologies: tuple[str, ...] = ()
    runtime: str = RUNTIME_CONTRACT


def check_compatibility(pack: ContextPack, capabilities: RuntimeCapabilities) -> None:
    """Refuse a pack with an unmet requirement: the first is raised, the others are in its details."""
    # (9) the requirements of the pack
    refusals = list(_refusals(pack, capabilities))
    if refusals:
        first, *others = refusals
        first.details["also"] = [{"code": other.code, "at": other.at, "message": other.message} for other in others]
        raise first


def _refusals(pack: ContextPack, capabilities: RuntimeCapabilities) -> Iterator[ContextPlaneError]:
    requires = pack.contract_meta.compatibility.requires
    pinned = pack.intelligence_refs.ontology
    for name in ("runtime", "ontology") if pinned else ("runtime",):
        if name not in requires:
            yield RequirementUnstated(f"nothing is required of the {name}", at=_REQUIRES, hint="name the versions")
    for name, text in requires.items():
        at = f"{_REQUIRES}/{name}"
        try:
            admitted = VersionRange.parse(text)
        except RangeInvalid as error:
            yield error.under(at)
            continue
        if name == "runtime":
            yield from _runtime(admitted, text, capabilities, at)
        elif name == "ontology":
            if not pinned:
                yield OntologyIncompatible(f"{text} is required, and the pack pins no ontology", at=at)
            elif _numbers(pinned.version) not in admitted:
                yield OntologyIncompatible(
                    f"{pinned.namespace}@{pinned.version} is pinned, and {text} is required", at=f"{_ONTOLOGY}/version"
                )
        else:
            yield RequirementUnknown(
                f"{name[:60]!r} is required, which this runtime does not know", at=at, hint="use a newer runtime"
            )
    yield from _pinned_ontology(pack, capabilities)


def _runtime(
    admitted: VersionRange, text: str, capabilities: RuntimeCapabilities, at: str
) -> Iterator[ContextPlaneError]:
    here = _numbers(capabilities.runtime)
    if here in admitted:
        return
    message = f"this runtime has the contract {capabilities.runtime}, and {text} is required"
    if any(low > here for low, _ in admitted.intervals):
        yield RuntimeTooOld(message, at=at, hint="use a newer runtime")
    else:
        yield RuntimeTooNew(message, at=at, hint="publish the pack for this contract, or use an older runtime")


def _pinned_ontology(pack: ContextPack, capabilities: RuntimeCapabilities) -> Iterator[ContextPlaneError]:
    """Require the pinned version itself: another admitted version may define terms differently."""
    pinned = pack.intelligence_refs.ontology
    if pinned and f"{pinned.namespace}@{pinned.version}" not in capabilities.ontologies:
        others = [ontology for ontology in capabilities.ontologies if ontology.startswith(f"{pinned.namespace}@")]
        yield OntologyMissing(
            f"{pinned.namespace}@{pinned.version} is not here",
            at=_ONTOLOGY,
            hint=f"here is {', '.join(sorted(others)[:3])}" if others else "publish it here first",
        )


def _numbers(version: str) -> Version:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch
