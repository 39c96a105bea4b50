"""What we need to know of keys before we trust a signature: whose they are, from when until when, and what for."""

from typing import Literal, Protocol

from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.signer import PublicKey

__all__ = ["OWNER", "Issuer", "KeyState", "Keyring", "TrustedKey"]

OWNER = "owner"
"""The role of a key that may change the keyring."""

KeyState = Literal["valid", "not_yet_valid", "expired", "revoked"]


class TrustedKey(Value, frozen=True):
    """A key of one issuer. It is good in [valid_from, valid_until) and before `revoked_from`; None: there is no end.

    `name`: what whoever trusted it calls it, for people to read.
    """

    key: PublicKey
    roles: tuple[str, ...]
    valid_from: Timestamp
    valid_until: Timestamp | None = None
    revoked_from: Timestamp | None = None
    reason: str = ""
    name: str = ""

    def state_at(self, moment: Timestamp) -> KeyState:
        """What the key is at a moment. A revocation weighs more than a window."""
        if self.revoked_from is not None and moment >= self.revoked_from:
            return "revoked"
        if moment < self.valid_from:
            return "not_yet_valid"
        return "expired" if self.valid_until is not None and moment >= self.valid_until else "valid"


class Issuer(Value, frozen=True):
    """Somebody who signs: a tenant or an authority, with all keys it ever had. `threshold` of them must sign."""

    name: str
    threshold: int
    keys: tuple[TrustedKey, ...]

    def key(self, key_id: str) -> TrustedKey | None:
        return next((one for one in self.keys if one.key.key_id == key_id), None)


class Keyring(Protocol):
    """Who is trusted, as far as this client knows."""

    @property
    def as_of(self) -> Timestamp:
        """When it last changed: no clock that we believe shows an earlier time."""
        ...

    @property
    def issuers(self) -> tuple[Issuer, ...]: ...

    def issuer(self, name: str) -> Issuer | None: ...

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        """The names of all issuers that have this key."""
        ...
