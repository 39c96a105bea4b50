"""Runs golden cases for a release: when a version is published, and when a rollback brings it back.

The cases that ran at publication are part of the report that the registry keeps. A rollback runs those, and needs no
folder.
"""

from collections.abc import Sequence

from contextplane.errors import ContextPlaneError
from contextplane.evaluation.golden import CaseResult, GoldenFile, check_cases, golden_documents
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.json.parse import parse
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import GoldenResult
from contextplane.runtime.published_source import ChooseCounter, pack_source

__all__ = ["run_published_cases"]

_NAMED_CASES = 3


def run_published_cases(
    report: bytes | None,
    ref: PackRef,
    value: Json,
    catalogs: Sequence[Candidate] = (),
    choose_counter: ChooseCounter | None = None,
) -> GoldenResult:
    """Run the cases in the report of a published version. `report` is None if there is no report."""
    if report is None:
        return GoldenResult(outcome="not_run", words="no golden cases were given: --golden DIR names them")
    document = parse(report).value
    golden = document.get("golden") if isinstance(document, dict) else None
    documents = golden.get("documents") if isinstance(golden, dict) else None
    if not isinstance(documents, list) or not documents:
        return GoldenResult(outcome="not_run", words="no golden cases were given when it was published")
    try:
        files = golden_documents(documents)
    except ContextPlaneError as error:
        return GoldenResult(outcome="failed", words=f"{error.code}: {error.message}", documents=tuple(documents))
    return run_cases(files, ref, value, catalogs, choose_counter)


def run_cases(
    files: Sequence[GoldenFile],
    ref: PackRef,
    value: Json,
    catalogs: Sequence[Candidate],
    choose_counter: ChooseCounter | None = None,
) -> GoldenResult:
    """Run these cases against a version, and report the result to the registry."""
    if not isinstance(value, dict) or "pack_meta" not in value:
        return GoldenResult(outcome="not_run", words=f"golden cases are for packs, and {ref} is none")
    documents: tuple[Json, ...] = tuple({"name": file.name, "case": file.document} for file in files)
    names = tuple(file.name for file in files)
    try:
        results = check_cases(pack_source(value, catalogs, choose_counter), files)
    except ContextPlaneError as error:
        return GoldenResult(outcome="failed", words=f"{error.code}: {error.message}", cases=names, documents=documents)
    drifted = [result for result in results if not result.passed]
    if not drifted:
        return GoldenResult(outcome="passed", words=f"{len(results)} as recorded", cases=names, documents=documents)
    return GoldenResult(
        outcome="failed",
        words=_describe_drift(drifted),
        cases=tuple(result.name for result in drifted),
        documents=documents,
    )


def _describe_drift(drifted: Sequence[CaseResult]) -> str:
    """Describe the first drifted cases, each with its stage, and count the others."""
    first = "; ".join(f"{result.name} drifted at {result.stage} ({result.words})" for result in drifted[:_NAMED_CASES])
    more = f"; and {len(drifted) - _NAMED_CASES} more" if len(drifted) > _NAMED_CASES else ""
    return first + more
