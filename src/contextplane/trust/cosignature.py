"""Cosignatures of checkpoints by witnesses (C2SP tlog-cosignature, version 1 with Ed25519).

A witness states that, as of a time, this is the newest checkpoint of the log that it saw, and that it continues all
that it saw before. It signs two lines, `cosignature/v1` and `time <seconds>`, and the text of the checkpoint's note.
The result is a line of a signature, which can be appended to the note for other programs:

    - <name of the witness> base64(4 bytes of key hash, 8 bytes of time, 64 bytes of signature)

These are rules over values. Where cosignatures are stored, `registry/cosignatures.py` knows.
"""

import hashlib
from collections.abc import Iterable
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.checkpoint import NoteInvalid, parse_signature_line, signature_line

__all__ = ["Cosignature", "CosignatureInvalid", "sign_cosignature", "witness_name", "witnesses_among"]

_COSIGNATURE = b"\x04"
_KEY_HASH_SIZE, _TIME_SIZE, _SIGNATURE_SIZE = 4, 8, 64
_LATEST = 2**63 - 1


class CosignatureInvalid(ContextPlaneError):
    """A cosignature that is not one, or that no trusted key made for a checkpoint of this log."""

    code: ClassVar[str] = "cosignature_invalid"
    family: ClassVar[Family] = "untrusted"


class Cosignature(Value, frozen=True):
    """A cosignature as it was read: nothing in it is verified. `time`: in seconds, by the witness's clock."""

    name: str
    key_hash: bytes
    time: int
    signature: bytes

    @classmethod
    def parse(cls, line: str) -> "Cosignature":
        """Read a line of a note."""
        try:
            name, data = parse_signature_line(line)
        except NoteInvalid as error:
            raise CosignatureInvalid(error.message, hint=error.hint) from error
        time = int.from_bytes(data[_KEY_HASH_SIZE : _KEY_HASH_SIZE + _TIME_SIZE])
        if len(data) != _KEY_HASH_SIZE + _TIME_SIZE + _SIGNATURE_SIZE or time > _LATEST:
            raise CosignatureInvalid("not a key hash, a time and an Ed25519 signature", hint="cosignature/v1")
        return cls(name=name, key_hash=data[:_KEY_HASH_SIZE], time=time, signature=data[_KEY_HASH_SIZE + _TIME_SIZE :])

    @property
    def line(self) -> str:
        return signature_line(self.name, self.key_hash + self.time.to_bytes(_TIME_SIZE) + self.signature)

    def holds(self, text: str, key: PublicKey, check: SignatureCheck) -> bool:
        """Whether a key made it for the text of a checkpoint. The name of a witness may be any."""
        is_named = self.key_hash == _key_hash(self.name, key)
        return is_named and check.holds(key, self.signature, _message(text, self.time))


def witness_name(key: PublicKey) -> str:
    """The name under which a key of the keyring cosigns."""
    return f"contextplane.witness/{key.key_id}"


def sign_cosignature(text: str, *, signer: Signer, time: int) -> Cosignature:
    """Cosign the text of a checkpoint. `time`: in seconds since 1970."""
    name = witness_name(signer.public_key)
    return Cosignature(
        name=name,
        key_hash=_key_hash(name, signer.public_key),
        time=time,
        signature=signer.sign(_message(text, time)),
    )


def witnesses_among(
    cosignatures: Iterable[Cosignature], text: str, keys: Iterable[PublicKey], check: SignatureCheck
) -> frozenset[str]:
    """The ids of the keys that cosigned a checkpoint.

    A cosignature that does not hold is ignored: every writer of the catalog could have added it.
    """
    candidates = tuple(cosignatures)
    return frozenset(
        key.key_id for key in keys if any(cosignature.holds(text, key, check) for cosignature in candidates)
    )


def _key_hash(name: str, key: PublicKey) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _COSIGNATURE + key.raw).digest()[:_KEY_HASH_SIZE]


def _message(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()
