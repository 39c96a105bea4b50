"""Makes the source of a compile: from an author's file that passes every gate, or from the registry.

It counts tokens with the counter asked for, else with the pack's, else with the default.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from contextplane.app.packs.files import read_overlay_file, read_pack_file
from contextplane.app.packs.lint import LintResult, lint
from contextplane.app.token_counters import choose_counter
from contextplane.authoring.source_file import NamedFile, OverlayFile
from contextplane.compiler.case import CompileCase, read_case
from contextplane.compiler.scope import other_version_error
from contextplane.compiler.source import PackSource, place_errors
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistrySession
    from contextplane.model.json.canonical import Json
    from contextplane.registry.artifacts import Candidate

__all__ = [
    "CompileCase",
    "PackNotSound",
    "PackSource",
    "published_pack",
    "read_placed_case",
    "refuse_other_version",
    "source_from_file",
    "source_from_lint",
    "source_from_registry",
]


class PackNotSound(ContextPlaneError):
    """A pack that does not pass the validation gates: nothing is compiled from it."""

    code: ClassVar[str] = "compile_pack_not_sound"
    family: ClassVar[Family] = "refused"


def source_from_file(path: str, overlays: tuple[str, ...] = (), catalogs: "tuple[Candidate, ...]" = ()) -> PackSource:
    """Read the pack in a file, with its catalogs and overlays. It is refused unless every gate passes."""
    files = tuple(read_overlay_file(overlay) for overlay in overlays)
    return source_from_lint(lint(read_pack_file(path), files, catalogs=catalogs), files, catalogs)


def source_from_lint(
    result: LintResult, overlays: Sequence[OverlayFile] = (), catalogs: "Sequence[Candidate]" = ()
) -> PackSource:
    """Make the source of a linted pack. The order in which overlays and catalogs are named is irrelevant."""
    _reject_unsound(result)
    pack = msgspec.convert(result.value, type=ContextPack)
    own = (Lineage(ref=str(pack.ref), digest=str(Digest.of(result.pack.file.canonical))),)
    # The order in which they are applied.
    order = sorted(
        overlays, key=lambda overlay: (overlay.overlay.order, overlay.overlay.overlay_id, overlay.overlay.ref.release)
    )
    applied = tuple(
        Lineage(ref=str(overlay.overlay.ref), digest=str(Digest.of(overlay.file.canonical))) for overlay in order
    )
    return PackSource(pack, (*own, *_lineage(catalogs), *applied), result.pack.where, choose_counter(pack))


def _lineage(catalogs: "Sequence[Candidate]") -> tuple[Lineage, ...]:
    if not catalogs:
        return ()
    from contextplane.registry.artifacts import lineage_of

    return lineage_of(catalogs)


def _reject_unsound(result: LintResult) -> None:
    """Refuse a pack that does not pass the gates, with the first error."""
    errors = [finding for finding in result.placed if finding.finding.severity == "error"]
    if result.report.passed:
        return
    first = errors[0]
    raise PackNotSound(
        f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}; the first: {first.finding.cause} "
        f"({first.finding.gate}/{first.finding.code})",
        at=first.where,
        hint=f"'ctx lint {result.pack.path}' lists them all",
        details={
            "findings": [
                {"at": error.where, "code": error.finding.code, "gate": error.finding.gate} for error in errors
            ]
        },
    )


def read_placed_case(file: NamedFile, value: "Json") -> CompileCase:
    """Read a compile case from a value; its errors are placed in the file that the value is from."""
    with place_errors(file):
        return read_case(value)


def refuse_other_version(file: NamedFile, ref: PackRef, case: CompileCase, chosen_by: str) -> None:
    """Refuse a request that names another version of the pack than the one that is compiled."""
    error = other_version_error(str(ref), case.request.context_pack_refs, chosen_by)
    if error is not None:
        with place_errors(file):
            raise error


def published_pack(session: "RegistrySession", ref: PackRef) -> ContextPack:
    """Read the pack of a version from the registry, before it is verified and resolved."""
    from contextplane.app.registry.view import read_version

    return msgspec.convert(read_version(session, str(ref)).file.value, type=ContextPack)


def source_from_registry(
    session: "RegistrySession", ref: PackRef, case: CompileCase, environment: str, *, max_age: int | None
) -> PackSource:
    """Resolve a published version, with the overlays pinned in an environment, as a run there gets it."""
    # The registry is loaded only to compile a published version.
    from contextplane.app.registry.mirror import resolve_published
    from contextplane.registry.resolution import ResolveRequest
    from contextplane.trust.compatibility import RuntimeCapabilities

    # Sorted by name, as with a file: the order in which a request names its catalogs changes nothing.
    others = sorted(
        (PackRef.parse(name) for name in case.request.context_pack_refs if name != str(ref)),
        key=str,
    )
    request = ResolveRequest(
        refs=(ref, *others), tenant=case.run_context.tenant_id, environment=environment, purpose="new_traffic"
    )
    resolution = resolve_published(
        session, request, RuntimeCapabilities(ontologies=case.environment.ontologies), max_age=max_age
    )
    lineage = tuple(Lineage(ref=str(document.ref), digest=str(document.digest)) for document in resolution.lineage)
    return PackSource(resolution.view, lineage, lambda at: f"{ref}#{at}", choose_counter(resolution.view))
