"""Public keys, and what a keyring says of them: their state, their roles and their issuers."""

from functools import lru_cache
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["LOG", "OWNER", "WITNESS", "Issuer", "KeyState", "PublicKey", "PublicKeyInvalid", "TrustedKey"]


# The constant prefix that RFC 8410 puts before the 32 bytes of an Ed25519 key.
_SPKI = bytes.fromhex("302a300506032b6570032100")
_SIZE = 32
_P = 2**255 - 19

# The points of small order, by their y: "signatures" of such a key are valid for any message.
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_WEAK = frozenset({0, 1, _P - 1, _EIGHTH, _P - _EIGHTH})


class PublicKeyInvalid(ContextPlaneError):
    """Something that is not an Ed25519 public key."""

    code: ClassVar[str] = "public_key_invalid"
    family: ClassVar[Family] = "refused"


class PublicKey(msgspec.Struct, frozen=True, order=True):
    """An Ed25519 public key: 32 bytes, in canonical form, and not a weak one.

    A weak key has "signatures" that are valid for any message.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if type(self.raw) is not bytes or len(self.raw) != _SIZE:
            raise PublicKeyInvalid("not an Ed25519 public key", hint=f"its raw form has {_SIZE} bytes")
        y = int.from_bytes(self.raw, "little") & (1 << 255) - 1
        if y >= _P or y in _WEAK:
            raise PublicKeyInvalid("a weak key, or a second spelling of a key", hint="it is not random")

    @property
    def spki(self) -> bytes:
        """The DER form that other programs read: SubjectPublicKeyInfo."""
        return _SPKI + self.raw

    @property
    def key_id(self) -> str:
        """The SHA-256 of the DER form, as hex.

        The same as `openssl pkey -pubin -outform DER | sha256sum`.
        """
        return _key_id(self.raw)


# Computed once per key, not per look-up. A field of the key would be stored with every keyring that a client saves.
@lru_cache(maxsize=1024)
def _key_id(raw: bytes) -> str:
    return Digest.of(_SPKI + raw).hex


OWNER = "owner"
"""The role of a key that may change the keyring."""

LOG = "log"
"""The role of a key that may sign checkpoints of the registry. Every act on the registry ends with one."""

WITNESS = "witness"
"""The role of a key that cosigns checkpoints, and nothing else."""


KeyState = Literal["valid", "not_yet_valid", "expired", "revoked"]


class TrustedKey(Value, frozen=True):
    """A key of one issuer, valid in [valid_from, valid_until) and before `revoked_from`.

    None means no end. `revoked_entry`: its events from this entry of the log on are those of a revoked key. `name` is
    what the owner of the keyring calls it, for people to read.
    """

    key: PublicKey
    roles: tuple[str, ...]
    valid_from: Timestamp
    valid_until: Timestamp | None = None
    revoked_from: Timestamp | None = None
    reason: str = ""
    name: str = ""
    revoked_entry: int | None = None

    def state_at(self, moment: Timestamp) -> KeyState:
        """The state of the key at a moment. A revocation outweighs the validity window."""
        if self.revoked_from is not None and moment >= self.revoked_from:
            return "revoked"
        if moment < self.valid_from:
            return "not_yet_valid"
        return "expired" if self.valid_until is not None and moment >= self.valid_until else "valid"

    def is_revoked_for(self, moment: Timestamp, entry: int) -> bool:
        """Whether the key is revoked for an event with this time at this entry of the log.

        The holder of a stolen key writes any time. The entry is where the log has the event.
        """
        is_later = self.revoked_entry is not None and entry >= self.revoked_entry
        return is_later or self.state_at(moment) == "revoked"


class Issuer(Value, frozen=True):
    """A tenant or an authority that signs, with every key it ever had. `threshold` keys must sign."""

    name: str
    threshold: int
    keys: tuple[TrustedKey, ...]

    def key(self, key_id: str) -> TrustedKey | None:
        return next((key for key in self.keys if key.key.key_id == key_id), None)
