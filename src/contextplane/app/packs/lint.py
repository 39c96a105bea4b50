"""Judging a pack that an author has in a file: what is read, what is judged, and where what was found stands."""

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from contextplane.app.packs.files import as_pack, authored, kind_of, official_number, overlay_from, surroundings_from
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Finding, Law, without_secrets
from contextplane.authoring.gates.table import Report, judged
from contextplane.authoring.source_file import Authored, OverlayFile
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.authoring.diff.change import Change
    from contextplane.authoring.overlay.apply import ResolvedView
    from contextplane.authoring.positions import Place
    from contextplane.authoring.version_class import Comparison
    from contextplane.model.artifact import ArtifactKind
    from contextplane.model.json.canonical import Json
    from contextplane.registry.artifacts import Candidate

__all__ = ["LawUnknown", "Linted", "PlacedChange", "PlacedFinding", "law_behind", "lint", "linted"]


class LawUnknown(ContextPlaneError):
    """A name that neither a gate, nor a law, nor an error has."""

    code: ClassVar[str] = "law_unknown"
    family: ClassVar[Family] = "not_found"


class PlacedFinding(Value, frozen=True):
    """A finding, the file that it is in, which may be an overlay's, and the place there."""

    finding: Finding
    path: str
    place: "Place"

    @property
    def where(self) -> str:
        return f"{self.path}:{self.place.line}:{self.place.column}"


class PlacedChange(Value, frozen=True):
    """What an overlay changed, and the place in its file that says so."""

    overlay: str
    where: str
    change: "Change"


class Linted(Value, frozen=True):
    """What the gates say of a pack with its overlays; `applied` is what those changed, each with its origin.

    `value` is what was judged. `left_out`: the overlays were not applied, because the form of the pack is wrong.
    `comparison` is of the pack itself with the version before, where one was given; `catalogs` are the decision
    catalogs that it was judged together with.
    """

    pack: Authored
    report: Report
    value: "Json"
    placed: tuple[PlacedFinding, ...]
    applied: tuple[PlacedChange, ...] = ()
    left_out: bool = False
    comparison: "Comparison | None" = None
    kind: "ArtifactKind" = "context_pack"
    catalogs: tuple[str, ...] = ()


def lint(
    path: str,
    *,
    overlays: tuple[str, ...] = (),
    environment: str | None = None,
    against: Authored | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
) -> Linted:
    """Judge the document in a file, with everything beside it that is given by its name.

    It is a pack, or for itself an overlay or a decision catalog.
    """
    surroundings = surroundings_from(environment) if environment is not None else None
    source = authored(path)
    kind = kind_of(source)
    if kind != "context_pack" and not overlays and not catalogs and against is None:
        return _judged_alone(source, kind, surroundings)
    pack = as_pack(source)
    return linted(pack, tuple(map(overlay_from, overlays)), surroundings, against, catalogs)


def _judged_alone(found: Authored, kind: "ArtifactKind", surroundings: Surroundings | None) -> Linted:
    """What the gates say of a document that is no pack."""
    from contextplane.authoring.artifacts import judge

    value = found.file.value
    report = judge(kind, value, surroundings, identify=official_number)
    placed = tuple(_placed(finding, found, finding.at) for finding in report.findings)
    return Linted(pack=found, report=report, value=value, placed=placed, kind=kind)


def linted(
    pack: Authored,
    overlays: tuple[OverlayFile, ...] = (),
    surroundings: Surroundings | None = None,
    before: Authored | None = None,
    catalogs: "tuple[Candidate, ...]" = (),
) -> Linted:
    """Run every gate over the pack with its catalogs and overlays, and compare the pack itself with the version before.

    What is found in a part that a catalog adds is placed where the pack would have it.
    """
    value, names = _together(pack, catalogs)
    bare = judged(value, surroundings, identify=official_number)
    compared = None
    if before is not None:
        from contextplane.app.packs.diff import compared_with

        # What an overlay takes away does not make a pack safe: the version is that of the pack itself.
        compared = compared_with(before, pack, bare)
    if not overlays or bare.not_run:
        placed = tuple(_placed(finding, pack, finding.at) for finding in bare.findings)
        return Linted(
            pack=pack,
            report=bare,
            value=value,
            placed=placed,
            left_out=bool(overlays),
            comparison=compared,
            catalogs=names,
        )
    view, files = _resolved(value, overlays)
    report = judged(view.value, surroundings, identify=official_number)
    origins = [(finding, view.origins.of(finding.at)) for finding in report.findings]
    applied = [(files[overlay.overlay], overlay) for overlay in view.applied]
    return Linted(
        pack=pack,
        report=report,
        value=view.value,
        placed=tuple(_placed(finding, files.get(origin.overlay, pack), origin.at) for finding, origin in origins),
        applied=tuple(
            PlacedChange(overlay=overlay.overlay, where=file.where(overlay.at), change=overlay.change)
            for file, overlay in applied
        ),
        comparison=compared,
        catalogs=names,
    )


def _together(pack: Authored, catalogs: "tuple[Candidate, ...]") -> "tuple[Json, tuple[str, ...]]":
    """What is judged, and the catalogs in it. To a pack whose form is wrong nothing is added."""
    value = pack.file.value
    if not catalogs:
        return value, ()
    from contextplane.authoring.gates.schema import typed_or_problems
    from contextplane.model.context_pack import ContextPack
    from contextplane.registry.artifacts import candidate
    from contextplane.registry.merge import given, put_together

    if not isinstance(typed_or_problems(value, ContextPack), ContextPack):
        return value, ()
    return put_together(given(candidate(value), catalogs)), tuple(str(catalog.ref) for catalog in catalogs)


def _placed(finding: Finding, file: Authored, at: str) -> PlacedFinding:
    # The place is found by the whole pointer, which is told without a secret that somebody made a name of.
    told = replace(finding, at=without_secrets(finding.at, is_pointer=True))
    return PlacedFinding(finding=told, path=file.path, place=file.place(at))


def _resolved(value: "Json", overlays: tuple[OverlayFile, ...]) -> "tuple[ResolvedView, dict[str, OverlayFile]]":
    """The pack with its overlays, and each overlay's file by its reference. A refusal is given its place there."""
    from contextplane.authoring.overlay.apply import resolved_view

    files = {str(overlay.overlay.ref): overlay for overlay in overlays}
    try:
        return resolved_view(value, [overlay.overlay for overlay in overlays], identify=official_number), files
    except ContextPlaneError as error:
        for told in (error.details, *_listed(error, "problems"), *_listed(error, "widenings")):
            file = files.get(str(told.get("overlay")))
            if file is not None:
                told["place"] = file.where(str(told["pointer"]))
        error.at = str(error.details.get("place") or error.at)
        raise


def _listed(error: ContextPlaneError, name: str) -> list[dict[str, object]]:
    listed = error.details.get(name)
    return listed if isinstance(listed, list) else []


def law_behind(code: str) -> Law[Any]:
    """The law that a finding of this code breaks."""
    from contextplane.authoring.artifacts import LAWS_OF

    laws = {law.code: law for of_kind in LAWS_OF.values() for law in of_kind}
    if code not in laws:
        from contextplane.authoring.suggest import nearest

        raise LawUnknown(
            f"no law has the code {code[:60]!r}", hint=nearest(code, laws, "see the codes that lint prints")
        )
    return laws[code]
