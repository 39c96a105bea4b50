"""Reports as objects: what ran over which bytes, and its result.

They are canonical JSON, so that equal reports have equal bytes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.registry.events import CatalogReference, GoldenOutcome

if TYPE_CHECKING:
    from contextplane.authoring.gates.table import Report
    from contextplane.authoring.law import Finding
    from contextplane.registry.artifacts import Candidate

__all__ = [
    "EvaluationReport",
    "GoldenCases",
    "GoldenResult",
    "ReleaseGates",
    "action_report",
    "catalog_rows",
    "gates_report",
    "golden_report",
]


class GoldenResult(Value, frozen=True):
    """The result of golden cases. `not_run` is no pass: `words` says why they did not run.

    `documents`: the cases themselves, stored in the report so that they can be run again.
    """

    outcome: GoldenOutcome
    words: str
    cases: tuple[str, ...] = ()
    documents: tuple[Json, ...] = ()


class GoldenCases(Protocol):
    """Runs the golden cases of a version. The implementation has the compiler."""

    def run(self, ref: PackRef, value: Json, catalogs: "Sequence[Candidate]" = ()) -> GoldenResult:
        """Run the cases. `catalogs`: those that the version is recorded with."""
        ...


class EvaluationReport(Value, frozen=True):
    """The result of the release gates of a version in an environment, with the report as bytes."""

    passed: bool
    words: str
    report: bytes


class ReleaseGates(Protocol):
    """Evaluates the runs of a version in an environment."""

    def evaluate(self, ref: PackRef, environment: str) -> EvaluationReport | None:
        """Return the report; None if the version was not evaluated there."""
        ...


def gates_report(  # noqa: PLR0913  the fields of a report of gates
    ref: PackRef,
    digest: Digest,
    report: "Report",
    golden: GoldenResult | None = None,
    *,
    catalogs: Sequence[CatalogReference] = (),
    gates_version: str = "",
) -> bytes:
    """Encode the gate results of an artifact, its catalogs, and its golden results where they ran.

    `gates_version`: the version of this package, whose gates they are.
    """
    return canonical(
        {
            "report": "gates",
            "ref": str(ref),
            "digest": str(digest),
            "catalogs": catalog_rows(catalogs),
            "gates_version": gates_version,
            "passed": report.passed,
            "not_run": list(report.not_run),
            "findings": _finding_rows(report.findings),
            "golden": None if golden is None else _golden_fields(golden),
        }
    )


def catalog_rows(catalogs: Sequence[CatalogReference]) -> list[dict[str, str]]:
    """The catalogs of an artifact as its report lists them."""
    return [{"ref": f"{catalog.id}@{catalog.version}", "digest": catalog.digest} for catalog in catalogs]


def golden_report(ref: PackRef, digest: Digest, golden: GoldenResult) -> bytes:
    return canonical({"report": "golden", "ref": str(ref), "digest": str(digest), "golden": _golden_fields(golden)})


def action_report(  # noqa: PLR0913  the fields of a refresh report
    ref: PackRef, digest: Digest, *, trigger: str, action: str, passed: bool, words: str, findings: Sequence["Finding"]
) -> bytes:
    """Encode the result of one action of a refresh."""
    return canonical(
        {
            "report": "refresh",
            "ref": str(ref),
            "digest": str(digest),
            "trigger": trigger,
            "action": action,
            "passed": passed,
            "words": words,
            "findings": _finding_rows(findings),
        }
    )


def _golden_fields(golden: GoldenResult) -> dict[str, Json]:
    fields: dict[str, Json] = {"outcome": golden.outcome, "words": golden.words, "cases": list(golden.cases)}
    return {**fields, "documents": list(golden.documents)} if golden.documents else fields


def _finding_rows(findings: Sequence["Finding"]) -> list[Json]:
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
