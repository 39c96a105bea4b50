"""What we need to know of keys before we trust a signature: whose they are, from when until when, and what for.

What we need of signatures: a key that signs, and a check that says whether one did. Ed25519 (RFC 8032), no other.

Private keys are no value here and have no form: whoever holds a `Signer` can sign with it and cannot read it.
"""

from typing import Protocol

from contextplane.model.keys import Issuer, PublicKey
from contextplane.model.timestamp import Timestamp

__all__ = ["Keyring", "SignatureCheck", "Signer"]


class Signer(Protocol):
    """One private key. It signs, and shows nothing but its public key."""

    @property
    def public_key(self) -> PublicKey: ...

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature over exactly this message; the same each time."""
        ...


class SignatureCheck(Protocol):
    """Whether a key signed a message."""

    def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:
        """True only for the signature of this key over exactly this message. Nothing that is given raises."""
        ...


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
