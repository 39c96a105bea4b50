"""Compiling from the file of an author: every gate must pass first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from contextplane.app.packs.files import overlay_from, pack_from
from contextplane.app.packs.lint import Linted, linted
from contextplane.authoring.source_file import OverlayFile
from contextplane.compiler.case import CompileCase
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistryDesk
    from contextplane.registry.artifacts import Candidate

__all__ = ["PackNotSound", "from_file", "from_linted", "from_registry"]


class PackNotSound(ContextPlaneError):
    """A pack that does not pass the validation gates: nothing is compiled from it."""

    code: ClassVar[str] = "compile_pack_not_sound"
    family: ClassVar[Family] = "refused"


def from_file(path: str, overlays: tuple[str, ...] = (), catalogs: "tuple[Candidate, ...]" = ()) -> PackSource:
    """The pack in a file, with its catalogs and overlays. One that does not pass every gate is refused."""
    files = tuple(overlay_from(overlay) for overlay in overlays)
    return from_linted(linted(pack_from(path), files, catalogs=catalogs), files, catalogs)


def from_linted(
    found: Linted, overlays: Sequence[OverlayFile] = (), catalogs: "Sequence[Candidate]" = ()
) -> PackSource:
    """The same of a pack that was judged with these overlays and catalogs. In which order they are named is nothing."""
    _refuse_unsound(found)
    pack = msgspec.convert(found.value, type=ContextPack)
    own = (Lineage(ref=str(pack.ref), digest=str(Digest.of(found.pack.file.canonical))),)
    # The order in which they are applied.
    order = sorted(
        overlays, key=lambda overlay: (overlay.overlay.order, overlay.overlay.overlay_id, overlay.overlay.ref.release)
    )
    applied = tuple(
        Lineage(ref=str(overlay.overlay.ref), digest=str(Digest.of(overlay.file.canonical))) for overlay in order
    )
    return PackSource(pack, (*own, *_lineage(catalogs), *applied), found.pack.where)


def _lineage(catalogs: "Sequence[Candidate]") -> tuple[Lineage, ...]:
    if not catalogs:
        return ()
    from contextplane.registry.artifacts import lineage_of

    return lineage_of(catalogs)


def _refuse_unsound(found: Linted) -> None:
    """Refuse a pack that the gates refuse, with the first of their findings."""
    errors = [finding for finding in found.placed if finding.finding.severity == "error"]
    if found.report.passed:
        return
    first = errors[0]
    raise PackNotSound(
        f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}; the first: {first.finding.cause} "
        f"({first.finding.gate}/{first.finding.code})",
        at=first.where,
        hint=f"'ctx lint {found.pack.path}' lists them all",
        details={
            "findings": [
                {"at": error.where, "code": error.finding.code, "gate": error.finding.gate} for error in errors
            ]
        },
    )


def from_registry(
    desk: "RegistryDesk", ref: PackRef, case: CompileCase, environment: str, *, max_age: int | None
) -> PackSource:
    """A published version, verified, with what is pinned in an environment, as a run there would be given it."""
    # Only who compiles a published version loads the registry.
    from contextplane.app.registry.resolve import resolved
    from contextplane.registry.resolution import Asked
    from contextplane.trust.compatibility import Present

    # In the order of their names, as with a file: in which order a request names its catalogs changes nothing.
    others = sorted(
        (
            PackRef.parse(context_pack_ref)
            for context_pack_ref in case.request.context_pack_refs
            if context_pack_ref != str(ref)
        ),
        key=str,
    )
    asked = Asked(
        refs=(ref, *others), tenant=case.run_context.tenant_id, environment=environment, purpose="new_traffic"
    )
    found = resolved(desk, asked, Present(ontologies=case.environment.ontologies), max_age=max_age)
    lineage = tuple(Lineage(ref=str(one.ref), digest=str(one.digest)) for one in found.lineage)
    return PackSource(found.view, lineage, lambda at: f"{ref}#{at}")
