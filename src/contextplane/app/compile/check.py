"""Running the checklist over a change: the pack, the version before, and a folder of golden cases."""

import os
from typing import TYPE_CHECKING

import msgspec

from contextplane.app.documents import DocumentUnreadable, file_in
from contextplane.app.packs.files import DescriptionInvalid, author_file
from contextplane.app.packs.lint import Linted, lint
from contextplane.authoring.checklist import Asked, Cases, Checklist, checklist
from contextplane.authoring.gates.table import Report
from contextplane.authoring.source_file import Authored
from contextplane.authoring.version_class import Comparison
from contextplane.model.context_pack import Capability, ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.terms import Identifier
from contextplane.model.value import Document, Value

if TYPE_CHECKING:
    from contextplane.evaluation.golden import Ran
    from contextplane.registry.artifacts import Candidate

__all__ = ["Checked", "checked"]

_SURFACE = "tool_surface.json"


class ExposedAdapter(Document, frozen=True):
    """An entry of `tool_surface.json`, which has the form of a tool manifest."""

    adapter_id: Identifier
    capabilities: tuple[Capability, ...]


class Checked(Value, frozen=True):
    """The checklist of a pack; with what changed, where there was something to compare with."""

    checklist: Checklist
    comparison: Comparison | None
    pack: Authored


def checked(  # noqa: PLR0913  what a change is checked with
    path: str,
    *,
    against: Authored | None = None,
    golden: str | None = None,
    overlays: tuple[str, ...] = (),
    environment: str | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
) -> Checked:
    """Check the pack in a file, line by line."""
    result = lint(path, overlays=overlays, environment=environment, against=against, catalogs=catalogs)
    expected = _expected(golden) if golden is not None else None
    asked = Asked(
        report=result.report,
        surface=_surface(result.value, result.report),
        expected=expected,
        comparison=result.comparison,
        cases=_cases(result, overlays, catalogs, golden) if golden is not None and result.report.passed else None,
    )
    return Checked(checklist=checklist(asked), comparison=result.comparison, pack=result.pack)


def _cases(found: Linted, overlays: tuple[str, ...], catalogs: "tuple[Candidate, ...]", folder: str) -> Cases:
    """What the golden cases of a folder say of the pack. A folder without any says nothing."""
    from contextplane.app.compile.golden import NoGoldenCases, golden_files
    from contextplane.app.compile.sources import from_linted
    from contextplane.app.packs.files import overlay_from
    from contextplane.evaluation.golden import check

    try:
        files = golden_files(folder)
    except NoGoldenCases:
        return Cases(count=0)
    source = from_linted(found, tuple(map(overlay_from, overlays)), catalogs)
    drifted = [result for result in check(source, files) if not result.passed]
    return Cases(
        count=len(files),
        drifted=tuple(f"{result.name} drifted at {result.stage} ({result.words})" for result in drifted),
        surface=tuple(result.name for result in drifted if result.recorded and _other_tools(result)),
        unrecorded=tuple(result.name for result in drifted if not result.recorded),
    )


def _other_tools(ran: "Ran") -> bool:
    """Whether it is given other tools than recorded: one that is refused, and was not, is given none."""
    return ran.otherwise_refused or any(difference.kind == "tool" for difference in ran.moved)


def _surface(value: Json, report: Report) -> frozenset[str] | None:
    """Every tool that an allowed permission exposes and its adapter declares."""
    if report.not_run:
        return None
    tooling = msgspec.convert(value, type=ContextPack).tooling_layer
    declared = {
        f"{adapter.adapter_id}.{capability}"
        for adapter in tooling.adapter_registry
        for capability in adapter.capabilities
    }
    allowed = (
        f"{permission.adapter_id}.{permission.capability}" for permission in tooling.permissions if permission.allow
    )
    return frozenset(one for one in allowed if one in declared)


def _expected(folder: str) -> frozenset[str] | None:
    """The surface that the golden folder expects; None when it says nothing of it."""
    if not os.path.isdir(folder):
        raise DocumentUnreadable("is not a folder", at=folder, hint="name the folder of the golden cases")
    if not os.path.lexists(os.path.join(folder, _SURFACE)):
        return None
    path = file_in(folder, _SURFACE)
    try:
        adapters = msgspec.convert(author_file(path).value, type=tuple[ExposedAdapter, ...])
    except msgspec.ValidationError as error:
        raise DescriptionInvalid(
            str(error), at=path, hint='write [{"adapter_id": "...", "capabilities": ["..."]}], a tool manifest'
        ) from error
    return frozenset(
        f"{adapter.adapter_id}.{capability}" for adapter in adapters for capability in adapter.capabilities
    )
