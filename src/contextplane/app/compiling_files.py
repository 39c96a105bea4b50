"""Compiling from the file of an author: every gate must pass first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from contextplane.app.authored import OverlayFile, overlay_from, pack_from
from contextplane.app.compiling import PackSource, lineage_of
from contextplane.app.linting import Linted, linted
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_ledger import Lineage
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.ids import Digest

if TYPE_CHECKING:
    from contextplane.registry.artifacts import Candidate

__all__ = ["PackNotSound", "from_file", "from_linted"]


class PackNotSound(ContextPlaneError):
    """A pack that does not pass the validation gates: nothing is compiled from it."""

    code: ClassVar[str] = "compile_pack_not_sound"
    family: ClassVar[Family] = "refused"


def from_file(path: str, overlays: tuple[str, ...] = (), catalogs: "tuple[Candidate, ...]" = ()) -> PackSource:
    """The pack in a file, with its catalogs and overlays. One that does not pass every gate is refused."""
    files = tuple(overlay_from(one) for one in overlays)
    return from_linted(linted(pack_from(path), files, catalogs=catalogs), files, catalogs)


def from_linted(
    found: Linted, overlays: Sequence[OverlayFile] = (), catalogs: "Sequence[Candidate]" = ()
) -> PackSource:
    """The same of a pack that was judged with these overlays and catalogs. In which order they are named is nothing."""
    _refuse_unsound(found)
    pack = msgspec.convert(found.value, type=ContextPack)
    own = (Lineage(ref=str(pack.ref), digest=str(Digest.of(found.pack.file.canonical))),)
    # The order in which they are applied.
    order = sorted(overlays, key=lambda one: (one.overlay.order, one.overlay.overlay_id, one.overlay.ref.release))
    applied = tuple(Lineage(ref=str(one.overlay.ref), digest=str(Digest.of(one.file.canonical))) for one in order)
    return PackSource(pack, (*own, *lineage_of(catalogs), *applied), found.pack.where)


def _refuse_unsound(found: Linted) -> None:
    """Refuse a pack that the gates refuse, with the first of their findings."""
    errors = [one for one in found.placed if one.finding.severity == "error"]
    if found.report.passed:
        return
    first = errors[0]
    raise PackNotSound(
        f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}; the first: {first.finding.cause} "
        f"({first.finding.gate}/{first.finding.code})",
        at=first.where,
        hint=f"'ctx lint {found.pack.path}' lists them all",
        details={"findings": [{"at": one.where, "code": one.finding.code, "gate": one.finding.gate} for one in errors]},
    )
