"""Pure views of versions: summaries for lists, pins, layers, gate results and history."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import ArtifactKind, Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.registry.artifact_state import ArtifactState, Stage
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import AliasSet, EventInvalid, PinChange
from contextplane.registry.pin_state import PinState, changed_ref, is_doubtful, ref_of
from contextplane.registry.reader import RegistryReader
from contextplane.registry.streams import PINS, aliases_stream, artifact_stream, version_stream
from contextplane.registry.verified_event import VerifiedEvent

__all__ = [
    "GateSummary",
    "PinLocation",
    "ServingProblem",
    "VersionSummary",
    "artifact_history",
    "concerns_version",
    "is_published",
    "layer_summaries",
    "list_pins",
    "read_gate_summary",
    "version_summary",
]


class PinLocation(Value, frozen=True):
    """An environment that pins a version: since when, and by which key.

    `doubtful`: the key was revoked by then, so no run gets the version until it is pinned anew. `unserved`: the code
    of the error that every new run gets there, about the version or about one that is pinned with it; empty if none.
    `family`: the kind of that error; None for a doubtful pin.
    """

    environment: str
    at: str
    by: str
    doubtful: bool = False
    unserved: str = ""
    family: Family | None = None

    @property
    def is_broken(self) -> bool:
        """Whether no new run gets the version, and no decision says so: that it is deprecated, or revoked."""
        return self.family not in {None, "refused"}


class VersionSummary(Value, frozen=True):
    """A version in a list. `doubtful_in`: where a key pins it that was revoked by then.

    `unserved_in`: where it is pinned and no new run gets it, with the reason. `problem`: why the version could not be
    read. `family`: the kind of that error, or of the first reason that no decision gives (`is_broken`).
    """

    ref: PackRef
    kind: ArtifactKind | None = None
    stage: Stage | None = None
    digest: Digest | None = None
    issuer: str = ""
    published_at: str = ""
    pinned_in: tuple[str, ...] = ()
    doubtful_in: tuple[str, ...] = ()
    unserved_in: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    open_refreshes: int = 0
    problem: str = ""
    family: Family | None = None


class GateSummary(Value, frozen=True):
    """The result of the gates when the version was published, and of its golden cases."""

    passed: bool
    errors: int
    warnings: int
    unknown: int
    golden: str
    report: str


def is_published(reader: RegistryReader, state: ArtifactState) -> bool:
    """Whether exactly these bytes are published."""
    version = reader.version(state.name)
    return version.is_published and version.digest == state.digest


def version_summary(
    reader: RegistryReader, ref: PackRef, pins: list[tuple[PackRef, PinLocation]]
) -> VersionSummary | None:
    """Summarize a version, or the problem if it cannot be read; None if it was never published."""
    try:
        version = reader.version(ref)
        if not version.is_published:
            return None
        aliases = reader.aliases(ref.pack_id).of_version(ref.version)
    except ContextPlaneError as error:
        return VersionSummary(ref=ref, problem=f"{error.code}: {error.message}", family=error.family)
    locations = [location for pinned, location in pins if pinned == ref]
    return VersionSummary(
        ref=ref,
        kind=version.kind,
        stage=version.stage,
        digest=version.digest,
        issuer=version.publication.issuer,
        published_at=str(version.published_at),
        pinned_in=tuple(location.environment for location in locations),
        doubtful_in=tuple(location.environment for location in locations if location.doubtful),
        unserved_in=tuple((location.environment, location.unserved) for location in locations if location.unserved),
        aliases=aliases,
        open_refreshes=len(version.open_refreshes),
        family=next((location.family for location in locations if location.is_broken), None),
    )


ServingProblem = Callable[[PackRef], ContextPlaneError | None]
"""Returns why no new run gets a version, wherever it is pinned; None if runs get it."""


def list_pins(reader: RegistryReader, problem_of: ServingProblem | None = None) -> list[tuple[PackRef, PinLocation]]:
    """List every pin of every environment, with the version that it pins.

    `problem_of`: also tell where no new run gets what is pinned. One bad overlay is enough for that.
    """
    located: list[tuple[PackRef, PinLocation]] = []
    for name in reader.names(PINS):
        environment, _, base_id = name.removeprefix(PINS).partition("/")
        last = reader.last(name)
        if last is None:
            continue
        pins = PinState(environment=environment, base_id=base_id).after_event(last).pins
        together = (*([pins.base] if pins.base is not None else []), *pins.overlays)
        doubtful = {pin.id for pin in together if is_doubtful(pin, last, reader.keyrings.now.issuers)}
        problem: tuple[str, Family | None] = ("pin_doubtful" if doubtful else "", None)
        if problem_of is not None and not doubtful:
            problems = (problem_of(ref_of(pin)) for pin in together)
            problem = next(((error.code, error.family) for error in problems if error is not None), problem)
        for pin in together:
            location = PinLocation(
                environment=environment,
                at=pin.at,
                by=pin.by,
                doubtful=pin.id in doubtful,
                unserved=problem[0],
                family=problem[1],
            )
            located.append((ref_of(pin), location))
    return located


def artifact_history(reader: RegistryReader, artifact: Candidate) -> tuple[VerifiedEvent, ...]:
    """Return the events of an artifact, its version, its aliases and its pins, in the order of the log."""
    ref, document = artifact.ref, artifact.document
    base_id = document.base_pack_id if isinstance(document, Overlay) else ref.pack_id
    events = [*reader.history(artifact_stream(artifact.digest)), *reader.history(version_stream(ref))]
    events += [event for event in reader.history(aliases_stream(ref.pack_id)) if concerns_version(event, ref)]
    for name in reader.names(PINS):
        if name.endswith(f"/{base_id}"):
            events += [event for event in reader.history(name) if concerns_version(event, ref)]
    return tuple(sorted(events, key=lambda event: event.event.entry))


def concerns_version(event: VerifiedEvent, ref: PackRef) -> bool:
    """Whether a change of pins or aliases is about a version."""
    if isinstance(event.change, PinChange):
        return changed_ref(event.change) == ref
    return isinstance(event.change, AliasSet) and event.change.version == ref.version


def layer_summaries(artifact: Candidate) -> tuple[tuple[str, str], ...]:
    """Summarize the parts of a document, in schema order: the length of each list, the value of a text."""
    order = type(artifact.document).__struct_fields__
    members = cast("dict[str, Any]", artifact.value)
    summaries: list[tuple[str, str]] = []
    for name in sorted(members, key=order.index):
        layer = members[name]
        lists = {name: layer} if isinstance(layer, list) else layer if isinstance(layer, dict) else {}
        counts = [f"{len(member)} {key}" for key, member in lists.items() if isinstance(member, list)]
        text = str(layer) if isinstance(layer, str | int) else ""
        summaries.append((name, ", ".join(counts) if counts else text))
    return tuple(summaries)


class _StoredReport(Value, frozen=True):
    passed: bool
    findings: list[dict[str, str]]
    golden: dict[str, Any] | None = None


def read_gate_summary(data: bytes, report: str) -> GateSummary:
    """Summarize a stored gate report. `report`: its digest, as the event names it."""
    try:
        stored = msgspec.json.decode(data, type=_StoredReport)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise EventInvalid("an event names it as a report, and it is none", at=report) from error
    kinds = [finding.get("severity") for finding in stored.findings]
    return GateSummary(
        passed=stored.passed,
        errors=kinds.count("error"),
        warnings=kinds.count("warning"),
        unknown=kinds.count("unknown"),
        golden=str((stored.golden or {}).get("outcome", "not_run")),
        report=report,
    )
