"""What an environment pins for an id, as a fold over its stream. It reads nothing.

Every event carries all that is pinned after it; so the last event suffices to read, and the whole stream to check that
none of them lied. A catalog of decisions is pinned under its own id, overlays under the id of their base.
"""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.keyring import Issuer
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

__all__ = ["PinNotFound", "PinState", "is_doubtful", "named_by", "pins_after", "ref_of"]


class PinNotFound(ContextPlaneError):
    """Something that is not pinned there."""

    code: ClassVar[str] = "pin_not_found"
    family: ClassVar[Family] = "not_found"


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


def named_by(change: PinChange) -> PackRef | None:
    """The version that a change is about; that a rollback ended is about none."""
    return None if isinstance(change, RollbackEnded) else PackRef(change.id, change.version)


def is_doubtful(pin: Pin, last: Happened, issuers: Iterable[Issuer]) -> bool:
    """Whether no run gets what is pinned until it is pinned anew.

    By what is known now, who pinned it was not to be trusted then; or who made the `last` event there, which says what
    is pinned.
    """
    at = Timestamp.parse(pin.at)
    keys = [key for one in issuers if (key := one.key(pin.by)) is not None]
    return last.by.revoked or not keys or any(key.state_at(at) == "revoked" for key in keys)


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
