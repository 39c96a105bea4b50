"""Proofs as texts that can be carried away and checked offline, by any program that knows the C2SP formats.

Inclusion: `c2sp.org/tlog-proof@v1`. Consistency: what a C2SP witness is sent, the old size and the proof before the new
checkpoint. Each contains the checkpoint's note as it was signed.
"""

from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.trust.base64_text import Base64Refused, decoded, encoded

__all__ = ["Proof", "ProofInvalid", "consistency_text", "inclusion_text", "read_consistency", "read_inclusion"]

_HEADER = "c2sp.org/tlog-proof@v1\n"
_HASH_SIZE = 32
_MOST_HASHES = 63
_DIGITS = 19


class ProofInvalid(ContextPlaneError):
    """A text that is not a proof in the form of C2SP."""

    code: ClassVar[str] = "proof_text_invalid"
    family: ClassVar[Family] = "untrusted"


class Proof(Value, frozen=True):
    """A proof with the checkpoint that it leads to. `number`: the leaf's index, or the old size."""

    number: int
    path: tuple[bytes, ...]
    note: bytes


def inclusion_text(index: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _HEADER.encode() + _written("index", index, path, note)


def consistency_text(old: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _written("old", old, path, note)


def read_inclusion(data: bytes) -> Proof:
    """Read an inclusion proof. Extra data is refused: nobody signs it, and nobody here asks for it."""
    if not data.startswith(_HEADER.encode()):
        raise ProofInvalid("not an inclusion proof", hint=f"its first line is {_HEADER.strip()}")
    return _read("index", data.removeprefix(_HEADER.encode()))


def read_consistency(data: bytes) -> Proof:
    return _read("old", data)


def _written(word: str, number: int, path: Sequence[bytes], note: bytes) -> bytes:
    lines = [f"{word} {number}", *map(encoded, path), "", ""]
    return "\n".join(lines).encode() + note


def _read(word: str, data: bytes) -> Proof:
    head, blank, note = data.partition(b"\n\n")
    first, *hashes = head.decode(errors="replace").split("\n")
    said, _, number = first.partition(" ")
    canonical = number.isascii() and number.isdecimal() and len(number) <= _DIGITS and str(int(number)) == number
    if not blank or said != word or not canonical or len(hashes) > _MOST_HASHES:
        raise ProofInvalid("not a proof", hint=f"'{word} NUMBER', hashes, a blank line, a checkpoint")
    try:
        path = tuple(decoded(one, at=f"line {n}") for n, one in enumerate(hashes, 2))
    except Base64Refused as error:
        raise ProofInvalid("a hash is not base64", at=error.at, hint=error.hint) from error
    if any(len(one) != _HASH_SIZE for one in path):
        raise ProofInvalid("a hash has not 32 bytes", hint="SHA-256")
    return Proof(number=int(number), path=path, note=note)
