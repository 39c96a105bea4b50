"""An event of the registry: a change, with who made it, when, why, and where it stands. Signed by its actor.

An event names its stream and number, the event before it there, its entry in the log and the keyring that it was
made under. So none can be moved, left out or exchanged without a signature that no longer fits.
"""

from typing import Annotated, ClassVar, cast

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json, canonical
from contextplane.model.ids import Digest
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.signer import Signer
from contextplane.registry.changes import (
    Change,
    Drafted,
    Linted,
    Promoted,
    Published,
    RefreshReported,
    RollbackEnded,
    Signed,
)
from contextplane.trust.envelope import Envelope, sealed

__all__ = [
    "PAYLOAD_TYPE",
    "Actor",
    "ChangeInvalid",
    "EventInvalid",
    "Grant",
    "Happened",
    "RegistryEvent",
    "checked_change",
    "kind_of",
    "objects_of",
    "read_event",
    "written",
]

PAYLOAD_TYPE = "application/vnd.contextplane.registry+json"
"""No statement and no change of the keyring can be passed off as one of these, nor the other way round."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]


class EventInvalid(ContextPlaneError):
    """Something in a stream of the registry that is not an event of it, or not the one that belongs there."""

    code: ClassVar[str] = "registry_event_invalid"
    family: ClassVar[Family] = "untrusted"


class ChangeInvalid(ContextPlaneError):
    """A change with a name or a text in it that no event can hold."""

    code: ClassVar[str] = "registry_change_invalid"
    family: ClassVar[Family] = "usage"


class RegistryEvent(Document, frozen=True):
    """`previous`: the SHA-256 of the event before it in its stream. `keyring`: after how many changes of that."""

    subject: str
    seq: _Count
    previous: _Hex
    entry: _Count
    keyring: _Count
    at: str
    reason: _Reason
    change: Change


class Grant(Value, frozen=True):
    """What a key was for one issuer."""

    issuer: str
    roles: tuple[str, ...]


class Actor(Value, frozen=True):
    """The key that signed an event, and what it was then.

    `revoked`: by what is known now, it was not to be trusted. `family`: the keys that it was rotated from and into, and
    itself: whoever has one of them has them all.
    """

    key_id: str
    grants: tuple[Grant, ...]
    family: tuple[str, ...]
    revoked: bool = False

    def holds(self, role: str, issuer: str | None = None) -> bool:
        """Whether it had a role, for this issuer or for any."""
        return any(role in one.roles for one in self.grants if issuer in {None, one.issuer})

    def is_of(self, issuer: str) -> bool:
        return any(one.issuer == issuer for one in self.grants)


class Happened(Value, frozen=True):
    """An event that was read, checked and found to be in its place. Folds take these. `digest` is of its body."""

    event: RegistryEvent
    at: Timestamp
    by: Actor
    digest: str

    @property
    def change(self) -> Change:
        return self.event.change

    @property
    def kind(self) -> str:
        return kind_of(self.event.change)


def kind_of(change: Change) -> str:
    """What the catalog calls an event of this change."""
    return str(type(change).__struct_config__.tag)


def checked_change(change: Change, reason: str) -> None:
    """Refuse what somebody typed before it is signed: an event of that form would be refused by every reader."""
    try:
        msgspec.convert(msgspec.to_builtins(change), Change)
        msgspec.convert(reason, _Reason)
    except msgspec.ValidationError as error:
        hint = "names: ASCII letters, digits, _ . : and -, at most 128; a reason has at most 2000 characters"
        raise ChangeInvalid(f"{kind_of(change)}: {error}", hint=hint) from error


def written(event: RegistryEvent, signer: Signer) -> bytes:
    """The signed event, as it is stored."""
    payload = canonical(cast("Json", msgspec.to_builtins(event)))
    return sealed(PAYLOAD_TYPE, payload, signer).to_bytes()


def read_event(body: bytes) -> tuple[Envelope, RegistryEvent]:
    """(1) An envelope with an event in it, (2) which exactly one key signed: its actor."""
    envelope = Envelope.parse(body, payload_type=PAYLOAD_TYPE)
    try:
        event = msgspec.convert(parse(envelope.payload).value, RegistryEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise EventInvalid(f"not an event of the registry: {error}", hint="restore the catalog from a copy") from error
    if len(envelope.signatures) != 1:
        raise EventInvalid(f"{len(envelope.signatures)} signatures", at="/signatures", hint="its actor signs, alone")
    return envelope, event


def objects_of(stream: str, change: Change) -> tuple[tuple[str, Digest], ...]:
    """The objects that an event needs, each with its kind: `artifact`, `envelope` or `report`.

    An index of the registry's objects is made again from these.
    """
    match change:
        case Drafted():
            named = [("artifact", f"sha256:{stream.rpartition('/')[2]}")]
        case Linted() | RefreshReported() | RollbackEnded() | Promoted():
            named = [("report", change.report)]
        case Signed():
            named = [("envelope", change.envelope)]
        case Published():
            named = [("artifact", change.digest), ("envelope", change.envelope), ("report", change.report)]
        case _:
            named = []
    return tuple((f"registry_{kind}", Digest.parse(text)) for kind, text in named if text)
