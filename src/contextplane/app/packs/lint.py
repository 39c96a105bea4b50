"""Lints a pack in an author's file: reads it with its overlays, runs the gates, places the findings."""

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from contextplane.app.packs.files import official_number, read_environment_file, read_overlay_file, read_source_file
from contextplane.authoring.gates.evaluation import LEFT_TO_CASES
from contextplane.authoring.gates.table import Report, judge_pack
from contextplane.authoring.law import Finding, redact_secrets
from contextplane.authoring.source_file import NamedFile, OverlayFile, artifact_kind, require_pack
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import EnvironmentDescription
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.authoring.diff.tree import Change
    from contextplane.authoring.overlay.resolved_view import ResolvedView
    from contextplane.authoring.positions import Place
    from contextplane.authoring.version_class import Comparison
    from contextplane.model.artifact import ArtifactKind
    from contextplane.model.json.canonical import Json
    from contextplane.registry.artifacts import Candidate

__all__ = [
    "Finding",
    "LintResult",
    "PlacedChange",
    "PlacedFinding",
    "file_uri",
    "lint",
    "lint_file",
    "require_version_number",
    "sarif_log",
    "unreadable_sarif_log",
]


class PlacedFinding(Value, frozen=True):
    """A finding, the file that it is in (the pack's or an overlay's), and its place there."""

    finding: Finding
    path: str
    place: "Place"

    @property
    def where(self) -> str:
        return f"{self.path}:{self.place.line}:{self.place.column}"


class PlacedChange(Value, frozen=True):
    """A change that an overlay made, and the place of that change in its file."""

    overlay: str
    where: str
    change: "Change"


class LintResult(Value, frozen=True):
    """The report of the gates on a pack with its overlays.

    - `value`: the document that was judged.
    - `applied`: the changes that the overlays made, each with its origin.
    - `left_out`: the overlays were not applied, because the form of the pack is wrong.
    - `comparison`: of the pack itself with the version before, if one was given.
    - `catalogs`: the decision catalogs that the pack was judged together with.
    """

    pack: NamedFile
    report: Report
    value: "Json"
    placed: tuple[PlacedFinding, ...]
    applied: tuple[PlacedChange, ...] = ()
    left_out: bool = False
    comparison: "Comparison | None" = None
    kind: "ArtifactKind" = "context_pack"
    catalogs: tuple[str, ...] = ()

    @property
    def undecided(self) -> int:
        """The number of checks that could not be decided, and of changes whose effect cannot be told.

        Golden cases do not count: they are not compiled here.
        """
        findings = [placed.finding for placed in self.placed if placed.finding.severity == "unknown"]
        changes = self.comparison.undecided if self.comparison is not None else 0
        return sum(finding.code != LEFT_TO_CASES for finding in findings) + changes


def require_version_number(result: LintResult) -> None:
    """Refuse a version number that promises less change than there is.

    Where the findings refuse the pack anyway, and make the change unsafe under any number, they are enough.
    """
    comparison = result.comparison
    if comparison is not None and comparison.refusal and (result.report.passed or not comparison.unsafe):
        from contextplane.authoring.version_class import BumpTooSmall

        raise BumpTooSmall(comparison.refusal, at=result.pack.where("/pack_meta/pack_version"))


def lint_file(
    path: str,
    *,
    overlays: tuple[str, ...] = (),
    environment: str | None = None,
    against: NamedFile | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
) -> LintResult:
    """Lint the document in a file: a pack with the named files, or an overlay or a decision catalog alone."""
    description = read_environment_file(environment) if environment is not None else None
    source = read_source_file(path)
    kind = artifact_kind(source)
    if kind != "context_pack" and not overlays and not catalogs and against is None:
        return _lint_alone(source, kind, description)
    pack = require_pack(source)
    return lint(pack, tuple(map(read_overlay_file, overlays)), description, against, catalogs)


def _lint_alone(source: NamedFile, kind: "ArtifactKind", environment: EnvironmentDescription | None) -> LintResult:
    """Run the gates over a document that is no pack."""
    from contextplane.authoring.artifacts import judge

    value = source.file.value
    report = judge(kind, value, environment, identify=official_number)
    placed = tuple(_place_finding(finding, source, finding.at) for finding in report.findings)
    return LintResult(pack=source, report=report, value=value, placed=placed, kind=kind)


