"""The resolved view: a pack with its overlays applied.

Overlays may only constrain: a widening is refused, and the error names it. A change is applied at the place that it
names; a place that is not in the pack is refused.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, cast

import msgspec

from contextplane.authoring.diff.tree import Change, Effect, id_fields, identity
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.texts import DocumentTexts, Identify
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay, OverlayChange
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.suggestion import did_you_mean
from contextplane.model.value import Value

__all__ = [
    "AppliedChange",
    "Origin",
    "Origins",
    "OverlayMalformed",
    "OverlayMisplaced",
    "OverlayUnsafe",
    "OverlayWidens",
    "OverlaysMixed",
    "ResolvedView",
    "apply_changes",
    "overlay_place",
    "patched_copy",
    "resolve_view",
    "widenings",
]

_ALLOWED = frozenset({"narrows", "locale", "endpoint", "removes"})
"""The effects that an overlay may have: tighter bounds, fewer capabilities, another address or locale."""

_WHY: dict[Effect, str] = {
    "metadata": "does not constrain",
    "wording": "says something else to the model",
    "reads_more": "reads more",
    "changes": "changes behaviour",
    "widens": "allows more",
}
_NAMED = 5


class OverlayMisplaced(ContextPlaneError):
    """A change at a place that the pack has not, or an overlay for another pack. `details.problems`: all."""

    code: ClassVar[str] = "overlay_misplaced"
    family: ClassVar[Family] = "refused"


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


class Origin(Value, frozen=True):
    """The document that a part comes from, and its JSON Pointer there. `overlay` is "" for the pack."""

    overlay: str
    at: str

    def inside(self, tokens: Sequence[str | int]) -> "Origin":
        return Origin(overlay=self.overlay, at=self.at + pointer(tokens))


class Origins:
    """The origin of one part, and of those parts inside it that come from elsewhere.

    It is changed along with the document: removing an entry of a list moves all that come after it.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parts: dict[str, Origins] | list[Origins] | None = None

    def of(self, at: str) -> Origin:
        """Return the origin of the part with this JSON Pointer; for a missing part, the one it would have."""
        _, _, path = at.partition("/")
        step, slash, remainder = path.partition("/")
        name = step.replace("~1", "/").replace("~0", "~")
        part = self._part(name) if at else None
        return (
            Origin(overlay=self._origin.overlay, at=self._origin.at + at)
            if part is None
            else part.of(slash + remainder)
        )

    def member(self, key: str) -> "Origins":
        """Return the origins of a member of an object, which are tracked from here on."""
        parts = self._parts if isinstance(self._parts, dict) else {}
        self._parts = parts
        return parts.setdefault(key, Origins(self._origin.inside([key])))

    def entry(self, position: int, entries: Sequence[Json]) -> "Origins":
        """Return the origins of an entry of a list, which are tracked from here on."""
        return self._entry_origins(entries)[position]

    def set_member(self, key: str, origin: Origin) -> None:
        """Set the origin of a member that is replaced, added or removed."""
        self.member(key)
        if isinstance(self._parts, dict):
            self._parts[key] = Origins(origin)

    def set_entry(self, position: int, entries: Sequence[Json], origin: Origin) -> None:
        """Set the origin of an entry that replaces another or is appended."""
        parts = self._entry_origins(entries)
        parts[position : position + 1] = [Origins(origin)]

    def drop_entry(self, position: int, entries: Sequence[Json]) -> None:
        del self._entry_origins(entries)[position]

    def _entry_origins(self, entries: Sequence[Json]) -> "list[Origins]":
        if not isinstance(self._parts, list):
            self._parts = [Origins(self._origin.inside([n])) for n in range(len(entries))]
        return self._parts

    def _part(self, step: str) -> "Origins | None":
        if isinstance(self._parts, dict):
            return self._parts.get(step)
        if isinstance(self._parts, list) and step.isdecimal() and int(step) < len(self._parts):
            return self._parts[int(step)]
        return None


class AppliedChange(Value, frozen=True):
    """A change that took effect, the overlay that made it, and its JSON Pointer `at` there."""

    overlay: str
    at: str
    change: Change


class ResolvedView(Value, frozen=True):
    """A pack with its overlays applied: the document, the origins of its parts, and all changes."""

    value: Json
    origins: Origins
    applied: tuple[AppliedChange, ...] = ()


