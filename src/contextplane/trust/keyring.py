"""The keyring: which keys are trusted, as a fold over signed events. It reads no clock and no stream.

The first event trusts the key that signed it, as an owner: that is the decision of the creator of the store. Every
later event names the one before it and is signed by an owner's key that is valid at its time. Times never go back. A
revoked key can change nothing any more, even if it writes an earlier time.

Three parts: the events as they are stored, what each change does to the issuers, and `TrustedKeys`, which folds events
and checks who may make a change.
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
from contextplane.trust.dsse import MAX_SIGNATURES, Envelope, decode_base64, make_envelope
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
    "apply_change",
    "has_lasting_owner",
    "read_keyring_event",
    "sign_change",
    "sign_keyring_event",
]

# --- the events ------------------------------------------------------------------------------------------------------

KEYRING = "application/vnd.contextplane.keyring+json"
"""The payload type of these events, so that no statement can be passed off as one, nor one as a statement."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]
_Name = Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?\Z")]
_Roles = Annotated[tuple[Identifier, ...], Meta(max_length=32)]


class KeyringEventInvalid(ContextPlaneError):
    """An event of the keyring that is not one: another form, or not the next one after what is known."""

    code: ClassVar[str] = "keyring_event_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyTrust(Document, frozen=True, tag_field="change", tag="key_trusted"):
    """An issuer has this key with these roles in this window. It replaces what was recorded before.

    `name`: a label for people. No decision depends on it.
    """

    issuer: Identifier
    key: str
    roles: _Roles
    valid_from: str
    valid_until: str | None
    name: _Name = ""


class KeyRotation(Document, frozen=True, tag_field="change", tag="key_rotated"):
    """A new key replaces an old one for every issuer that has it; both are valid until the old one ends."""

    old: _Hex
    key: str
    valid_from: str
    old_until: str
    name: _Name = ""


class KeyRevocation(Document, frozen=True, tag_field="change", tag="key_revoked"):
    """A key is not trusted from a time on, by any issuer. It is never trusted again."""

    key_id: _Hex
    revoked_from: str
    reason: _Reason


class ThresholdChange(Document, frozen=True, tag_field="change", tag="threshold_set"):
    """The number of keys of an issuer that must sign."""

    issuer: Identifier
    threshold: int


Change = KeyTrust | KeyRotation | KeyRevocation | ThresholdChange


class KeyringEvent(Document, frozen=True):
    """One change of the keyring.

    `previous` is the SHA-256 of the event before it, so that no event can be exchanged without notice.
    """

    seq: int
    previous: _Hex
    at: str
    change: Change


def sign_keyring_event(event: KeyringEvent, signer: Signer) -> bytes:
    """Sign an event; returns the bytes that are stored."""
    return make_envelope(KEYRING, canonical(msgspec.to_builtins(event)), signer).to_bytes()


