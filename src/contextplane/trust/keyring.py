"""The keyring: which keys are trusted, as a fold over signed events. It reads no clock and no stream.

The first event trusts the key that signed it, as an owner: that is the decision of the creator of the store. Every
later event names the one before it and is signed by as many owners as the keyring asks for, whose keys are valid at its
time. Times never go back. A revoked key can change nothing any more, even if it writes an earlier time.

Where the threshold of owners is above one, a change also needs that many signatures by those who own the keyring after
it: a new owner has shown a working key, and no change leaves the keyring to too few.

Keys that were rotated into each other are one person, and count once.

Two parts: what each change does, and `TrustedKeys`, which folds events and checks who may make a change.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, assert_never

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.keys import LOG, OWNER, Issuer, PublicKey, TrustedKey
from contextplane.model.timestamp import NO_TIME, InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.dsse import MAX_SIGNATURES, Envelope, decode_base64
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring_events import (
    KEYRING,
    Change,
    KeyRevocation,
    KeyringEvent,
    KeyringEventInvalid,
    KeyRotation,
    KeyTrust,
    OwnerApproval,
    OwnerThreshold,
    Proposal,
    StoreSealed,
    ThresholdChange,
    WitnessThreshold,
    proposal_message,
    read_keyring_event,
    sign_keyring_event,
)

__all__ = [
    "EventOfOtherStore",
    "IssuerNotFound",
    "KeyNotTrusted",
    "KeyRevokedForGood",
    "KeyringWithoutOwner",
    "NotAnOwner",
    "OwnersTooFew",
    "RotatedIntoItself",
    "StoreSealedAlready",
    "ThresholdUnreachable",
    "TrustedKeys",
    "WindowEmpty",
    "apply_change",
    "make_proposal",
    "sign_change",
]

Issuers = tuple[Issuer, ...]

# --- what a change does ----------------------------------------------------------------------------------------------


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


class StoreSealedAlready(ContextPlaneError):
    """A store of this format would be sealed into it again."""

    code: ClassVar[str] = "store_sealed_already"
    family: ClassVar[Family] = "refused"


def apply_change(  # noqa: PLR0911  one for each change
    keys: "TrustedKeys", change: Change, at: Timestamp
) -> "TrustedKeys":
    """Return the keyring with a change at a time. Whether the signers may make it is not checked here."""
    match change:
        case KeyTrust():
            return replace(keys, issuers=_apply_trust(keys.issuers, change))
        case KeyRotation():
            new = PublicKey(decode_base64(change.key, at="/change/key")).key_id
            return replace(
                keys, issuers=_apply_rotation(keys.issuers, change), people=_link(keys.people, change.old, new)
            )
        case KeyRevocation():
            return replace(keys, issuers=_apply_revocation(keys.issuers, change))
        case ThresholdChange():
            return replace(keys, issuers=_apply_threshold(keys, change, at))
        case OwnerThreshold():
            return replace(keys, owner_threshold=change.threshold)
        case WitnessThreshold():
            return replace(keys, witnesses=change.witnesses)
        case StoreSealed():
            if keys.sealed is not None:
                raise StoreSealedAlready("it has this format already")
            return replace(keys, issuers=_with_log_role(keys.issuers), sealed=change.entries)
        case _:
            assert_never(change)


def _with_log_role(issuers: Issuers) -> Issuers:
    """Give the role `log` to every key that has a role: it could sign checkpoints in the first format."""
    return tuple(
        replace(
            issuer,
            keys=tuple(
                replace(key, roles=tuple(sorted({*key.roles, LOG}))) if key.roles else key for key in issuer.keys
            ),
        )
        for issuer in issuers
    )


def _link(people: tuple[frozenset[str], ...], old: str, new: str) -> tuple[frozenset[str], ...]:
    linked = frozenset({old, new}).union(*(person for person in people if old in person or new in person))
    return (*(person for person in people if not person & linked), linked)


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
        new = replace(_trusted_key(change.key, change.valid_from, change.valid_until, old.roles), name=change.name)
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
        places = [place for place in (key.revoked_entry, change.from_entry) if place is not None]
        ended = replace(key, revoked_from=since, reason=change.reason, revoked_entry=min(places, default=None))
        keys = tuple(ended if trusted_key.key == key.key else trusted_key for trusted_key in issuer.keys)
        issuers = _replace_issuer(issuers, replace(issuer, keys=keys))
    return issuers


def _apply_threshold(keys: "TrustedKeys", change: ThresholdChange, at: Timestamp) -> Issuers:
    issuers, issuer = keys.issuers, keys.issuer(change.issuer)
    if issuer is None:
        raise IssuerNotFound(f"{change.issuer} has no key", hint="'ctx keys trust' adds one")
    able = len(keys.people_of(key.key.key_id for key in issuer.keys if key.state_at(at) in ("valid", "not_yet_valid")))
    if not 1 <= change.threshold <= min(able, MAX_SIGNATURES):
        raise ThresholdUnreachable(
            f"{change.threshold} signatures of {change.issuer}, which has good keys of {able} people",
            hint="trust keys of more people first",
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


class OwnersTooFew(ContextPlaneError):
    """A change of the keyring that fewer owners signed than it takes, before the change or after it."""

    code: ClassVar[str] = "keyring_owners_too_few"
    family: ClassVar[Family] = "untrusted"


class KeyringWithoutOwner(ContextPlaneError):
    """A change after which too few owners' keys would last: the keyring could never be changed again."""

    code: ClassVar[str] = "keyring_without_owner"
    family: ClassVar[Family] = "refused"