def resolve_view(base: Json, overlays: Iterable[Overlay], *, identify: Identify | None = None) -> ResolvedView:
    """Apply overlays of one environment in their order. Each is judged against the pack before it."""
    # By the version as well, so that the order in which the overlays are given changes no message.
    ordered = sorted(overlays, key=lambda overlay: (overlay.order, overlay.overlay_id, overlay.ref.release))
    _refuse_mixed(ordered)
    view, origins = base, Origins(Origin(overlay="", at=""))
    applied: list[AppliedChange] = []
    for overlay in ordered:
        _refuse_unsafe(overlay, identify)
        after = copy.deepcopy(view)
        apply_changes(after, overlay, origins)
        _refuse_malformed(overlay, after, origins)
        changes = compare_packs(view, after)
        _refuse_widening(overlay, changes)
        ref = str(overlay.ref)
        applied += [
            AppliedChange(overlay=ref, at=_causing_change(overlay, change), change=change) for change in changes
        ]
        view = after
    return ResolvedView(value=view, origins=origins, applied=tuple(applied))


def patched_copy(value: Json, overlay: Overlay) -> Json:
    """Return a copy of a document with the changes of an overlay applied. It is not judged."""
    after = copy.deepcopy(value)
    apply_changes(after, overlay, Origins(Origin(overlay="", at="")))
    return after


def _refuse_mixed(overlays: list[Overlay]) -> None:
    """Refuse overlays of two environments, and an overlay that is given twice or in two versions."""
    seen: dict[str, Overlay] = {}
    for overlay in overlays:
        first = overlays[0]
        if overlay.environment != first.environment:
            raise OverlaysMixed(
                f"{overlay.ref} is for {overlay.environment}, and {first.ref} for {first.environment}",
                at=f"{overlay.ref}#/environment",
                hint="apply the overlays of one environment at a time",
                details=overlay_place(overlay, "/environment"),
            )
        other = seen.get(overlay.overlay_id)
        if other is not None:
            same = "given twice" if other.ref == overlay.ref else f"given as {other.ref} as well"
            raise OverlaysMixed(
                f"{overlay.ref} is {same}",
                at=f"{overlay.ref}#/overlay_id",
                hint="apply one version of it, once",
                details=overlay_place(overlay, "/overlay_id"),
            )
        seen[overlay.overlay_id] = overlay


def _refuse_unsafe(overlay: Overlay, identify: Identify | None) -> None:
    """Refuse an overlay with a text that no document may hold, its reasons included."""
    document = DocumentTexts(cast("Json", msgspec.to_builtins(overlay)), identify=identify)
    for law in (*security.TEXT_LAWS, *misplaced_content.TEXT_LAWS):
        for finding in law.findings(document):
            if finding.severity == "error":
                raise OverlayUnsafe(
                    f"{finding.cause} ({finding.code})",
                    at=f"{overlay.ref}#{finding.at}",
                    hint=finding.cure,
                    details=overlay_place(overlay, finding.at),
                )


def _refuse_malformed(overlay: Overlay, after: Json, origins: Origins) -> None:
    """Refuse a value of the wrong form, which would otherwise be reported as a change of behaviour."""
    form = typed_or_problems(after, ContextPack)
    placed = [(finding, origins.of(finding.at)) for finding in form] if isinstance(form, tuple) else []
    ours = [(finding, origin) for finding, origin in placed if origin.overlay == str(overlay.ref)]
    # A part that is missing because a change removed it is judged by the effect of the removal.
    wrong = [(finding, origin) for finding, origin in ours if origin.at.split("/")[3:4] == ["value"]]
    if wrong:
        (first, origin), more = wrong[0], len(wrong) - 1
        raise OverlayMalformed(
            f"{first.at}: {first.cause}" + (f"; and {more} more like it" if more else ""),
            at=f"{overlay.ref}#{origin.at}",
            hint=first.cure,
            details={
                **overlay_place(overlay, origin.at),
                "problems": [
                    {
                        **overlay_place(overlay, origin.at),
                        "cause": f"{finding.at}: {finding.cause}",
                        "cure": finding.cure,
                    }
                    for finding, origin in wrong
                ],
            },
        )


def widenings(changes: Iterable[Change]) -> Iterator[tuple[Change, str]]:
    """Yield every change that no overlay may make, with the words for it."""
    for change in changes:
        if change.effect not in _ALLOWED:
            yield change, f"{change.words} ({_WHY[change.effect]})"


def _refuse_widening(overlay: Overlay, changes: Iterable[Change]) -> None:
    refused = list(widenings(changes))
    if refused:
        at = _causing_change(overlay, refused[0][0])
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise OverlayWidens(
            "; ".join(words for _, words in refused[:_NAMED]) + more,
            at=f"{overlay.ref}#{at}",
            hint="an overlay can only constrain: change the pack itself, in a new version",
            details={
                **overlay_place(overlay, at),
                "widenings": [
                    {
                        **overlay_place(overlay, _causing_change(overlay, change)),
                        "at": change.at,
                        "effect": change.effect,
                        "words": change.words,
                    }
                    for change, _ in refused
                ],
            },
        )


