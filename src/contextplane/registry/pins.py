"""What an environment pins for an id, as a fold over its stream. It reads nothing.

Every event carries all that is pinned after it; so the last event suffices to read, and the whole stream to check that
none of them lied. A catalog of decisions is pinned under its own id, overlays under the id of their base.
"""

from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.changes import (
    Change,
    Pin,
    PinChange,
    Pinned,
    Pins,
    Promoted,
    RollbackEnded,
    RolledBack,
    Unpinned,
)
from contextplane.registry.events import EventInvalid, Happened, kind_of

__all__ = ["PinNotFound", "PinState", "Pinning", "pinning_of", "pins_after", "ref_of"]


class PinNotFound(ContextPlaneError):
    """Something that is not pinned there."""

    code: ClassVar[str] = "pin_not_found"
    family: ClassVar[Family] = "not_found"


class Pinning(Value, frozen=True):
    """One event of the history of pins: what was done with which version, by whom, when and why."""

    seq: int
    kind: str
    ref: PackRef | None
    at: str
    by: str
    reason: str


class PinState(Value, frozen=True):
    """What is pinned after `seq` events."""

    environment: str
    base_id: str
    seq: int = 0
    head: str = ""
    pins: Pins = Pins()

    def issuer_of(self, change: Change) -> str:  # noqa: ARG002  the right to pin does not depend on whose it is
        return ""

    def after_event(self, happened: Happened) -> "PinState":
        """The state after one more event, or a refusal. What the event says is pinned must be what follows from it."""
        change = happened.change
        if not isinstance(change, PinChange):
            raise EventInvalid(f"{kind_of(change)} is no change of pins", at=happened.event.subject)
        stamp = (happened.event.entry, happened.event.at, happened.by.key_id)
        if change.pins != pins_after(self.pins, change, *stamp):
            raise EventInvalid("it does not follow that this is pinned", at=happened.event.subject)
        return replace(self, seq=happened.event.seq, head=happened.digest, pins=change.pins)

    def at_event(self, happened: Happened) -> "PinState":
        """The state that an event itself tells of: for readers who do not read the whole stream."""
        change = happened.change
        if not isinstance(change, PinChange):
            raise EventInvalid(f"{kind_of(change)} is no change of pins", at=happened.event.subject)
        return replace(self, seq=happened.event.seq, head=happened.digest, pins=change.pins)

    @property
    def base(self) -> PackRef | None:
        """The version of the pack or catalog that is pinned."""
        return ref_of(self.pins.base) if self.pins.base is not None else None


def pinning_of(happened: Happened) -> Pinning:
    """An event as a line of the history."""
    change = happened.change
    ref = PackRef(change.id, change.version) if isinstance(change, Pinned | Unpinned | RolledBack | Promoted) else None
    return Pinning(
        seq=happened.event.seq,
        kind=happened.kind,
        ref=ref,
        at=happened.event.at,
        by=happened.by.key_id,
        reason=happened.event.reason,
    )


def ref_of(pin: Pin) -> PackRef:
    return PackRef(pin.id, pin.version)


def pins_after(pins: Pins, change: PinChange, entry: int, at: str, by: str) -> Pins:
    """What is pinned after a change at an entry of the log, by a key. A pin that changes nothing keeps its stamp."""
    match change:
        case Pinned() | RolledBack():
            return _with(pins, _pin(change, entry, at, by))
        case Unpinned():
            return _without(pins, PackRef(change.id, change.version))
        case RollbackEnded() | Promoted():
            return pins


def _pin(change: Pinned | RolledBack, entry: int, at: str, by: str) -> Pin:
    return Pin(id=change.id, version=change.version, digest=change.digest, kind=change.kind, entry=entry, at=at, by=by)


def _with(pins: Pins, pin: Pin) -> Pins:
    if pin.kind != "overlay":
        return replace(pins, base=pin)
    others = [one for one in pins.overlays if one.id != pin.id]
    return replace(pins, overlays=tuple(sorted([*others, pin], key=lambda one: one.id)))


def _without(pins: Pins, ref: PackRef) -> Pins:
    if pins.base is not None and ref_of(pins.base) == ref:
        return replace(pins, base=None)
    kept = tuple(one for one in pins.overlays if ref_of(one) != ref)
    if len(kept) == len(pins.overlays):
        raise PinNotFound(f"{ref} is not pinned there", at=str(ref), hint="'ctx packs' shows what is")
    return replace(pins, overlays=kept)