def read_keyring_event(payload: bytes) -> KeyringEvent:
    """Parse the payload of a stored event."""
    try:
        return msgspec.convert(parse(payload).value, KeyringEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise KeyringEventInvalid(f"not an event of a keyring: {error}", hint="restore the catalog") from error


# --- what a change does ----------------------------------------------------------------------------------------------

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


def apply_change(issuers: Issuers, change: Change, at: Timestamp) -> Issuers:
    """Return the issuers after a change at a time. Whether the signer may make it is not checked here."""
    match change:
        case KeyTrust():
            return _apply_trust(issuers, change)
        case KeyRotation():
            return _apply_rotation(issuers, change)
        case KeyRevocation():
            return _apply_revocation(issuers, change)
        case ThresholdChange():
            return _apply_threshold(issuers, change, at)
        case _:
            assert_never(change)


def has_lasting_owner(issuers: Issuers) -> bool:
    """Whether some owner's key has no end and no revocation."""
    return any(
        OWNER in key.roles and key.valid_until is None and key.revoked_from is None
        for issuer in issuers
        for key in issuer.keys
    )


def _apply_trust(issuers: Issuers, change: KeyTrust) -> Issuers:
    key = replace(_trusted_key(change.key, change.valid_from, change.valid_until, change.roles), name=change.name)
    _refuse_revoked(issuers, key.key)
    known = next((issuer for issuer in issuers if issuer.name == change.issuer), None)
    if known is None:
        return (*issuers, Issuer(name=change.issuer, threshold=1, keys=(key,)))
    others = tuple(trusted_key for trusted_key in known.keys if trusted_key.key != key.key)
    return _replace_issuer(issuers, replace(known, keys=(*others, key)))


def _apply_rotation(issuers: Issuers, change: KeyRotation) -> Issuers:
    until = Timestamp.parse(change.old_until)
    key = _trusted_key(change.key, change.valid_from, None, ()).key
    _refuse_revoked(issuers, key)
    if key.key_id == change.old:
        raise RotatedIntoItself("the new key is the old one", at=change.old[:16], hint="'ctx keys new' makes a new one")
    if until < Timestamp.parse(change.valid_from):
        raise WindowEmpty("the old key would end before the new one begins", hint="let them overlap")
    is_known = False
    for issuer in issuers:
        old = issuer.key(change.old)
        if old is None:
            continue
        is_known = True
        new = replace(_trusted_key(change.key, change.valid_from, None, old.roles), name=change.name)
        if (present := issuer.key(new.key.key_id)) is not None:
            # What it signed before stays signed by a key that was valid then.
            since = min(new.valid_from, present.valid_from)
            roles = tuple(sorted({*new.roles, *present.roles}))
            new = replace(new, roles=roles, valid_from=since, name=new.name or present.name)
        ended = replace(old, valid_until=min(until, old.valid_until or until))
        others = tuple(key for key in issuer.keys if key.key not in (old.key, new.key))
        issuers = _replace_issuer(issuers, replace(issuer, keys=(*others, ended, new)))
    if not is_known:
        raise _not_trusted_error(change.old)
    return issuers


def _apply_revocation(issuers: Issuers, change: KeyRevocation) -> Issuers:
    since = Timestamp.parse(change.revoked_from)
    holders = [(issuer, key) for issuer in issuers if (key := issuer.key(change.key_id)) is not None]
    if not holders:
        raise _not_trusted_error(change.key_id)
    for issuer, key in holders:
        if key.revoked_from is not None and key.revoked_from < since:
            raise KeyRevokedForGood(f"it is revoked from {key.revoked_from} on already", at=change.key_id[:16])
        ended = replace(key, revoked_from=since, reason=change.reason)
        keys = tuple(ended if trusted_key.key == key.key else trusted_key for trusted_key in issuer.keys)
        issuers = _replace_issuer(issuers, replace(issuer, keys=keys))
    return issuers


def _apply_threshold(issuers: Issuers, change: ThresholdChange, at: Timestamp) -> Issuers:
    issuer = next((issuer for issuer in issuers if issuer.name == change.issuer), None)
    if issuer is None:
        raise IssuerNotFound(f"{change.issuer} has no key", hint="'ctx keys trust' adds one")
    able = sum(key.state_at(at) in ("valid", "not_yet_valid") for key in issuer.keys)
    if not 1 <= change.threshold <= min(able, MAX_SIGNATURES):
        raise ThresholdUnreachable(
            f"{change.threshold} signatures of {change.issuer}, which has {able} good keys",
            hint="trust more keys first",
        )
    return _replace_issuer(issuers, replace(issuer, threshold=change.threshold))


def _replace_issuer(issuers: Issuers, issuer: Issuer) -> Issuers:
    return tuple(issuer if other.name == issuer.name else other for other in issuers)


def _trusted_key(key: str, valid_from: str, valid_until: str | None, roles: tuple[str, ...]) -> TrustedKey:
    begin = Timestamp.parse(valid_from)
    end = None if valid_until is None else Timestamp.parse(valid_until)
    if end is not None and end <= begin:
        raise WindowEmpty(f"valid from {begin} until {end}", hint="a key ends after it begins")
    return TrustedKey(
        key=PublicKey(decode_base64(key, at="/change/key")),
        roles=tuple(sorted(set(roles))),
        valid_from=begin,
        valid_until=end,
    )


def _refuse_revoked(issuers: Issuers, key: PublicKey) -> None:
    for issuer in issuers:
        known = issuer.key(key.key_id)
        if known is not None and known.revoked_from is not None:
            raise KeyRevokedForGood("it was revoked, and stays so", at=key.key_id[:16], hint="make a new key")


def _not_trusted_error(key_id: str) -> KeyNotTrusted:
    return KeyNotTrusted("no issuer has this key", at=key_id[:16], hint="'ctx keys list' shows those that are trusted")


# --- the fold --------------------------------------------------------------------------------------------------------


class NotAnOwner(ContextPlaneError):
    """A change of the keyring that no owner's key, good at that time, has signed."""

    code: ClassVar[str] = "keyring_not_an_owner"
    family: ClassVar[Family] = "untrusted"


class KeyringWithoutOwner(ContextPlaneError):
    """A change after which no owner's key would last, so that the keyring could never be changed again."""

    code: ClassVar[str] = "keyring_without_owner"
    family: ClassVar[Family] = "refused"


class TrustedKeys(Value, frozen=True):
    """A keyring after `seq` events, the last of which has the digest `head`. Clients store it as JSON."""

    seq: int = 0
    head: str = ""
    as_of: Timestamp = NO_TIME
    issuers: tuple[Issuer, ...] = ()

    def issuer(self, name: str) -> Issuer | None:
        return next((issuer for issuer in self.issuers if issuer.name == name), None)

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        return tuple(issuer.name for issuer in self.issuers if issuer.key(key_id) is not None)

    def after(self, body: bytes, check: SignatureCheck) -> "TrustedKeys":
        """Verify one more event and return the keyring after it."""
        # (1) an envelope with an event in it, (2) the next one in the chain, (3) not earlier than the one before
        envelope = Envelope.parse(body, payload_type=KEYRING)
        event = read_keyring_event(envelope.payload)
        if (event.seq, event.previous) != (self.seq + 1, self.head):
            raise KeyringEventInvalid(
                f"event {event.seq} does not follow event {self.seq}", hint="events were changed or left out"
            )
        at = Timestamp.parse(event.at)
        if at < self.as_of:
            raise ClockWentBackwards(
                f"a change at {at}, after one at {self.as_of}", hint="set the clock of the machine that writes"
            )
        # (4) signed by an owner, (5) allowed by the state of the keyring, (6) and an owner remains
        self._authorise(envelope, event.change, at, check)
        issuers = apply_change(self.issuers, event.change, at)
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
        """Keys that may change the keyring at a time.

        A key with any revocation may not: the times that it writes are not believed.
        """
        return [
            key.key
            for issuer in self.issuers
            for key in issuer.keys
            if OWNER in key.roles and key.revoked_from is None and key.state_at(at) == "valid"
        ]


def _founders(change: Change) -> list[PublicKey]:
    if isinstance(change, KeyTrust) and OWNER in change.roles:
        return [PublicKey(decode_base64(change.key, at="/change/key"))]
    return []


def sign_change(keys: TrustedKeys, change: Change, *, at: Timestamp, signer: Signer) -> bytes:
    """Sign the next event of a keyring.

    The caller folds it with `TrustedKeys.after` before appending it: nothing is written that readers refuse.
    """
    event = KeyringEvent(seq=keys.seq + 1, previous=keys.head, at=str(at), change=change)
    return sign_keyring_event(event, signer)
