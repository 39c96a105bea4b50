"""The states of pins, aliases and environments, as folds over their streams. Pure.

- Pins: what an environment pins for an id. Every event carries all that is pinned after it, so that reading takes the
  last event, and an audit folds the whole stream. A decision catalog is pinned under its own id, overlays under the id
  of their base.
- Aliases: a name for people that leads to one version at a time. No run is ever started by one.
- Environments: protected until they are opened.
"""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import PackRef
from contextplane.model.keys import Issuer
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.registry.events import (
    AliasDropped,
    AliasSet,
    Change,
    EnvironmentOpened,
    EnvironmentProtected,
    EventInvalid,
    Pin,
    PinChange,
    Pinned,
    Pins,
    Promoted,
    RollbackEnded,
    RolledBack,
    Unpinned,
    kind_of,
)
from contextplane.registry.verified_event import Scope, VerifiedEvent

__all__ = [
    "DEFAULT_MAX_AGE",
    "AliasNotFound",
    "AliasState",
    "EnvironmentState",
    "PinNotFound",
    "PinState",
    "changed_ref",
    "current_pin",
    "is_doubtful",
    "pinned_overlays",
    "pins_after",
    "ref_of",
]


class PinNotFound(ContextPlaneError):
    """Something that is not pinned there."""

    code: ClassVar[str] = "pin_not_found"
    family: ClassVar[Family] = "not_found"


class PinState(Value, frozen=True):
    """What an environment pins for an id after `seq` events."""

    environment: str
    base_id: str
    seq: int = 0
    head: str = ""
    pins: Pins = Pins()

    def scope_of(self, change: Change) -> Scope:
        """The environment and the id that is pinned there, not the version that the change names."""
        del change
        return Scope(environment=self.environment, name=self.base_id)

    def after_event(self, verified: VerifiedEvent) -> "PinState":
        """The state that an event carries, or a refusal.

        It is the same after the whole stream and after its last event alone, so that all readers see the same pins.
        """
        return replace(self, seq=verified.event.seq, head=verified.digest, pins=self._pin_change(verified).pins)

    def check_carried(self, verified: VerifiedEvent) -> None:
        """Refuse an event that carries other pins than follow from this state before it. Audits report that."""
        change = self._pin_change(verified)
        stamp = (verified.event.entry, verified.event.at, verified.by.key_id)
        if change.pins != pins_after(self.pins, change, *stamp):
            raise EventInvalid("it does not follow that this is pinned", at=verified.event.subject)

    def _pin_change(self, verified: VerifiedEvent) -> PinChange:
        """Refuse an event that is no change of these pins, or pins another id in the place of this one."""
        change = verified.change
        if not isinstance(change, PinChange):
            raise EventInvalid(f"{kind_of(change)} is no change of pins", at=verified.event.subject)
        base = change.pins.base
        if base is not None and (base.id != self.base_id or base.kind == "overlay"):
            raise EventInvalid(f"it pins {base.id} in the place of {self.base_id}", at=verified.event.subject)
        return change

    @property
    def base(self) -> PackRef | None:
        """The version of the pack or catalog that is pinned."""
        return ref_of(self.pins.base) if self.pins.base is not None else None


def changed_ref(change: PinChange) -> PackRef | None:
    """The version that a change is about; None for the end of a rollback."""
    return None if isinstance(change, RollbackEnded) else PackRef(change.id, change.version)


def is_doubtful(pin: Pin, last: VerifiedEvent, issuers: Iterable[Issuer]) -> bool:
    """Whether a pin is void until it is pinned anew.

    By the newest keyring, the key that pinned it was revoked then, or the key of the `last` event of the stream, which
    carries the pins.
    """
    at = Timestamp.parse(pin.at)
    keys = [key for issuer in issuers if (key := issuer.key(pin.by)) is not None]
    return last.by.revoked or not keys or any(key.is_revoked_for(at, pin.entry) for key in keys)


def ref_of(pin: Pin) -> PackRef:
    return PackRef(pin.id, pin.version)


def pinned_overlays(state: PinState, pack_id: str) -> tuple[PackRef, ...]:
    """The overlays that are pinned on a pack; none if the id is that of an overlay."""
    return tuple(map(ref_of, state.pins.overlays)) if pack_id == state.base_id else ()


