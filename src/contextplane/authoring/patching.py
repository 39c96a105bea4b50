"""The changes of an overlay, made in a pack: each at the place that it names, and none at a place that is not there."""

from typing import ClassVar, cast

import msgspec

from contextplane.authoring.keyed import id_fields, identity
from contextplane.authoring.nearest import nearest
from contextplane.authoring.origins import Origin, Origins
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.overlay import Overlay, OverlayChange
from contextplane.model.value import Value

__all__ = ["OverlayMisplaced", "in_overlay", "patch"]


class OverlayMisplaced(ContextPlaneError):
    """A change at a place that the pack does not have, or an overlay for another pack. `details.problems`: all."""

    code: ClassVar[str] = "overlay_misplaced"
    family: ClassVar[Family] = "refused"


class _Problem(Value, frozen=True):
    """Why a change cannot be made, and what to do."""

    cause: str
    cure: str


def in_overlay(overlay: Overlay, at: str) -> dict[str, object]:
    """The place in an overlay, for whoever knows its file: the reference and the JSON Pointer."""
    return {"overlay": str(overlay.ref), "pointer": at}


def patch(document: Json, overlay: Overlay, origins: Origins) -> None:
    """Make the changes in the document itself, whatever they do; what is wrong with any of them is told together."""
    meta = document.get("pack_meta") if isinstance(document, dict) else None
    named = meta.get("pack_id") if isinstance(meta, dict) else None
    if named != overlay.base_pack_id:
        raise _refusal(
            overlay, [("/base_pack_id", f"it is for {overlay.base_pack_id}, not for {named}", "check base_pack_id")]
        )
    problems = []
    for n, change in enumerate(overlay.changes):
        problem = _change(document, change, origins, Origin(overlay=str(overlay.ref), at=f"/changes/{n}"))
        if problem is not None:
            problems.append((f"/changes/{n}", f"{change.at}: {problem.cause}", problem.cure))
    if problems:
        raise _refusal(overlay, problems)


def _refusal(overlay: Overlay, problems: list[tuple[str, str, str]]) -> OverlayMisplaced:
    at, cause, cure = problems[0]
    more = f"; and {len(problems) - 1} more like it" if len(problems) > 1 else ""
    told = [{**in_overlay(overlay, place), "cause": why, "cure": hint} for place, why, hint in problems]
    return OverlayMisplaced(
        cause + more, at=f"{overlay.ref}#{at}", hint=cure, details={**in_overlay(overlay, at), "problems": told}
    )


def _change(document: Json, change: OverlayChange, origins: Origins, origin: Origin) -> _Problem | None:
    if change.remove is (change.value is not msgspec.UNSET):
        return _Problem(cause="a change has either a value or remove: true", cure="keep one of the two")
    *way, last = (step.replace("~1", "/").replace("~0", "~") for step in change.at[1:].split("/"))
    parent, name = document, ""
    for step in way:
        found = _step(parent, name, step, origins)
        if isinstance(found, _Problem):
            return found
        (parent, origins), name = found, step
    if isinstance(parent, list):
        return _set_entry(parent, (name, last), change, origins, origin)
    if isinstance(parent, dict):
        return _set_member(parent, (name, last), change, origins, origin)
    return _absent(parent, name, last)


def _step(parent: Json, name: str, step: str, origins: Origins) -> tuple[Json, Origins] | _Problem:
    if isinstance(parent, dict) and step in parent:
        return parent[step], origins.member(step)
    found = _position(parent, name, step)
    if found is None or not isinstance(parent, list):
        return _absent(parent, name, step)
    return parent[found], origins.entry(found, parent)


def _set_member(
    parent: dict[str, Json], way: tuple[str, str], change: OverlayChange, origins: Origins, origin: Origin
) -> _Problem | None:
    name, last = way
    if change.remove:
        if last not in parent:
            return _absent(parent, name, last)
        del parent[last]
        origins.set_member(last, origin)
    else:
        parent[last] = cast("Json", change.value)
        origins.set_member(last, origin.inside(["value"]))
    return None


def _set_entry(
    entries: list[Json], way: tuple[str, str], change: OverlayChange, origins: Origins, origin: Origin
) -> _Problem | None:
    name, last = way
    found = _position(entries, name, last)
    value = cast("Json", change.value)
    if change.remove:
        if found is None:
            return _absent(entries, name, last)
        origins.drop_entry(found, entries)
        del entries[found]
        return None
    given = identity(value, id_fields(name) or ())
    if given != last:
        cause = f"its value is {given[:60]!r}, not the {last[:60]!r} that the place names"
        return _Problem(cause=cause, cure="write the same in both")
    place = len(entries) if found is None else found
    origins.set_entry(place, entries, origin.inside(["value"]))
    entries[place : place + 1] = [value]
    return None


def _position(parent: Json, name: str, step: str) -> int | None:
    """Where in a list the entry of this id stands; in a plain list of texts, where the text does."""
    fields = id_fields(name) or ()
    entries = parent if isinstance(parent, list) else []
    return next((n for n, one in enumerate(entries) if identity(one, fields) == step), None)


def _absent(parent: Json, name: str, step: str) -> _Problem:
    """Nothing of that name is there: the nearest that is, or all of them."""
    known: list[str] = []
    if isinstance(parent, dict):
        known = list(parent)
    elif isinstance(parent, list):
        known = [identity(one, id_fields(name) or ())[:60] for one in parent]
    else:
        return _Problem(cause=f"{name} has no parts", cure="change it as a whole")
    cure = nearest(step[:60], known, "name one that is there")
    return _Problem(cause=f"{name or 'the pack'} has no {step[:60]!r}", cure=cure)
