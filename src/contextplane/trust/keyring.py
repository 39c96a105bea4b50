"""The keyring: who is trusted, as a fold over signed events. It reads no clock and no stream.

The first event trusts the key that signed it, as an owner: whoever made the store says so. Every later one is signed by
an owner's key that is good at its time. Times never go back, and a revoked key changes nothing any more, whatever time
it writes.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.keyring import OWNER, Issuer
from contextplane.ports.signer import PublicKey, SignatureCheck, Signer
from contextplane.trust.base64_text import decoded
from contextplane.trust.envelope import Envelope
from contextplane.trust.keyring_changes import changed, has_lasting_owner
from contextplane.trust.keyring_events import (
    KEYRING,
    Change,
    KeyringEvent,
    KeyringEventInvalid,
    KeyTrust,
    read_change,
    written,
)
from contextplane.trust.refusals import ClockWentBackwards

__all__ = ["KeyringWithoutOwner", "NotAnOwner", "TrustedKeys", "proposed"]


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
        return next((one for one in self.issuers if one.name == name), None)

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.issuers if one.key(key_id) is not None)

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
            one.key
            for issuer in self.issuers
            for one in issuer.keys
            if OWNER in one.roles and one.revoked_from is None and one.state_at(at) == "valid"
        ]


def _founders(change: Change) -> list[PublicKey]:
    if isinstance(change, KeyTrust) and OWNER in change.roles:
        return [PublicKey(decoded(change.key, at="/change/key"))]
    return []


def proposed(keys: TrustedKeys, change: Change, *, at: Timestamp, signer: Signer) -> bytes:
    """The next event, signed. Whoever wants to append it folds it first: nothing is written that readers refuse."""
    event = KeyringEvent(seq=keys.seq + 1, previous=keys.head, at=str(at), change=change)
    return written(event, signer)
