"""Reports as objects: what ran over which bytes, and what came of it. Canonical JSON, so that the same is the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.registry.events import GoldenOutcome, JudgedWith

if TYPE_CHECKING:
    from contextplane.authoring.finding import Finding
    from contextplane.authoring.gates.table import Report
    from contextplane.registry.artifacts import Candidate

__all__ = ["Evaluated", "Golden", "GoldenCases", "ReleaseGates", "action_report", "gates_report", "golden_report"]


class Golden(Value, frozen=True):
    """What golden cases said. `not_run` is no pass: `words` says why they did not.

    `documents` are the cases themselves, kept in the report, so that they can be run again.
    """

    outcome: GoldenOutcome
    words: str
    cases: tuple[str, ...] = ()
    documents: tuple[Json, ...] = ()


class GoldenCases(Protocol):
    """Runs the golden cases of a version. The compiler is behind it, and is handed in."""

    def run(self, ref: PackRef, value: Json, catalogs: "Sequence[Candidate]" = ()) -> Golden:
        """`catalogs`: those that the version is on record with."""
        ...


class Evaluated(Value, frozen=True):
    """What the release gates of a version said in an environment: a report, as an object's bytes."""

    passed: bool
    words: str
    report: bytes


class ReleaseGates(Protocol):
    """Whoever evaluates runs. None: nobody evaluated this version there."""

    def evaluated(self, ref: PackRef, environment: str) -> Evaluated | None: ...


def gates_report(
    ref: PackRef,
    digest: Digest,
    report: "Report",
    golden: Golden | None = None,
    *,
    catalogs: Sequence[JudgedWith] = (),
) -> bytes:
    """What the gates said of an artifact, with which catalogs, and golden cases where they were asked."""
    return canonical(
        {
            "report": "gates",
            "ref": str(ref),
            "digest": str(digest),
            "catalogs": [{"ref": f"{catalog.id}@{catalog.version}", "digest": catalog.digest} for catalog in catalogs],
            "passed": report.passed,
            "not_run": list(report.not_run),
            "findings": _told(report.findings),
            "golden": None if golden is None else _golden(golden),
        }
    )


def golden_report(ref: PackRef, digest: Digest, golden: Golden) -> bytes:
    return canonical({"report": "golden", "ref": str(ref), "digest": str(digest), "golden": _golden(golden)})


def action_report(  # noqa: PLR0913  what a report of a refresh tells
    ref: PackRef, digest: Digest, *, trigger: str, action: str, passed: bool, words: str, findings: Sequence["Finding"]
) -> bytes:
    """What came of one action that a refresh asks for."""
    return canonical(
        {
            "report": "refresh",
            "ref": str(ref),
            "digest": str(digest),
            "trigger": trigger,
            "action": action,
            "passed": passed,
            "words": words,
            "findings": _told(findings),
        }
    )


def _golden(golden: Golden) -> dict[str, Json]:
    told: dict[str, Json] = {"outcome": golden.outcome, "words": golden.words, "cases": list(golden.cases)}
    return {**told, "documents": list(golden.documents)} if golden.documents else told


def _told(findings: Sequence["Finding"]) -> list[Json]:
    return [
        {
            "gate": finding.gate,
            "code": finding.code,
            "severity": finding.severity,
            "at": finding.at,
            "cause": finding.cause,
        }
        for finding in findings
    ]
