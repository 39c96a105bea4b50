"""Compatibility: a pack says which versions it needs, so that a runtime that is too old fails closed."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.model.runtime_contract import RUNTIME_CONTRACT
from contextplane.model.version_range import RangeInvalid, VersionRange

__all__ = ["LAWS"]

_REQUIRES = "/contract_meta/compatibility/requires"
_NEEDED = ("runtime", "ontology")
_CONTRACT = 1


def _version(text: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


_RUNTIME = _version(RUNTIME_CONTRACT)


def requirements_are_explicit(subject: Subject) -> Iterator[Broken]:
    """compatibility.requires names a range of versions for the runtime and one for the ontology."""
    for name in _NEEDED:
        if name not in subject.pack.contract_meta.compatibility.requires:
            yield Broken(at=_REQUIRES, cause=f"nothing is required of the {name}", cure=f'add "{name}": ">=1.0.0"')


def requirements_are_ranges(subject: Subject) -> Iterator[Broken]:
    """Every entry of compatibility.requires is a range of versions that some versions are in and others are not."""
    for name, found in subject.once(_ranges).items():
        if isinstance(found, RangeInvalid):
            yield Broken(at=f"{_REQUIRES}/{name}", cause=found.message, cure=found.hint or "write >=1.0.0")


def requirements_are_understood(subject: Subject) -> Iterator[Broken]:
    """compatibility.requires names nothing but the runtime and the ontology: what is not understood is refused."""
    for name in subject.pack.contract_meta.compatibility.requires:
        if name not in _NEEDED:
            cause = f"{name[:60]!r} is required, which no runtime knows, so none would load the pack"
            yield Broken(at=f"{_REQUIRES}/{name}", cause=cause, cure=nearest(name, _NEEDED, "take it out"))


def this_runtime_is_in_range(subject: Subject) -> Iterator[Broken]:
    """The runtime that judges is in the range that compatibility.requires asks for: it would load no other pack."""
    admitted = subject.once(_ranges).get("runtime")
    if isinstance(admitted, VersionRange) and _RUNTIME not in admitted:
        asked = subject.pack.contract_meta.compatibility.requires["runtime"]
        yield Broken(
            at=f"{_REQUIRES}/runtime",
            cause=f"this runtime has the contract {RUNTIME_CONTRACT}, which is not in {asked}: it refuses the pack",
            cure=f"write >={RUNTIME_CONTRACT}, or lint it with a ctx of the runtime that it is for",
        )


def the_pinned_ontology_is_in_range(subject: Subject) -> Iterator[Broken]:
    """The pinned version of the ontology is one that compatibility.requires admits."""
    version, admitted = subject.pack.intelligence_refs.ontology.version, subject.once(_ranges).get("ontology")
    if isinstance(admitted, VersionRange) and _version(version) not in admitted:
        asked = subject.pack.contract_meta.compatibility.requires["ontology"]
        yield Broken(
            at="/intelligence_refs/ontology/version",
            cause=f"{version} is not in {asked}, which compatibility.requires asks of the ontology",
            cure="change one of the two",
        )


def _ranges(subject: Subject) -> Mapping[str, VersionRange | RangeInvalid]:
    """The ranges that are required; of one that is none, why."""
    found: dict[str, VersionRange | RangeInvalid] = {}
    for name, text in subject.pack.contract_meta.compatibility.requires.items():
        try:
            found[name] = VersionRange.parse(text)
        except RangeInvalid as error:
            found[name] = error
    return found


def the_contract_is_known(subject: Subject) -> Iterator[Broken]:
    """contract_version is one of the contract that this product reads: 1.Y.Z."""
    version = subject.pack.contract_meta.contract_version
    if int(version.partition(".")[0]) != _CONTRACT:
        yield Broken(
            at="/contract_meta/contract_version",
            cause=f"contract version {version} is not known here",
            cure=f"write {_CONTRACT}.0.0, or lint it with a version of ctx that knows it",
        )


def it_was_created_some_time(subject: Subject) -> Iterator[Broken]:
    """created_at is a moment that there was: a day of the calendar, an hour of the day."""
    try:
        datetime.fromisoformat(subject.pack.contract_meta.created_at)
    except ValueError:
        cause = f"there is no moment {subject.pack.contract_meta.created_at}"
        yield Broken(at="/contract_meta/created_at", cause=cause, cure="write it as 2026-05-09T00:00:00Z")


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="integrity", code="compatibility_unstated", check=requirements_are_explicit),
    Law(gate="integrity", code="compatibility_range_invalid", check=requirements_are_ranges),
    Law(gate="integrity", code="compatibility_unknown", check=requirements_are_understood),
    Law(gate="integrity", code="runtime_out_of_range", check=this_runtime_is_in_range),
    Law(gate="integrity", code="ontology_out_of_range", check=the_pinned_ontology_is_in_range),
    Law(gate="integrity", code="contract_version_unknown", check=the_contract_is_known),
    Law(gate="integrity", code="created_at_impossible", check=it_was_created_some_time),
)