def current_pin(state: PinState, pack_id: str) -> Pin | None:
    """The pin of a pack, catalog or overlay in this state; None if it is not pinned."""
    pins = [*([state.pins.base] if state.pins.base is not None else []), *state.pins.overlays]
    return next((pin for pin in pins if pin.id == pack_id), None)


def pins_after(pins: Pins, change: PinChange, entry: int, at: str, by: str) -> Pins:
    """The pins after a change, made at an entry of the log by a key."""
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
    others = [overlay for overlay in pins.overlays if overlay.id != pin.id]
    return replace(pins, overlays=tuple(sorted([*others, pin], key=lambda other: other.id)))


def _without(pins: Pins, ref: PackRef) -> Pins:
    if pins.base is not None and ref_of(pins.base) == ref:
        return replace(pins, base=None)
    others = tuple(overlay for overlay in pins.overlays if ref_of(overlay) != ref)
    if len(others) == len(pins.overlays):
        raise PinNotFound(f"{ref} is not pinned there", at=str(ref), hint="'ctx packs' lists the pins")
    return replace(pins, overlays=others)


class AliasNotFound(ContextPlaneError):
    """A name that no version of this id has: neither an alias nor an environment that pins one."""

    code: ClassVar[str] = "alias_not_found"
    family: ClassVar[Family] = "not_found"


class AliasState(Value, frozen=True):
    """The aliases of one id, by name.

    `doubtful`: names that a revoked key set. They lead nowhere until they are set anew.
    """

    base_id: str
    seq: int = 0
    head: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    doubtful: tuple[str, ...] = ()

    def lookup(self, alias: str) -> PackRef | None:
        """The version that an alias names; None if there is none, or a doubtful one."""
        version = dict(self.aliases).get(alias)
        return PackRef(self.base_id, version) if version is not None and alias not in self.doubtful else None

    def of_version(self, version: str) -> tuple[str, ...]:
        """The aliases of a version."""
        return tuple(name for name, number in self.aliases if number == version and name not in self.doubtful)

    def scope_of(self, change: Change) -> Scope:
        """The id whose versions are named."""
        del change
        return Scope(name=self.base_id)

    def after_event(self, verified: VerifiedEvent) -> "AliasState":
        change, aliases = verified.change, dict(self.aliases)
        doubtful = {*self.doubtful}
        match change:
            case AliasSet():
                aliases[change.alias] = change.version
                (doubtful.add if verified.by.revoked else doubtful.discard)(change.alias)
            case AliasDropped():
                self._version_of(change.alias)
                doubtful.discard(change.alias)
                del aliases[change.alias]
            case _:
                raise EventInvalid(f"{kind_of(change)} is no change of aliases", at=verified.event.subject)
        known = tuple(sorted(aliases.items()))
        state = replace(self, seq=verified.event.seq, head=verified.digest, aliases=known)
        return replace(state, doubtful=tuple(sorted(doubtful)))

    def _version_of(self, alias: str) -> str:
        version = dict(self.aliases).get(alias)
        if version is None:
            raise AliasNotFound(f"no alias of {self.base_id} is called that", at=alias)
        return version


DEFAULT_MAX_AGE = 30 * 24 * 3600
"""How many seconds old the newest checkpoint may be for new traffic in a protected environment that says nothing."""


class EnvironmentState(Value, frozen=True):
    """Whether an environment takes versions with an open refresh, and how fresh the registry must be.

    `max_age`: how many seconds old the newest checkpoint may be for new traffic, where an operator said so.
    """

    environment: str
    seq: int = 0
    head: str = ""
    protected: bool = True
    max_age: int | None = None

    def scope_of(self, change: Change) -> Scope:  # noqa: ARG002  every change is about the environment
        return Scope(environment=self.environment)

    def after_event(self, verified: VerifiedEvent) -> "EnvironmentState":
        change = verified.change
        if not isinstance(change, EnvironmentOpened | EnvironmentProtected):
            raise EventInvalid(f"{kind_of(change)} is no change of an environment", at=verified.event.subject)
        # Opening takes a key that is still trusted; protecting takes effect by any key.
        opened = isinstance(change, EnvironmentOpened) and not verified.by.revoked
        max_age = change.max_age if isinstance(change, EnvironmentProtected) else None
        return replace(
            self,
            seq=verified.event.seq,
            head=verified.digest,
            protected=not opened,
            max_age=None if opened else max_age,
        )
