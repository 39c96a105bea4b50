"""What each change does to the issuers of a keyring. Who may make it is decided elsewhere."""

from typing import ClassVar, assert_never

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keyring import OWNER, Issuer, TrustedKey
from contextplane.ports.signer import PublicKey
from contextplane.trust.base64_text import decoded
from contextplane.trust.envelope import MAX_SIGNATURES
from contextplane.trust.keyring_events import Change, KeyRevocation, KeyRotation, KeyTrust, ThresholdChange

__all__ = [
    "IssuerNotFound",
    "KeyNotTrusted",
    "KeyRevokedForGood",
    "RotatedIntoItself",
    "ThresholdUnreachable",
    "WindowEmpty",
    "changed",
    "has_lasting_owner",
]

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
    known = next((one for one in issuers if one.name == change.issuer), None)
    if known is None:
        return (*issuers, Issuer(name=change.issuer, threshold=1, keys=(key,)))
    others = tuple(one for one in known.keys if one.key != key.key)
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
        rest = tuple(one for one in issuer.keys if one.key not in (old.key, new.key))
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
        keys = tuple(ended if one.key == key.key else one for one in issuer.keys)
        issuers = _with(issuers, replace(issuer, keys=keys))
    return issuers


def _threshold(issuers: Issuers, change: ThresholdChange, at: Timestamp) -> Issuers:
    issuer = next((one for one in issuers if one.name == change.issuer), None)
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
