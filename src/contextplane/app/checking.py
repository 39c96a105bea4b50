"""Running the checklist over a change: the pack, the version before, and a folder of golden cases."""

import os

import msgspec

from contextplane.app.comparing import side
from contextplane.app.documents import DocumentUnreadable
from contextplane.app.linting import DescriptionInvalid, author_file, linted
from contextplane.authoring.author_file import AuthorFile
from contextplane.authoring.checklist import Asked, Checklist, checklist
from contextplane.authoring.comparison import Comparison, comparison
from contextplane.authoring.gates.table import Report
from contextplane.authoring.surroundings import Surroundings
from contextplane.model.canonical import Json
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.context_pack.terms import Identifier
from contextplane.model.context_pack.tooling_layer import Capability
from contextplane.model.overlay import Overlay
from contextplane.model.value import Document, Value

__all__ = ["Checked", "checked"]

_SURFACE = "tool_surface.json"


class ExposedAdapter(Document, frozen=True):
    """An entry of `tool_surface.json`, which has the form of a tool manifest."""

    adapter_id: Identifier
    capabilities: tuple[Capability, ...]


class Checked(Value, frozen=True):
    """The checklist; with what changed, where there was something to compare with."""

    checklist: Checklist
    comparison: Comparison | None


def checked(
    path: str,
    *,
    against: str | None = None,
    golden: str | None = None,
    overlays: tuple[Overlay, ...] = (),
    surroundings: Surroundings | None = None,
) -> Checked:
    """Check the pack in a file, line by line."""
    file = author_file(path)
    found = linted(file, overlays, surroundings)
    before = author_file(against) if against is not None else None
    # The version is that of the pack itself: what an overlay takes away does not make it safe.
    bare = linted(file, (), surroundings) if overlays else found
    compared = _compared(before, file, bare.report, names=(against or "", path))
    expected = _expected(golden) if golden is not None else None
    asked = Asked(
        report=found.report,
        surface=_surface(found.value, found.report),
        expected=expected,
        comparison=compared,
    )
    return Checked(checklist=checklist(asked), comparison=compared)


def _compared(old: AuthorFile | None, new: AuthorFile, report: Report, *, names: tuple[str, str]) -> Comparison | None:
    """What changed in the pack itself; nothing where the form of the new one is wrong."""
    if old is None:
        return None
    before = side(old, names[0])
    return comparison(before, side(new, names[1]), report) if not report.not_run else None


def _surface(value: Json, report: Report) -> frozenset[str] | None:
    """Every tool that an allowed permission exposes and its adapter declares."""
    if report.not_run:
        return None
    tooling = msgspec.convert(value, type=ContextPack).tooling_layer
    declared = {f"{one.adapter_id}.{capability}" for one in tooling.adapter_registry for capability in one.capabilities}
    allowed = (f"{one.adapter_id}.{one.capability}" for one in tooling.permissions if one.allow)
    return frozenset(one for one in allowed if one in declared)


def _expected(folder: str) -> frozenset[str] | None:
    """The surface that the golden folder expects; None when it says nothing of it."""
    if not os.path.isdir(folder):
        raise DocumentUnreadable("is not a folder", at=folder, hint="name the folder of the golden cases")
    path = os.path.join(folder, _SURFACE)
    if not os.path.lexists(path):
        return None
    try:
        adapters = msgspec.convert(author_file(path).value, type=tuple[ExposedAdapter, ...])
    except msgspec.ValidationError as error:
        raise DescriptionInvalid(
            str(error), at=path, hint='write [{"adapter_id": "...", "capabilities": ["..."]}], a tool manifest'
        ) from error
    return frozenset(f"{one.adapter_id}.{capability}" for one in adapters for capability in one.capabilities)