def lint(
    pack: NamedFile,
    overlays: tuple[OverlayFile, ...] = (),
    environment: EnvironmentDescription | None = None,
    before: NamedFile | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
) -> LintResult:
    """Run every gate over the pack with its catalogs and overlays, and compare it with the version before.

    The comparison is of the pack itself. A finding in a part that a catalog adds is placed where the pack would have
    that part.
    """
    value, names = _merge_catalogs(pack, catalogs)
    bare = judge_pack(value, environment, identify=official_number)
    comparison = None
    if before is not None:
        from contextplane.app.packs.diff import compare_with_previous

        # What an overlay removes does not make a pack safe: the version is that of the pack itself.
        comparison = compare_with_previous(before, pack, bare)
    if not overlays or bare.not_run:
        placed = tuple(_place_finding(finding, pack, finding.at) for finding in bare.findings)
        return LintResult(
            pack=pack,
            report=bare,
            value=value,
            placed=placed,
            left_out=bool(overlays),
            comparison=comparison,
            catalogs=names,
        )
    view, files = _apply_overlays(value, overlays)
    report = judge_pack(view.value, environment, identify=official_number)
    origins = [(finding, view.origins.of(finding.at)) for finding in report.findings]
    return LintResult(
        pack=pack,
        report=report,
        value=view.value,
        placed=tuple(
            _place_finding(finding, files.get(origin.overlay, pack), origin.at) for finding, origin in origins
        ),
        applied=tuple(
            PlacedChange(overlay=applied.overlay, where=files[applied.overlay].where(applied.at), change=applied.change)
            for applied in view.applied
        ),
        comparison=comparison,
        catalogs=names,
    )


def _merge_catalogs(pack: NamedFile, catalogs: "tuple[Candidate, ...]") -> "tuple[Json, tuple[str, ...]]":
    """Return the pack merged with its catalogs, and their names. A pack of a wrong form is not merged."""
    value = pack.file.value
    if not catalogs:
        return value, ()
    from contextplane.authoring.gates.schema import typed_or_problems
    from contextplane.model.context_pack import ContextPack
    from contextplane.registry.artifacts import candidate
    from contextplane.registry.merge import combine_documents, merge_inputs

    if not isinstance(typed_or_problems(value, ContextPack), ContextPack):
        return value, ()
    return combine_documents(merge_inputs(candidate(value), catalogs)), tuple(str(catalog.ref) for catalog in catalogs)


def _place_finding(finding: Finding, file: NamedFile, at: str) -> PlacedFinding:
    # The place is looked up by the whole pointer. The pointer is shown without secrets: a name may be one.
    shown = replace(finding, at=redact_secrets(finding.at, is_pointer=True))
    return PlacedFinding(finding=shown, path=file.path, place=file.place(at))


def _apply_overlays(value: "Json", overlays: tuple[OverlayFile, ...]) -> "tuple[ResolvedView, dict[str, OverlayFile]]":
    """Apply the overlays to the pack; return the view, and the overlay files by reference.

    An error gets its place in the overlay file.
    """
    from contextplane.authoring.overlay.resolved_view import resolve_view

    files = {str(overlay.overlay.ref): overlay for overlay in overlays}
    try:
        return resolve_view(value, [overlay.overlay for overlay in overlays], identify=official_number), files
    except ContextPlaneError as error:
        for row in (error.details, *_detail_rows(error, "problems"), *_detail_rows(error, "widenings")):
            file = files.get(str(row.get("overlay")))
            if file is not None:
                row["place"] = file.where(str(row["pointer"]))
        error.at = str(error.details.get("place") or error.at)
        raise


def _detail_rows(error: ContextPlaneError, name: str) -> list[dict[str, object]]:
    rows = error.details.get(name)
    return rows if isinstance(rows, list) else []


def sarif_log(result: LintResult, version: str) -> "Json":
    """Return the SARIF log of a lint; `version` is that of the program."""
    from contextplane.app.explain import load_explanations
    from contextplane.authoring.artifacts import LAWS_OF
    from contextplane.authoring.sarif import LocatedFinding, sarif

    located = [
        LocatedFinding(finding=placed.finding, uri=file_uri(placed.path), place=placed.place)
        for placed in result.placed
    ]
    cures = {code: entry.to_do for code, entry in load_explanations().laws.items()}
    return sarif(located, result.value, version, laws=LAWS_OF[result.kind], not_run=result.report.not_run, cures=cures)


def unreadable_sarif_log(error: ContextPlaneError, path: str, version: str) -> "Json":
    """Return the SARIF log of a file that could not be judged: one result, at the place of the error."""
    from contextplane.app.explain import load_explanations
    from contextplane.authoring.positions import Place
    from contextplane.authoring.sarif import unreadable_log

    line, column = (error.details.get(name) for name in ("line", "column"))
    place = Place(line=line if isinstance(line, int) else 1, column=column if isinstance(column, int) else 1)
    entry = load_explanations().errors.get(error.code)
    text = entry.means.partition("\n")[0] if entry is not None else error.message
    return unreadable_log(error, text, file_uri(path), place, version)


def file_uri(path: str) -> str:
    """Return a relative URI reference, with forward slashes; outside of the working folder a `file:` URI."""
    if path == "-":
        return "stdin"
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    if relative.split(os.sep)[0] == os.pardir:
        return "file://" + _percent_encode(absolute)
    return _percent_encode(relative)


def _percent_encode(path: str) -> str:
    from urllib.parse import quote

    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
