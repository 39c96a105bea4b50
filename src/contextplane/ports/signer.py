"""What we need of signatures: a key that signs, and a check that says whether one did. Ed25519 (RFC 8032), no other.

Private keys are no value here and have no form: whoever holds a `Signer` can sign with it and cannot read it.
"""

from typing import ClassVar, Protocol

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest

__all__ = ["PublicKey", "PublicKeyInvalid", "SignatureCheck", "Signer"]

# What RFC 8410 puts before the 32 bytes of an Ed25519 key: it is always the same.
_SPKI = bytes.fromhex("302a300506032b6570032100")
_SIZE = 32
_P = 2**255 - 19
# The eight points that a multiple of eight takes to zero, by their y: "signatures" of such a key hold for any message.
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_WEAK = frozenset({0, 1, _P - 1, _EIGHTH, _P - _EIGHTH})


class PublicKeyInvalid(ContextPlaneError):
    """Something that is not an Ed25519 public key."""

    code: ClassVar[str] = "public_key_invalid"
    family: ClassVar[Family] = "refused"


class PublicKey(msgspec.Struct, frozen=True, order=True):
    """An Ed25519 public key: 32 bytes, in their one spelling, and none of the few with which anything seems signed."""

    raw: bytes

    def __post_init__(self) -> None:
        if type(self.raw) is not bytes or len(self.raw) != _SIZE:
            raise PublicKeyInvalid("not an Ed25519 public key", hint=f"its raw form has {_SIZE} bytes")
        y = int.from_bytes(self.raw, "little") & (1 << 255) - 1
        if y >= _P or y in _WEAK:
            raise PublicKeyInvalid("a weak key, or a second spelling of a key", hint="nobody makes one by chance")

    @property
    def spki(self) -> bytes:
        """The DER form that other programs read: SubjectPublicKeyInfo."""
        return _SPKI + self.raw

    @property
    def key_id(self) -> str:
        """The SHA-256 of the DER form, as hex: `openssl pkey -pubin -outform DER | sha256sum` says the same."""
        return Digest.of(self.spki).hex


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
