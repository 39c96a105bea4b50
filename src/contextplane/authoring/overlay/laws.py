"""The laws of an overlay, by itself and against the pack that it is for.

They are beside the gates and not among them: they need the resolved pack, which is judged by the gates in turn.
"""

from collections.abc import Iterator
from functools import cached_property

from msgspec import UNSET

from contextplane.authoring.diff.tree import Change
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.overlay.resolved_view import OverlayMisplaced, patched_copy, widenings
from contextplane.authoring.texts import DocumentTexts, Identify
from contextplane.model.artifact import Overlay
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.suggestion import did_you_mean

__all__ = ["LAWS", "OverlaySubject"]

_CURE = "an overlay can only constrain: change the pack itself, in a new version"


class OverlaySubject(DocumentTexts):
    """An overlay to be judged. `base`: the pack that it is for, with the overlays before it; may be None."""

    def __init__(self, overlay: Overlay, value: Json, base: Json = None, *, identify: Identify | None = None) -> None:
        super().__init__(value, identify=identify)
        self.overlay = overlay
        self.base = base

    @cached_property
    def view(self) -> "Json | OverlayMisplaced":
        """The pack with the overlay applied, or the error of applying it; None without a base."""
        if self.base is None:
            return None
        try:
            return patched_copy(self.base, self.overlay)
        except OverlayMisplaced as error:
            return error

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes of the pack that the overlay makes."""
        if self.base is None or self.view is None or isinstance(self.view, OverlayMisplaced):
            return ()
        return compare_packs(self.base, self.view)


def changes_say_one_thing(subject: OverlaySubject) -> Iterator[Violation]:
    """Every change has either a value or remove: true, and no other change is at its place or within it."""
    seen: dict[str, int] = {}
    for n, change in enumerate(subject.overlay.changes):
        at = f"/changes/{n}"
        if change.remove is (change.value is not UNSET):
            yield Violation(at=at, cause="it has both a value and remove, or neither", cure="keep one of the two")
        for other, m in seen.items():
            if f"{change.at}/".startswith(f"{other}/") or f"{other}/".startswith(f"{change.at}/"):
                yield Violation(at=f"{at}/at", cause=f"change {m} is about the same place", cure="make them one change")
        seen[change.at] = n


def changes_are_within_a_layer(subject: OverlaySubject) -> Iterator[Violation]:
    """Every change is at a place within a layer of a context pack."""
    layers = ContextPack.__struct_fields__
    for n, change in enumerate(subject.overlay.changes):
        layer = change.at.split("/")[1]
        if layer not in layers:
            cause = f"{layer[:60]!r} is no layer of a context pack"
            yield Violation(at=f"/changes/{n}/at", cause=cause, cure=did_you_mean(layer, layers, "name a layer"))


def the_base_is_given(subject: OverlaySubject) -> Iterator[Violation]:
    """The pack that the overlay is for is there to be judged with it."""
    if subject.base is None:
        yield Violation(
            at="/base_pack_id",
            cause=f"cannot tell what it does to {subject.overlay.base_pack_id}: the pack is not given",
            cure="judge it together with the pack",
            unknown=True,
        )


def changes_have_a_place(subject: OverlaySubject) -> Iterator[Violation]:
    """Every change is at a place that the pack has, and the pack is the one that the overlay is for."""
    if isinstance(subject.view, OverlayMisplaced):
        yield Violation(at="/changes", cause=str(subject.view.message), cure=subject.view.hint or "correct the place")


def changes_only_constrain(subject: OverlaySubject) -> Iterator[Violation]:
    """Nothing that the overlay changes lets a run do more, or something else."""
    for change, why in widenings(subject.changes):
        yield Violation(at="/changes", cause=f"{change.at}: {why}", cure=_CURE)


LAWS: tuple[Law[OverlaySubject], ...] = (
    Law(gate="integrity", code="overlay_change_unclear", check=changes_say_one_thing),
    Law(gate="integrity", code="overlay_layer_unknown", check=changes_are_within_a_layer),
    Law(gate="integrity", code="overlay_base_absent", check=the_base_is_given),
    Law(gate="integrity", code="overlay_misplaced", check=changes_have_a_place),
    Law(gate="risk", code="overlay_widens", check=changes_only_constrain),
    *security.TEXT_LAWS,
    *misplaced_content.TEXT_LAWS,
)