def _causing_change(overlay: Overlay, change: Change) -> str:
    """Return the JSON Pointer of the last change of the overlay at, around or inside the changed place."""
    touching = [n for n, overlay_change in enumerate(overlay.changes) if _overlap(overlay_change.at, change.at)]
    exact = [n for n in touching if overlay.changes[n].at.rpartition("/")[2] in change.words.split()]
    return f"/changes/{(exact or touching or [0])[-1]}"


def _overlap(place: str, other: str) -> bool:
    return f"{place}/".startswith(f"{other}/") or f"{other}/".startswith(f"{place}/")


# --- the changes of one overlay ---


class _Problem(Value, frozen=True):
    """Why a change cannot be applied, and the cure."""

    cause: str
    cure: str


def overlay_place(overlay: Overlay, at: str) -> dict[str, object]:
    """Return a place in an overlay for `details`: the reference and the JSON Pointer."""
    return {"overlay": str(overlay.ref), "pointer": at}


def apply_changes(document: Json, overlay: Overlay, origins: Origins) -> None:
    """Apply the changes of an overlay to the document in place, without judging their effect.

    The error has the problems of all changes.
    """
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
    listed = [{**overlay_place(overlay, place), "cause": why, "cure": hint} for place, why, hint in problems]
    return OverlayMisplaced(
        cause + more, at=f"{overlay.ref}#{at}", hint=cure, details={**overlay_place(overlay, at), "problems": listed}
    )


def _change(document: Json, change: OverlayChange, origins: Origins, origin: Origin) -> _Problem | None:
    if change.remove is (change.value is not msgspec.UNSET):
        return _Problem(cause="a change has either a value or remove: true", cure="keep one of the two")
    *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in change.at[1:].split("/"))
    parent, name = document, ""
    for step in parents:
        inner = _step(parent, name, step, origins)
        if isinstance(inner, _Problem):
            return inner
        (parent, origins), name = inner, step
    if isinstance(parent, list):
        return _set_entry(parent, (name, last), change, origins, origin)
    if isinstance(parent, dict):
        return _set_member(parent, (name, last), change, origins, origin)
    return _absence(parent, name, last)


def _step(parent: Json, name: str, step: str, origins: Origins) -> tuple[Json, Origins] | _Problem:
    if isinstance(parent, dict) and step in parent:
        return parent[step], origins.member(step)
    position = _position(parent, name, step)
    if position is None or not isinstance(parent, list):
        return _absence(parent, name, step)
    return parent[position], origins.entry(position, parent)


def _set_member(
    parent: dict[str, Json], place: tuple[str, str], change: OverlayChange, origins: Origins, origin: Origin
) -> _Problem | None:
    name, last = place
    if change.remove:
        if last not in parent:
            return _absence(parent, name, last)
        del parent[last]
        origins.set_member(last, origin)
    else:
        parent[last] = cast("Json", change.value)
        origins.set_member(last, origin.inside(["value"]))
    return None


def _set_entry(
    entries: list[Json], place: tuple[str, str], change: OverlayChange, origins: Origins, origin: Origin
) -> _Problem | None:
    name, last = place
    position = _position(entries, name, last)
    value = cast("Json", change.value)
    if change.remove:
        if position is None:
            return _absence(entries, name, last)
        origins.drop_entry(position, entries)
        del entries[position]
        return None
    entry_id = identity(value, id_fields(name) or ())
    if entry_id != last:
        cause = f"its value is {entry_id[:60]!r}, not the {last[:60]!r} that the place names"
        return _Problem(cause=cause, cure="write the same in both")
    position = len(entries) if position is None else position
    origins.set_entry(position, entries, origin.inside(["value"]))
    entries[position : position + 1] = [value]
    return None


def _position(parent: Json, name: str, step: str) -> int | None:
    """Return the position of the entry with this id; in a plain list of texts, that of the text."""
    fields = id_fields(name) or ()
    entries = parent if isinstance(parent, list) else []
    return next((n for n, entry in enumerate(entries) if identity(entry, fields) == step), None)


def _absence(parent: Json, name: str, step: str) -> _Problem:
    """Return the problem of a missing part, with the nearest name that is there, or all of them."""
    known: list[str] = []
    if isinstance(parent, dict):
        known = list(parent)
    elif isinstance(parent, list):
        known = [identity(entry, id_fields(name) or ())[:60] for entry in parent]
    else:
        return _Problem(cause=f"{name} has no parts", cure="change it as a whole")
    cure = did_you_mean(step[:60], known, "name one that is there")
    return _Problem(cause=f"{name or 'the pack'} has no {step[:60]!r}", cure=cure)
