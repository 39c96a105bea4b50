"""Applying overlays to a pack. They may constrain; whatever widens is refused, and the widening named."""

import copy
from collections.abc import Iterable
from typing import ClassVar, cast

import msgspec

from contextplane.authoring.change import Change, Effect
from contextplane.authoring.compare import compared
from contextplane.authoring.gates import belonging, security
from contextplane.authoring.keyed import id_fields, identity
from contextplane.authoring.texts import Identify, Texts
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.overlay import Overlay, OverlayChange
from contextplane.model.value import Value

__all__ = ["Applied", "OverlayMisplaced", "OverlayUnsafe", "OverlayWidens", "ResolvedView", "patched", "resolved_view"]

_ALLOWED = frozenset({"narrows", "locale", "endpoint", "removes"})
"""What an overlay is for: tighter thresholds and targets, fewer capabilities, another address, another locale."""

_WHY: dict[Effect, str] = {
    "metadata": "does not constrain",
    "wording": "says something else to the model",
    "reads_more": "reads more",
    "changes": "changes behaviour",
    "widens": "allows more",
}


class OverlayWidens(ContextPlaneError):
    """An overlay that would let a run do more, or something else. `details.widenings` names each change."""

    code: ClassVar[str] = "overlay_widens"
    family: ClassVar[Family] = "refused"


class OverlayUnsafe(ContextPlaneError):
    """An overlay that holds a secret, personal data, or anything else that belongs in no such document."""

    code: ClassVar[str] = "overlay_unsafe"
    family: ClassVar[Family] = "refused"


class OverlayMisplaced(ContextPlaneError):
    """A change at a place that the pack does not have, or an overlay for another pack."""

    code: ClassVar[str] = "overlay_misplaced"
    family: ClassVar[Family] = "refused"


class Applied(Value, frozen=True):
    """One change that took effect, and the overlay that it comes from."""

    overlay: str
    change: Change


class ResolvedView(Value, frozen=True):
    """A pack with its overlays applied: the document, and the origin of everything that is not in the base."""

    value: Json
    applied: tuple[Applied, ...] = ()


def resolved_view(base: Json, overlays: Iterable[Overlay], *, identify: Identify | None = None) -> ResolvedView:
    """Apply overlays in their order. Each is judged against what stood before it."""
    view = base
    applied: list[Applied] = []
    for overlay in sorted(overlays, key=lambda one: (one.order, one.overlay_id)):
        _refuse_unsafe(overlay, identify)
        after = patched(view, overlay)
        changes = compared(view, after)
        _refuse_widening(overlay, changes)
        applied += [Applied(overlay=str(overlay.ref), change=change) for change in changes]
        view = after
    return ResolvedView(value=view, applied=tuple(applied))


def _refuse_unsafe(overlay: Overlay, identify: Identify | None) -> None:
    """What may stand in no text of a pack may stand in no overlay either, its reasons included."""
    document = Texts(cast("Json", msgspec.to_builtins(overlay)), identify=identify)
    for law in (*security.TEXT_LAWS, *belonging.TEXT_LAWS):
        for found in law.findings(document):
            if found.severity == "error":
                raise OverlayUnsafe(f"{found.cause} ({found.code})", at=f"{overlay.ref}#{found.at}", hint=found.cure)


def _refuse_widening(overlay: Overlay, changes: Iterable[Change]) -> None:
    refused = [change for change in changes if change.effect not in _ALLOWED]
    if refused:
        raise OverlayWidens(
            "; ".join(f"{change.words} ({_WHY[change.effect]})" for change in refused[:5]),
            at=f"{overlay.ref}{refused[0].at}",
            hint="an overlay can only constrain: change the pack itself, in a new version",
            details={"widenings": [{"at": one.at, "effect": one.effect, "words": one.words} for one in refused]},
        )


def patched(value: Json, overlay: Overlay) -> Json:
    """The document after the changes of an overlay, whatever they do; it is not judged here."""
    after = copy.deepcopy(value)
    pack_id = after.get("pack_meta", {}) if isinstance(after, dict) else {}
    named = pack_id.get("pack_id") if isinstance(pack_id, dict) else None
    if named != overlay.base_pack_id:
        raise OverlayMisplaced(
            f"it is for {overlay.base_pack_id}, not for {named}", at=str(overlay.ref), hint="check base_pack_id"
        )
    for n, change in enumerate(overlay.changes):
        try:
            _change(after, change)
        except OverlayMisplaced as error:
            raise error.under(f"{overlay.ref}#/changes/{n}: ") from None
    return after


def _change(document: Json, change: OverlayChange) -> None:
    if change.remove is (change.value is not msgspec.UNSET):
        raise OverlayMisplaced("a change has either a value or remove: true", at=change.at)
    *way, last = (step.replace("~1", "/").replace("~0", "~") for step in change.at[1:].split("/"))
    parent, name = document, ""
    for step in way:
        parent, name = _step(parent, name, step, change.at), step
    _set(parent, name, last, change)


def _step(parent: Json, name: str, step: str, at: str) -> Json:
    if isinstance(parent, dict) and step in parent:
        return parent[step]
    found = _position(parent, name, step)
    if found is None or not isinstance(parent, list):
        raise OverlayMisplaced(f"the pack has no {step!r} there", at=at, hint="an overlay changes what is there")
    return parent[found]


def _set(parent: Json, name: str, last: str, change: OverlayChange) -> None:
    """Put the value in its place, or take away what stands there."""
    if isinstance(parent, list):
        _set_entry(parent, name, last, change)
    elif not isinstance(parent, dict) or (change.remove and last not in parent):
        raise OverlayMisplaced(f"the pack has no {last!r} there", at=change.at)
    elif change.remove:
        del parent[last]
    else:
        parent[last] = cast("Json", change.value)


def _set_entry(entries: list[Json], name: str, last: str, change: OverlayChange) -> None:
    found = _position(entries, name, last)
    value = cast("Json", change.value)
    if change.remove:
        if found is None:
            raise OverlayMisplaced(f"the pack has no {last!r} there", at=change.at)
        del entries[found]
    elif identity(value, id_fields(name) or ()) != last:
        raise OverlayMisplaced(f"the value is not the {last!r} that its place names", at=change.at)
    elif found is None:
        entries.append(value)
    else:
        entries[found] = value


def _position(parent: Json, name: str, step: str) -> int | None:
    """Where in a list the entry of this id stands; in a plain list of texts, where the text does."""
    fields = id_fields(name) or ()
    entries = parent if isinstance(parent, list) else []
    return next((n for n, one in enumerate(entries) if identity(one, fields) == step), None)
