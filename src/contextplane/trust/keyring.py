"""The keyring: who is trusted, as a fold over signed events. It reads no clock and no stream.

The first event trusts the key that signed it, as an owner: whoever made the store says so. Every later one is signed by
an owner's key that is good at its time. Times never go back, and a revoked key changes nothing any more, whatever time
it writes.

What can happen to a keyring, as signed events: each names the one before it and is signed by an owner's key.

It decides nothing; `keyring.py` folds these.

What each change does to the issuers of a keyring. Who may make it is decided elsewhere.
"""

from typing import Annotated, ClassVar, assert_never

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.keys import OWNER, Issuer, PublicKey, TrustedKey
from contextplane.model.terms import Identifier
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.dsse import MAX_SIGNATURES, Envelope, decoded, sealed
from contextplane.trust.errors import ClockWentBackwards

__all__ = [
    "KEYRING",
    "Change",
    "IssuerNotFound",
    "KeyNotTrusted",
    "KeyRevocation",
    "KeyRevokedForGood",
    "KeyRotation",
    "KeyTrust",
    "KeyringEvent",
    "KeyringEventInvalid",
    "KeyringWithoutOwner",
    "NotAnOwner",
    "RotatedIntoItself",
    "ThresholdChange",
    "ThresholdUnreachable",
    "TrustedKeys",
    "WindowEmpty",
    "changed",
    "has_lasting_owner",
    "proposed",
    "read_change",
    "written",
]

KEYRING = "application/vnd.contextplane.keyring+json"
"""The payload type of these events: no statement can be passed off as one, nor the other way round."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]
_Name = Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?\Z")]
_Roles = Annotated[tuple[Identifier, ...], Meta(max_length=32)]


class KeyringEventInvalid(ContextPlaneError):
    """An event of the keyring that is not one: another form, or not the next one after what is known."""

    code: ClassVar[str] = "keyring_event_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyTrust(Document, frozen=True, tag_field="change", tag="key_trusted"):
    """An issuer has this key, with these roles, in this window; from now on and instead of what was said before.

    `name`: what people call it. Nothing is ever decided by that.
    """

    issuer: Identifier
    key: str
    roles: _Roles
    valid_from: str
    valid_until: str | None
    name: _Name = ""


class KeyRotation(Document, frozen=True, tag_field="change", tag="key_rotated"):
    """A new key takes the place of an old one wherever that is trusted; both are good until the old one ends."""

    old: _Hex
    key: str
    valid_from: str
    old_until: str
    name: _Name = ""


class KeyRevocation(Document, frozen=True, tag_field="change", tag="key_revoked"):
    """A key is not to be trusted from a time on, wherever it was. It never comes back."""

    key_id: _Hex
    revoked_from: str
    reason: _Reason


class ThresholdChange(Document, frozen=True, tag_field="change", tag="threshold_set"):
    """So many keys of an issuer must sign."""

    issuer: Identifier
    threshold: int


Change = KeyTrust | KeyRotation | KeyRevocation | ThresholdChange


class KeyringEvent(Document, frozen=True):
    """One change. `previous` is the SHA-256 of the event before it, so that none can be exchanged behind its back."""

    seq: int
    previous: _Hex
    at: str
    change: Change


def written(event: KeyringEvent, signer: Signer) -> bytes:
    """The signed event, as it is stored."""
    return sealed(KEYRING, canonical(msgspec.to_builtins(event)), signer).to_bytes()


def read_change(payload: bytes) -> KeyringEvent:
    try:
        return msgspec.convert(parse(payload).value, KeyringEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise KeyringEventInvalid(f"not an event of a keyring: {error}", hint="restore the catalog") from error


Issuers = tuple[Issuer, ...]


class KeyNotTrusted(ContextPlaneError):
    """A key that no issuer has, so that there is nothing to rotate or revoke."""

    code: ClassVar[str] = "key_not_trusted"
    family: ClassVar[Family] = "not_found"


class IssuerNotFound(ContextPlaneError):
    """An issuer without any key."""

    code: ClassVar[str] = "issuer_not_found"
    family: ClassVar[Family] = "not_found"


class KeyRevokedForGood(ContextPlaneError):
    """A revoked key cannot be trusted again, nor be revoked from a later time on than before."""

    code: ClassVar[str] = "key_revoked_for_good"
    family: ClassVar[Family] = "refused"


class WindowEmpty(ContextPlaneError):
    """A window of time that ends before it begins."""

    code: ClassVar[str] = "key_window_empty"
    family: ClassVar[Family] = "refused"


class RotatedIntoItself(ContextPlaneError):
    """A key that would take its own place: it would end, and go on."""

    code: ClassVar[str] = "key_rotated_into_itself"
    family: ClassVar[Family] = "refused"


class ThresholdUnreachable(ContextPlaneError):
    """More signatures asked for than the issuer has keys that could make them, or fewer than one."""

    code: ClassVar[str] = "threshold_unreachable"
    family: ClassVar[Family] = "refused"


def changed(issuers: Issuers, change: Change, at: Timestamp) -> Issuers:
    """The issuers after a change at a time."""
    match change:
        case KeyTrust():
            return _trusted(issuers, change)
        case KeyRotation():
            return _rotated(issuers, change)
        case KeyRevocation():
            return _revoked(issuers, change)
        case ThresholdChange():
            return _threshold(issuers, change, at)
        case _:
            assert_never(change)


def has_lasting_owner(issuers: Issuers) -> bool:
    """Whether an owner's key without an end and without a revocation is there."""
    return any(
        OWNER in key.roles and key.valid_until is None and key.revoked_from is None
        for issuer in issuers
        for key in issuer.keys
    )


