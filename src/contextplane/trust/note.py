"""Signed notes (C2SP signed-note): a short text, a blank line, and signatures in lines that people can read.

It knows nothing of what a text says; `checkpoint.py` does.
"""

import hashlib
from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.signer import PublicKey, SignatureCheck, Signer
from contextplane.trust.base64_text import Base64Refused, decoded, encoded

__all__ = ["NoteInvalid", "NoteKey", "NoteUnsigned", "opened", "signed_note"]

_MARK = "\u2014 "  # an em dash
_ED25519 = b"\x01"
_HASH_SIZE, _SIGNATURE_SIZE = 4, 64
_MOST_BYTES, _MOST_SIGNATURES = 64 * 1024, 100


class NoteInvalid(ContextPlaneError):
    """Bytes that are not a signed note."""

    code: ClassVar[str] = "note_invalid"
    family: ClassVar[Family] = "untrusted"


class NoteUnsigned(ContextPlaneError):
    """A note that none of the keys we trust for it has signed."""

    code: ClassVar[str] = "note_unsigned"
    family: ClassVar[Family] = "untrusted"


class NoteKey(Value, frozen=True):
    """A key under the name with which it signs notes."""

    name: str
    key: PublicKey

    @property
    def hash(self) -> bytes:
        """The four bytes that a signature line begins with: of the name and the key together."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.key.raw).digest()[:_HASH_SIZE]

    def __str__(self) -> str:
        """As other programs write it, `name+hash+key`: a vkey."""
        return f"{self.name}+{self.hash.hex()}+{encoded(_ED25519 + self.key.raw)}"


def signed_note(text: str, name: str, signer: Signer) -> bytes:
    """A note signed under a name. The text ends with a line's end, and its lines are not empty."""
    if not _is_name(name) or not _is_text(text):
        raise NoteInvalid("a note has lines without control characters, a name no space and no plus")
    key = NoteKey(name=name, key=signer.public_key)
    line = f"{_MARK}{name} {encoded(key.hash + signer.sign(text.encode()))}\n"
    return f"{text}\n{line}".encode()


def opened(note: bytes, keys: Sequence[NoteKey], check: SignatureCheck) -> str:
    """The text of a note that one of the keys signed.

    A signature that names one of the keys and does not hold spoils the note; those of others say nothing to us.
    """
    text, lines = _parts(note)
    wanted = {(key.name, key.hash): key for key in keys}
    good = False
    for line in lines:
        name, value = _signature(line)
        key = wanted.get((name, value[:_HASH_SIZE]))
        if key is None:
            continue
        if not check.holds(key.key, value[_HASH_SIZE:], text.encode()):
            raise NoteUnsigned(f"the signature of {name} does not hold", hint="the note was changed")
        good = True
    if not good:
        raise NoteUnsigned("signed by nobody whom we trust for it", hint="see whose key signs here")
    return text


def _parts(note: bytes) -> tuple[str, list[str]]:
    if len(note) > _MOST_BYTES:
        raise NoteInvalid(f"{len(note)} bytes", hint=f"a note has at most {_MOST_BYTES}")
    try:
        whole = note.decode()
    except UnicodeDecodeError as error:
        raise NoteInvalid("not UTF-8") from error
    text, blank, rest = whole.rpartition("\n\n")
    lines = rest.split("\n")
    if not blank or not _is_text(text + "\n") or lines.pop() != "" or not 0 < len(lines) <= _MOST_SIGNATURES:
        raise NoteInvalid("not a signed note", hint="a text, a blank line, then lines of signatures")
    return text + "\n", lines


def _signature(line: str) -> tuple[str, bytes]:
    mark, name, value = line[: len(_MARK)], *line[len(_MARK) :].partition(" ")[::2]
    try:
        data = decoded(value, at=name[:80])
    except Base64Refused as error:
        raise NoteInvalid("a signature is not base64", hint=error.hint) from error
    if mark != _MARK or not _is_name(name) or len(data) <= _HASH_SIZE:
        raise NoteInvalid("not a line of a signature", hint="a dash, a name, base64")
    return name, data


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(c.isspace() or not c.isprintable() for c in name)


def _is_text(text: str) -> bool:
    return text.endswith("\n") and not any(ord(c) < ord(" ") and c != "\n" for c in text)