class EventOfOtherStore(ContextPlaneError):
    """A signed event that was made for another store."""

    code: ClassVar[str] = "event_of_other_store"
    family: ClassVar[Family] = "untrusted"


class TrustedKeys(Value, frozen=True):
    """A keyring after `seq` events, the last of which has the digest `head`.

    `origin`: the log of the store that it belongs to; every event must name it. `people`: keys that were rotated into
    each other. `sealed`: how many entries of the log have the first format; None: the whole store has it.
    """

    seq: int = 0
    head: str = ""
    as_of: Timestamp = NO_TIME
    issuers: tuple[Issuer, ...] = ()
    origin: str = ""
    people: tuple[frozenset[str], ...] = ()
    owner_threshold: int = 1
    witnesses: int = 0
    sealed: int | None = None

    def issuer(self, name: str) -> Issuer | None:
        return next((issuer for issuer in self.issuers if issuer.name == name), None)

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        return tuple(issuer.name for issuer in self.issuers if issuer.key(key_id) is not None)

    def person(self, key_id: str) -> frozenset[str]:
        """All keys linked to a key by rotation, itself included: the keys of one person."""
        return next((person for person in self.people if key_id in person), frozenset({key_id}))

    def people_of(self, key_ids: Iterable[str]) -> frozenset[frozenset[str]]:
        """The people who hold these keys."""
        return frozenset(map(self.person, key_ids))

    def after(self, body: bytes, check: SignatureCheck) -> "TrustedKeys":
        """Verify one more event and return the keyring after it."""
        # (1) an envelope with an event in it, (2) the next one in the chain, (3) of this store, and not earlier
        envelope = Envelope.parse(body, payload_type=KEYRING)
        event = read_keyring_event(envelope.payload)
        if (event.seq, event.previous) != (self.seq + 1, self.head):
            raise KeyringEventInvalid(
                f"event {event.seq} does not follow event {self.seq}", hint="events were changed or left out"
            )
        self._check_origin(event)
        try:
            at = Timestamp.parse(event.at)
        except InvalidTimestamp as error:
            raise KeyringEventInvalid(error.message, hint="restore the catalog from a copy") from error
        if at < self.as_of:
            raise ClockWentBackwards(
                f"a change at {at}, after one at {self.as_of}", hint="set the clock of the machine that writes"
            )
        # (4) signed by enough owners, (5) allowed by the state of the keyring, (6) and enough owners remain
        owners = self.owners_at(at) if self.seq else _founders(event.change)
        self._check_signers(_signers(envelope, event, owners, check))
        after = apply_change(self, event.change, at)
        new_owners = after.owners_at(at)
        after._check_new_owners(_signers(envelope, event, new_owners, check))  # noqa: SLF001  the same class
        after.check_lasting_owners()
        # (7) submitted by an owner: the time of the event is in no approval
        _check_submitter(envelope, [*owners, *new_owners], check)
        sealed = 0 if not event.seq - 1 and event.origin else after.sealed
        return replace(after, seq=event.seq, head=Digest.of(body).hex, as_of=at, sealed=sealed)

    def lasting_owners(self) -> Iterable[str]:
        """The ids of owners' keys that have no end and no revocation."""
        return (
            key.key.key_id
            for issuer in self.issuers
            for key in issuer.keys
            if OWNER in key.roles and key.valid_until is None and key.revoked_from is None
        )

    def check_lasting_owners(self) -> None:
        """Refuse a keyring with fewer owners that last than must agree to a change of it."""
        lasting = len(self.people_of(self.lasting_owners()))
        if lasting < self.owner_threshold:
            raise KeyringWithoutOwner(
                "no owner's key without an end would be left"
                if not lasting
                else f"{lasting} owners without an end would be left, and {self.owner_threshold} must sign",
                hint="trust another key as owner first, or rotate this one",
            )

    def _check_origin(self, event: KeyringEvent) -> None:
        is_old = not event.origin and self.sealed is None and not isinstance(event.change, StoreSealed)
        if not is_old and event.origin != self.origin:
            raise EventOfOtherStore(
                f"it was made for {event.origin[:120] or 'no store'}, not for {self.origin}",
                hint="the catalog was changed; restore it from a copy",
            )

    def _check_signers(self, signers: frozenset[str]) -> None:
        """Refuse a change that too few owners signed."""
        people = len(self.people_of(signers))
        if not people:
            raise NotAnOwner(
                "not signed by an owner of this keyring", at="/signatures", hint="'ctx keys list' shows who that is"
            )
        if people < self.owner_threshold:
            raise _too_few_error(f"signed by {people} of the {self.owner_threshold} owners that it takes")

    def _check_new_owners(self, signers: frozenset[str]) -> None:
        """Refuse a change to this keyring that too few of its owners signed: each shows that they can sign."""
        people = len(self.people_of(signers))
        if 1 < self.owner_threshold > people:
            raise _too_few_error(f"signed by {people} of those who own it afterwards, and {self.owner_threshold} must")

    def owners_at(self, at: Timestamp) -> list[PublicKey]:
        """Keys that may change the keyring at a time.

        A key with any revocation may not: the times that it writes are not believed.
        """
        return [
            key.key
            for issuer in self.issuers
            for key in issuer.keys
            if OWNER in key.roles and key.revoked_from is None and key.state_at(at) == "valid"
        ]


