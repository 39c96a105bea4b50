"""What an environment pins for an id, as a fold over its stream. It reads nothing.

Every event carries all that is pinned after it; so the last event suffices to read, and the whole stream to check that
none of them lied. A catalog of decisions is pinned under its own id, overlays under the id of their base.

Aliases and environments, as folds over their streams. They read nothing.

An alias is a name for people, and leads to one version at a time: no run is ever started by one. An environment is
protected until somebody says that it is open.
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
    Happened,
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

__all__ = [
    "AliasNotFound",
    "AliasState",
    "EnvironmentState",
    "PinNotFound",
    "PinState",
    "is_doubtful",
    "named_by",
    "pins_after",
    "ref_of",
]


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
    keys = [key for issuer in issuers if (key := issuer.key(pin.by)) is not None]
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
    others = [overlay for overlay in pins.overlays if overlay.id != pin.id]
    return replace(pins, overlays=tuple(sorted([*others, pin], key=lambda other: other.id)))


def _without(pins: Pins, ref: PackRef) -> Pins:
    if pins.base is not None and ref_of(pins.base) == ref:
        return replace(pins, base=None)
    kept = tuple(overlay for overlay in pins.overlays if ref_of(overlay) != ref)
    if len(kept) == len(pins.overlays):
        raise PinNotFound(f"{ref} is not pinned there", at=str(ref), hint="'ctx packs' shows what is")
    return replace(pins, overlays=kept)


class AliasNotFound(ContextPlaneError):
    """A name that no version of this id has: neither an alias nor an environment that pins one."""

    code: ClassVar[str] = "alias_not_found"
    family: ClassVar[Family] = "not_found"


class AliasState(Value, frozen=True):
    """The aliases of one id, by name.

    `doubtful`: names that a key gave which was not to be trusted any more. They lead nowhere until somebody gives them
    anew.
    """

    base_id: str
    seq: int = 0
    head: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    doubtful: tuple[str, ...] = ()

    def named(self, alias: str) -> PackRef | None:
        version = dict(self.aliases).get(alias)
        return PackRef(self.base_id, version) if version is not None and alias not in self.doubtful else None

    def of_version(self, version: str) -> tuple[str, ...]:
        """What a version is called."""
        return tuple(name for name, number in self.aliases if number == version and name not in self.doubtful)

    def issuer_of(self, change: Change) -> str:  # noqa: ARG002  an alias changes nothing for anybody's runs
        return ""

    def after_event(self, happened: Happened) -> "AliasState":
        change, aliases = happened.change, dict(self.aliases)
        doubtful = {*self.doubtful}
        match change:
            case AliasSet():
                aliases[change.alias] = change.version
                (doubtful.add if happened.by.revoked else doubtful.discard)(change.alias)
            case AliasDropped():
                doubtful.discard(change.alias)
                if aliases.pop(change.alias, None) is None:
                    raise AliasNotFound(f"no alias of {self.base_id} is called that", at=change.alias)
            case _:
                raise EventInvalid(f"{kind_of(change)} is no change of aliases", at=happened.event.subject)
        known = tuple(sorted(aliases.items()))
        state = replace(self, seq=happened.event.seq, head=happened.digest, aliases=known)
        return replace(state, doubtful=tuple(sorted(doubtful)))


class EnvironmentState(Value, frozen=True):
    """Whether an environment takes versions with an open refresh."""

    environment: str
    seq: int = 0
    head: str = ""
    protected: bool = True

    def issuer_of(self, change: Change) -> str:  # noqa: ARG002  an environment is nobody's artifact
        return ""

    def after_event(self, happened: Happened) -> "EnvironmentState":
        change = happened.change
        if not isinstance(change, EnvironmentOpened | EnvironmentProtected):
            raise EventInvalid(f"{kind_of(change)} is no change of an environment", at=happened.event.subject)
        # Opening takes a key that is still believed; protecting holds whoever said it.
        opened = isinstance(change, EnvironmentOpened) and not happened.by.revoked
        return replace(self, seq=happened.event.seq, head=happened.digest, protected=not opened)
