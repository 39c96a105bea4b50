"""Applying overlays to a pack. They may constrain; whatever widens is refused, and the widening named.

The changes of an overlay, made in a pack: each at the place that it names, and none at a place that is not there.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import ClassVar, cast

import msgspec

from contextplane.authoring.diff.change import Change, Effect
from contextplane.authoring.diff.tree import id_fields, identity
from contextplane.authoring.diff.walk import compared
from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.overlay.origins import Origin, Origins
from contextplane.authoring.suggest import nearest
from contextplane.authoring.texts import Identify, Texts
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay, OverlayChange
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "Applied",
    "OverlayMalformed",
    "OverlayMisplaced",
    "OverlayUnsafe",
    "OverlayWidens",
    "OverlaysMixed",
    "ResolvedView",
    "in_overlay",
    "patch",
    "patched",
    "resolved_view",
    "widenings",
]


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
        problem = _step(parent, name, step, origins)
        if isinstance(problem, _Problem):
            return problem
        (parent, origins), name = problem, step
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


_ALLOWED = frozenset({"narrows", "locale", "endpoint", "removes"})
"""What an overlay is for: tighter thresholds and targets, fewer capabilities, another address, another locale."""

_WHY: dict[Effect, str] = {
    "metadata": "does not constrain",
    "wording": "says something else to the model",
    "reads_more": "reads more",
    "changes": "changes behaviour",
    "widens": "allows more",
}
_NAMED = 5


class OverlayWidens(ContextPlaneError):
    """An overlay that would let a run do more, or something else. `details.widenings` names each change."""

    code: ClassVar[str] = "overlay_widens"
    family: ClassVar[Family] = "refused"


class OverlayUnsafe(ContextPlaneError):
    """An overlay that holds a secret, personal data, or anything else that belongs in no such document."""

    code: ClassVar[str] = "overlay_unsafe"
    family: ClassVar[Family] = "refused"


class OverlayMalformed(ContextPlaneError):
    """An overlay with a value that has not the form of its place. `details.problems`: every such value."""

    code: ClassVar[str] = "overlay_malformed"
    family: ClassVar[Family] = "refused"


class OverlaysMixed(ContextPlaneError):
    """Overlays that do not belong together: of two environments, or one overlay twice."""

    code: ClassVar[str] = "overlays_mixed"
    family: ClassVar[Family] = "refused"


class Applied(Value, frozen=True):
    """One change that took effect, and the overlay that it comes from; `at` is the JSON Pointer there."""

    overlay: str
    at: str
    change: Change


class ResolvedView(Value, frozen=True):
    """A pack with its overlays applied: the document, where its parts come from, and everything that was changed."""

    value: Json
    origins: Origins
    applied: tuple[Applied, ...] = ()


def resolved_view(base: Json, overlays: Iterable[Overlay], *, identify: Identify | None = None) -> ResolvedView:
    """Apply overlays of one environment in their order. Each is judged against what stood before it."""
    # By the version as well, so that the same overlays are told the same whatever order they were given in.
    ordered = sorted(overlays, key=lambda overlay: (overlay.order, overlay.overlay_id, overlay.ref.release))
    _refuse_mixed(ordered)
    view, origins = base, Origins(Origin(overlay="", at=""))
    applied: list[Applied] = []
    for overlay in ordered:
        _refuse_unsafe(overlay, identify)
        after = copy.deepcopy(view)
        patch(after, overlay, origins)
        _refuse_malformed(overlay, after, origins)
        changes = compared(view, after)
        _refuse_widening(overlay, changes)
        ref = str(overlay.ref)
        applied += [Applied(overlay=ref, at=_behind(overlay, change), change=change) for change in changes]
        view = after
    return ResolvedView(value=view, origins=origins, applied=tuple(applied))


def patched(value: Json, overlay: Overlay) -> Json:
    """The document after the changes of an overlay, whatever they do; it is not judged here."""
    after = copy.deepcopy(value)
    patch(after, overlay, Origins(Origin(overlay="", at="")))
    return after


def _refuse_mixed(overlays: list[Overlay]) -> None:
    """One environment, and each overlay once: of two versions of one, nobody could say which holds."""
    seen: dict[str, Overlay] = {}
    for overlay in overlays:
        first = overlays[0]
        if overlay.environment != first.environment:
            raise OverlaysMixed(
                f"{overlay.ref} is for {overlay.environment}, and {first.ref} for {first.environment}",
                at=f"{overlay.ref}#/environment",
                hint="apply the overlays of one environment at a time",
                details=in_overlay(overlay, "/environment"),
            )
        other = seen.get(overlay.overlay_id)
        if other is not None:
            same = "given twice" if other.ref == overlay.ref else f"given as {other.ref} as well"
            raise OverlaysMixed(
                f"{overlay.ref} is {same}",
                at=f"{overlay.ref}#/overlay_id",
                hint="apply one version of it, once",
                details=in_overlay(overlay, "/overlay_id"),
            )
        seen[overlay.overlay_id] = overlay


def _refuse_unsafe(overlay: Overlay, identify: Identify | None) -> None:
    """What may stand in no text of a pack may stand in no overlay either, its reasons included."""
    document = Texts(cast("Json", msgspec.to_builtins(overlay)), identify=identify)
    for law in (*security.TEXT_LAWS, *misplaced_content.TEXT_LAWS):
        for finding in law.findings(document):
            if finding.severity == "error":
                raise OverlayUnsafe(
                    f"{finding.cause} ({finding.code})",
                    at=f"{overlay.ref}#{finding.at}",
                    hint=finding.cure,
                    details=in_overlay(overlay, finding.at),
                )


def _refuse_malformed(overlay: Overlay, after: Json, origins: Origins) -> None:
    """A value of the wrong form would be told as a change of behaviour, which it is not: it cannot be."""
    form = typed_or_problems(after, ContextPack)
    placed = [(finding, origins.of(finding.at)) for finding in form] if isinstance(form, tuple) else []
    ours = [(finding, origin) for finding, origin in placed if origin.overlay == str(overlay.ref)]
    # What is missing because it was taken out is told as what it does.
    given = [(finding, origin) for finding, origin in ours if origin.at.split("/")[3:4] == ["value"]]
    if given:
        (first, origin), more = given[0], len(given) - 1
        raise OverlayMalformed(
            f"{first.at}: {first.cause}" + (f"; and {more} more like it" if more else ""),
            at=f"{overlay.ref}#{origin.at}",
            hint=first.cure,
            details={
                **in_overlay(overlay, origin.at),
                "problems": [
                    {**in_overlay(overlay, origin.at), "cause": f"{finding.at}: {finding.cause}", "cure": finding.cure}
                    for finding, origin in given
                ],
            },
        )


def widenings(changes: Iterable[Change]) -> Iterator[tuple[Change, str]]:
    """Every change that no overlay may make, with the words for it."""
    for change in changes:
        if change.effect not in _ALLOWED:
            yield change, f"{change.words} ({_WHY[change.effect]})"


def _refuse_widening(overlay: Overlay, changes: Iterable[Change]) -> None:
    refused = list(widenings(changes))
    if refused:
        at = _behind(overlay, refused[0][0])
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise OverlayWidens(
            "; ".join(words for _, words in refused[:_NAMED]) + more,
            at=f"{overlay.ref}#{at}",
            hint="an overlay can only constrain: change the pack itself, in a new version",
            details={
                **in_overlay(overlay, at),
                "widenings": [
                    {
                        **in_overlay(overlay, _behind(overlay, change)),
                        "at": change.at,
                        "effect": change.effect,
                        "words": change.words,
                    }
                    for change, _ in refused
                ],
            },
        )


def _behind(overlay: Overlay, change: Change) -> str:
    """The last change of the overlay that is at this place, around it or in it, as a JSON Pointer into the overlay."""
    touching = [n for n, overlay_change in enumerate(overlay.changes) if _meet(overlay_change.at, change.at)]
    exact = [n for n in touching if overlay.changes[n].at.rpartition("/")[2] in change.words.split()]
    return f"/changes/{(exact or touching or [0])[-1]}"


def _meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
