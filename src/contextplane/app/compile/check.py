"""Runs the release checklist: over a pack, the version before it, and a folder of golden cases."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from contextplane.app.documents import DocumentUnreadable, path_in_folder
from contextplane.app.packs.files import DescriptionInvalid, read_author_file
from contextplane.app.packs.lint import LintResult, lint_file
from contextplane.authoring.checklist import (
    SKIPPABLE,
    Checklist,
    ChecklistInput,
    GoldenCaseResults,
    exposed_tools,
    run_checklist,
)
from contextplane.authoring.source_file import NamedFile
from contextplane.authoring.version_class import Comparison
from contextplane.model.pack_layers import Capability
from contextplane.model.terms import Identifier
from contextplane.model.value import Document, Value

if TYPE_CHECKING:
    from contextplane.evaluation.golden import CaseResult
    from contextplane.registry.artifacts import Candidate

__all__ = ["SKIPPABLE", "CheckResult", "Checklist", "check_pack"]

_SURFACE = "tool_surface.json"


class ExposedAdapter(Document, frozen=True):
    """An entry of `tool_surface.json`, which has the form of a tool manifest."""

    adapter_id: Identifier
    capabilities: tuple[Capability, ...]


class CheckResult(Value, frozen=True):
    """The checklist of a pack, and the comparison with the version before, if one was given."""

    checklist: Checklist
    comparison: Comparison | None
    pack: NamedFile


def check_pack(  # noqa: PLR0913  what a change is checked with
    path: str,
    *,
    against: NamedFile | None = None,
    golden: str | None = None,
    overlays: tuple[str, ...] = (),
    environment: str | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
    skipped: Mapping[str, str] | None = None,
) -> CheckResult:
    """Run the lines of the checklist over the pack in a file. `skipped`: those to leave out, with reasons."""
    result = lint_file(path, overlays=overlays, environment=environment, against=against, catalogs=catalogs)
    expected = _expected_surface(golden) if golden is not None else None
    facts = ChecklistInput(
        report=result.report,
        surface=exposed_tools(result.value, result.report),
        expected=expected,
        comparison=result.comparison,
        cases=_run_golden_cases(result, overlays, catalogs, golden)
        if golden is not None and result.report.passed
        else None,
    )
    return CheckResult(checklist=run_checklist(facts, skipped), comparison=result.comparison, pack=result.pack)


def _run_golden_cases(
    result: LintResult, overlays: tuple[str, ...], catalogs: "tuple[Candidate, ...]", folder: str
) -> GoldenCaseResults:
    """Run the golden cases of a folder against the pack. A folder without cases counts as zero cases."""
    from contextplane.app.compile.golden import NoGoldenCases, golden_files
    from contextplane.app.compile.sources import source_from_lint
    from contextplane.app.packs.files import read_overlay_file
    from contextplane.evaluation.golden import check_cases

    try:
        files = golden_files(folder)
    except NoGoldenCases:
        return GoldenCaseResults(count=0)
    source = source_from_lint(result, tuple(map(read_overlay_file, overlays)), catalogs)
    drifted = [case for case in check_cases(source, files) if not case.passed]
    return GoldenCaseResults(
        count=len(files),
        drifted=tuple(f"{case.name} drifted at {case.stage} ({case.words})" for case in drifted),
        surface=tuple(case.name for case in drifted if case.recorded and _tools_changed(case)),
        unrecorded=tuple(case.name for case in drifted if not case.recorded),
    )


def _tools_changed(case: "CaseResult") -> bool:
    """Whether the case gets other tools than recorded. One that is newly refused gets none."""
    return case.refusal_changed or any(difference.kind == "tool" for difference in case.changes)


def _expected_surface(folder: str) -> frozenset[str] | None:
    """Read the tools that the golden folder expects to be exposed; None if it has no `tool_surface.json`."""
    if not os.path.isdir(folder):
        raise DocumentUnreadable("is not a folder", at=folder, hint="name the folder of the golden cases")
    if not os.path.lexists(os.path.join(folder, _SURFACE)):
        return None
    path = path_in_folder(folder, _SURFACE)
    try:
        adapters = msgspec.convert(read_author_file(path).value, type=tuple[ExposedAdapter, ...])
    except msgspec.ValidationError as error:
        raise DescriptionInvalid(
            str(error), at=path, hint='write [{"adapter_id": "...", "capabilities": ["..."]}], a tool manifest'
        ) from error
    return frozenset(
        f"{adapter.adapter_id}.{capability}" for adapter in adapters for capability in adapter.capabilities
    )
