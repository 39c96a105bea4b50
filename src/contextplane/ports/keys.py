"""The ports to keys and signatures: the keyring, a signer, and a check. Ed25519 (RFC 8032) only.

A private key is no value here and has no form: the holder of a `Signer` can sign with it and cannot read it.
"""

from collections.abc import Iterable
from typing import Protocol

from contextplane.model.keys import Issuer, PublicKey
from contextplane.model.timestamp import Timestamp

__all__ = ["Keyring", "SignatureCheck", "Signer"]


class Signer(Protocol):
    """One private key. It signs, and reveals nothing but its public key."""

    @property
    def public_key(self) -> PublicKey: ...

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature over exactly this message; the same each time."""
        ...


class SignatureCheck(Protocol):
    """Checks whether a key signed a message."""

    def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:
        """True only for the signature of this key over exactly this message. No input raises."""
        ...


class Keyring(Protocol):
    """The trusted issuers, as far as this client knows."""

    @property
    def as_of(self) -> Timestamp:
        """When it last changed. A clock that shows an earlier time is not believed."""
        ...

    @property
    def issuers(self) -> tuple[Issuer, ...]: ...

    def issuer(self, name: str) -> Issuer | None: ...

    def issuers_of(self, key_id: str) -> tuple[str, ...]:
        """The names of all issuers that have this key."""
        ...

    def people_of(self, key_ids: Iterable[str]) -> frozenset[frozenset[str]]:
        """The people who hold these keys, each as the keys that were rotated into each other."""
        ...
