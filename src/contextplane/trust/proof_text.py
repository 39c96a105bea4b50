"""Proofs as texts that can be carried away and checked offline, by any program that knows the C2SP formats.

Inclusion: `c2sp.org/tlog-proof@v1`. Consistency: what a C2SP witness is sent, the old size and the proof before the new
checkpoint. Each contains the checkpoint's note as it was signed. They are written here, and read by others:
`contextplane.testing.second_verifier` is one of those.
"""

from collections.abc import Sequence

from contextplane.trust.base64_text import encoded

__all__ = ["consistency_text", "inclusion_text"]

_HEADER = "c2sp.org/tlog-proof@v1\n"


def inclusion_text(index: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _HEADER.encode() + _written("index", index, path, note)


def consistency_text(old: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _written("old", old, path, note)


def _written(word: str, number: int, path: Sequence[bytes], note: bytes) -> bytes:
    lines = [f"{word} {number}", *map(encoded, path), "", ""]
    return "\n".join(lines).encode() + note