def _trusted(issuers: Issuers, change: KeyTrust) -> Issuers:
    key = replace(_entry(change.key, change.valid_from, change.valid_until, change.roles), name=change.name)
    _refuse_revoked(issuers, key.key)
    known = next((issuer for issuer in issuers if issuer.name == change.issuer), None)
    if known is None:
        return (*issuers, Issuer(name=change.issuer, threshold=1, keys=(key,)))
    others = tuple(trusted_key for trusted_key in known.keys if trusted_key.key != key.key)
    return _with(issuers, replace(known, keys=(*others, key)))


def _rotated(issuers: Issuers, change: KeyRotation) -> Issuers:
    until = Timestamp.parse(change.old_until)
    key = _entry(change.key, change.valid_from, None, ()).key
    _refuse_revoked(issuers, key)
    if key.key_id == change.old:
        raise RotatedIntoItself("the new key is the old one", at=change.old[:16], hint="'ctx keys new' makes a new one")
    if until < Timestamp.parse(change.valid_from):
        raise WindowEmpty("the old key would end before the new one begins", hint="let them overlap")
    found = False
    for issuer in issuers:
        old = issuer.key(change.old)
        if old is None:
            continue
        found = True
        new = replace(_entry(change.key, change.valid_from, None, old.roles), name=change.name)
        if (there := issuer.key(new.key.key_id)) is not None:
            # What it signed before stays signed by a key that was good then.
            since = min(new.valid_from, there.valid_from)
            roles = tuple(sorted({*new.roles, *there.roles}))
            new = replace(new, roles=roles, valid_from=since, name=new.name or there.name)
        ended = replace(old, valid_until=min(until, old.valid_until or until))
        rest = tuple(key for key in issuer.keys if key.key not in (old.key, new.key))
        issuers = _with(issuers, replace(issuer, keys=(*rest, ended, new)))
    if not found:
        raise _not_trusted(change.old)
    return issuers


def _revoked(issuers: Issuers, change: KeyRevocation) -> Issuers:
    since = Timestamp.parse(change.revoked_from)
    found = [(issuer, key) for issuer in issuers if (key := issuer.key(change.key_id)) is not None]
    if not found:
        raise _not_trusted(change.key_id)
    for issuer, key in found:
        if key.revoked_from is not None and key.revoked_from < since:
            raise KeyRevokedForGood(f"it is revoked from {key.revoked_from} on already", at=change.key_id[:16])
        ended = replace(key, revoked_from=since, reason=change.reason)
        keys = tuple(ended if trusted_key.key == key.key else trusted_key for trusted_key in issuer.keys)
        issuers = _with(issuers, replace(issuer, keys=keys))
    return issuers


def _threshold(issuers: Issuers, change: ThresholdChange, at: Timestamp) -> Issuers:
    issuer = next((issuer for issuer in issuers if issuer.name == change.issuer), None)
    if issuer is None:
        raise IssuerNotFound(f"{change.issuer} has no key", hint="'ctx keys trust' gives it one")
    able = sum(key.state_at(at) in ("valid", "not_yet_valid") for key in issuer.keys)
    if not 1 <= change.threshold <= min(able, MAX_SIGNATURES):
        raise ThresholdUnreachable(
            f"{change.threshold} signatures of {change.issuer}, which has {able} good keys",
            hint="trust more keys first",
        )
    return _with(issuers, replace(issuer, threshold=change.threshold))


def _with(issuers: Issuers, issuer: Issuer) -> Issuers:
    return tuple(issuer if one.name == issuer.name else one for one in issuers)