def _signers(
    envelope: Envelope, event: KeyringEvent, owners: Sequence[PublicKey], check: SignatureCheck
) -> frozenset[str]:
    """The ids of the owners who signed an event, or approved its proposal."""
    messages = [(signature.value, envelope.pae) for signature in envelope.signatures]
    approved = proposal_message(event) if event.approvals else b""
    messages += [(decode_base64(approval.signature, at="/approvals"), approved) for approval in event.approvals]
    return frozenset(
        key.key_id for key in owners if any(check.holds(key, signature, message) for signature, message in messages)
    )


def _check_submitter(envelope: Envelope, owners: Sequence[PublicKey], check: SignatureCheck) -> None:
    """Refuse an event that no owner signed, even if owners approved its proposal."""
    if not any(check.holds(key, signature.value, envelope.pae) for signature in envelope.signatures for key in owners):
        raise NotAnOwner("it was approved, and not submitted by an owner", at="/signatures", hint="an owner submits it")


def _too_few_error(message: str) -> OwnersTooFew:
    return OwnersTooFew(
        message, at="/signatures", hint="'ctx keys propose' asks the other owners, 'ctx keys approve' agrees"
    )


def _founders(change: Change) -> list[PublicKey]:
    if isinstance(change, KeyTrust) and OWNER in change.roles:
        return [PublicKey(decode_base64(change.key, at="/change/key"))]
    return []


def make_proposal(keys: TrustedKeys, change: Change) -> Proposal:
    """The proposal of a change at the end of a keyring, for owners to approve."""
    return Proposal(origin=keys.origin, seq=keys.seq + 1, previous=keys.head, change=change)


def sign_change(  # noqa: PLR0913  what an event says
    keys: TrustedKeys,
    change: Change,
    *,
    at: Timestamp,
    signer: Signer,
    approvals: tuple[OwnerApproval, ...] = (),
    entry: int | None = None,
) -> bytes:
    """Sign the next event of a keyring. `entry`: where the log will have it.

    The caller folds it with `TrustedKeys.after` before appending it: nothing is written that readers refuse.
    """
    event = KeyringEvent(
        seq=keys.seq + 1,
        previous=keys.head,
        at=str(at),
        change=change,
        origin=keys.origin,
        entry=entry,
        approvals=approvals,
    )
    return sign_keyring_event(event, signer)