def _entry(key: str, valid_from: str, valid_until: str | None, roles: tuple[str, ...]) -> TrustedKey:
    begin = Timestamp.parse(valid_from)
    end = None if valid_until is None else Timestamp.parse(valid_until)
    if end is not None and end <= begin:
        raise WindowEmpty(f"valid from {begin} until {end}", hint="a key ends after it begins")
    return TrustedKey(
        key=PublicKey(decoded(key, at="/change/key")),
        roles=tuple(sorted(set(roles))),
        valid_from=begin,
        valid_until=end,
    )


def _refuse_revoked(issuers: Issuers, key: PublicKey) -> None:
    for issuer in issuers:
        known = issuer.key(key.key_id)
        if known is not None and known.revoked_from is not None:
            raise KeyRevokedForGood("it was revoked, and stays so", at=key.key_id[:16], hint="make a new key")


def _not_trusted(key_id: str) -> KeyNotTrusted:
    return KeyNotTrusted("no issuer has this key", at=key_id[:16], hint="'ctx keys list' shows those that are trusted")


class NotAnOwner(ContextPlaneError):
    """A change of the keyring that no owner's key, good at that time, has signed."""

    code: ClassVar[str] = "keyring_not_an_owner"
    family: ClassVar[Family] = "untrusted"


class KeyringWithoutOwner(ContextPlaneError):
    """A change after which no owner's key would last, so that nobody could ever change the keyring again."""

    code: ClassVar[str] = "keyring_without_owner"
    family: ClassVar[Family] = "refused"


class TrustedKeys(Value, frozen=True):
    """A keyring after `seq` events, the last of which has the digest `head`."""

    seq: int = 0
    head: str = ""
    as_of: Timestamp = NO_TIME
    issuers: tuple[Issuer, ...] = ()

    def issuer(self, name: str) -> Issuer | None:
        return next((issuer for issuer in self.issuers if issuer.name == name), None)

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        return tuple(issuer.name for issuer in self.issuers if issuer.key(key_id) is not None)

    def after(self, body: bytes, check: SignatureCheck) -> "TrustedKeys":
        """The keyring after one more event, or a refusal."""
        # (1) an envelope with an event in it, (2) the next one after what is known, (3) not earlier than that
        envelope = Envelope.parse(body, payload_type=KEYRING)
        event = read_change(envelope.payload)
        if (event.seq, event.previous) != (self.seq + 1, self.head):
            raise KeyringEventInvalid(
                f"event {event.seq} does not follow event {self.seq}", hint="events were changed or left out"
            )
        at = Timestamp.parse(event.at)
        if at < self.as_of:
            raise ClockWentBackwards(
                f"a change at {at}, after one at {self.as_of}", hint="set the clock of the machine that writes"
            )
        # (4) signed by an owner, (5) allowed by what is known, (6) and somebody can change it again
        self._authorise(envelope, event.change, at, check)
        issuers = changed(self.issuers, event.change, at)
        if not has_lasting_owner(issuers):
            raise KeyringWithoutOwner(
                "no owner's key without an end would be left",
                hint="trust another key as owner first, or rotate this one",
            )
        return TrustedKeys(seq=event.seq, head=Digest.of(body).hex, as_of=at, issuers=issuers)

    def _authorise(self, envelope: Envelope, change: Change, at: Timestamp, check: SignatureCheck) -> None:
        owners = self._owners(at) if self.seq else _founders(change)
        for signature in envelope.signatures:
            if any(check.holds(key, signature.value, envelope.pae) for key in owners):
                return
        raise NotAnOwner(
            "not signed by an owner of this keyring", at="/signatures", hint="'ctx keys list' shows who that is"
        )

    def _owners(self, at: Timestamp) -> list[PublicKey]:
        """Keys that may change the keyring at a time. One with any revocation may not: its times are not believed."""
        return [
            key.key
            for issuer in self.issuers
            for key in issuer.keys
            if OWNER in key.roles and key.revoked_from is None and key.state_at(at) == "valid"
        ]


def _founders(change: Change) -> list[PublicKey]:
    if isinstance(change, KeyTrust) and OWNER in change.roles:
        return [PublicKey(decoded(change.key, at="/change/key"))]
    return []


def proposed(keys: TrustedKeys, change: Change, *, at: Timestamp, signer: Signer) -> bytes:
    """The next event, signed. Whoever wants to append it folds it first: nothing is written that readers refuse."""
    event = KeyringEvent(seq=keys.seq + 1, previous=keys.head, at=str(at), change=change)
    return written(event, signer)
