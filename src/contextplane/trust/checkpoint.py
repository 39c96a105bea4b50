"""Checkpoints (C2SP tlog-checkpoint): what a log says of itself at a size, in a signed note.

Signed notes (C2SP signed-note): a short text, a blank line, and signatures in lines that people can read.

It knows nothing of what a text says; `checkpoint.py` does.

Proofs as texts that can be carried away and checked offline, by any program that knows the C2SP formats.

Inclusion: `c2sp.org/tlog-proof@v1`. Consistency: what a C2SP witness is sent, the old size and the proof before the new
checkpoint. Each contains the checkpoint's note as it was signed. They are written here, and read by others:
`contextplane.testing.standalone_verifier` is one of those.

Whether a log is still the one that we knew: nothing rolled back, forked, rewritten or truncated. Each has its code.

Rules over values: what was seen before, what is shown now. Who keeps the highest checkpoint seen, and where, is not
decided here; it must be the client, and not the log.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.dsse import Base64Refused, decoded, encoded
from contextplane.trust.merkle import is_consistent

__all__ = [
    "Checkpoint",
    "CheckpointInvalid",
    "LogForked",
    "LogRewritten",
    "LogRolledBack",
    "LogTruncated",
    "NoteInvalid",
    "NoteKey",
    "NoteUnsigned",
    "advanced",
    "consistency_text",
    "inclusion_text",
    "open_checkpoint",
    "opened",
    "signed_checkpoint",
    "signed_note",
]

_MARK = "\u2014 "  # an em dash
_ED25519 = b"\x01"
_KEY_HASH_SIZE, _SIGNATURE_SIZE = 4, 64
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
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.key.raw).digest()[:_KEY_HASH_SIZE]

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
        key = wanted.get((name, value[:_KEY_HASH_SIZE]))
        if key is None:
            continue
        if not check.holds(key.key, value[_KEY_HASH_SIZE:], text.encode()):
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
    if mark != _MARK or not _is_name(name) or len(data) <= _KEY_HASH_SIZE:
        raise NoteInvalid("not a line of a signature", hint="a dash, a name, base64")
    return name, data


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(c.isspace() or not c.isprintable() for c in name)


def _is_text(text: str) -> bool:
    return text.endswith("\n") and not any(ord(c) < ord(" ") and c != "\n" for c in text)


_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_HASH_SIZE = 32
_FIRST = 3  # origin, size, root; extensions stand after them
_TIME, _HEADS = "time ", "heads "


class CheckpointInvalid(ContextPlaneError):
    """A note that is not a checkpoint of the log that is asked for."""

    code: ClassVar[str] = "checkpoint_invalid"
    family: ClassVar[Family] = "untrusted"


class Checkpoint(Value, frozen=True):
    """A log (`origin`), how many entries it has, and the root of the tree that they make.

    Extensions: `time` is when whoever signed it says that it was made; `heads` is the root over the ends of all streams
    that the entries are about.
    """

    origin: str
    size: int
    root: bytes
    time: Timestamp | None = None
    heads: bytes | None = None

    @property
    def text(self) -> str:
        time = "" if self.time is None else f"{_TIME}{self.time}\n"
        heads = "" if self.heads is None else f"{_HEADS}{encoded(self.heads)}\n"
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n{time}{heads}"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Read the text of a note. Other extensions are refused: nobody here would look at them."""
        lines = text.split("\n")
        if len(lines) <= _FIRST or not lines[0] or _SIZE.fullmatch(lines[1]) is None:
            raise CheckpointInvalid("not a checkpoint", hint="three lines: origin, size, root")
        time = heads = None
        for line in lines[_FIRST:-1]:
            if line.startswith(_TIME):
                time = _time(line)
            elif line.startswith(_HEADS):
                heads = _hash(line.removeprefix(_HEADS))
            else:
                raise CheckpointInvalid(f"not a line that is known: {line[:80]!r}")
        checkpoint = cls(origin=lines[0], size=int(lines[1]), root=_hash(lines[2]), time=time, heads=heads)
        if checkpoint.text != text:
            raise CheckpointInvalid("not in the one form that is written", hint="origin, size, root, time, heads")
        return checkpoint


def _hash(text: str) -> bytes:
    try:
        root = decoded(text, at="/root")
    except Base64Refused as error:
        raise CheckpointInvalid("its root is not base64", hint=error.hint) from error
    if len(root) != _HASH_SIZE:
        raise CheckpointInvalid(f"a root of {len(root)} bytes", hint="SHA-256 has 32")
    return root


def _time(line: str) -> Timestamp:
    try:
        return Timestamp.parse(line.removeprefix(_TIME))
    except InvalidTimestamp as error:
        raise CheckpointInvalid(f"not a time: {line[:80]!r}", hint=error.hint) from error


def signed_checkpoint(checkpoint: Checkpoint, signer: Signer) -> bytes:
    """The note of a checkpoint, signed under its origin's name."""
    return signed_note(checkpoint.text, checkpoint.origin, signer)


def open_checkpoint(note: bytes, *, origin: str, keys: tuple[PublicKey, ...], check: SignatureCheck) -> Checkpoint:
    """The checkpoint in a note that a key of this log has signed."""
    named = [NoteKey(name=origin, key=key) for key in keys]
    checkpoint = Checkpoint.parse(opened(note, named, check))
    if checkpoint.origin != origin:
        raise CheckpointInvalid(f"a checkpoint of {checkpoint.origin[:80]!r}, not of {origin!r}")
    return checkpoint


_HEADER = "c2sp.org/tlog-proof@v1\n"


def inclusion_text(index: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _HEADER.encode() + _written("index", index, path, note)


def consistency_text(old: int, path: Sequence[bytes], note: bytes) -> bytes:
    return _written("old", old, path, note)


def _written(word: str, number: int, path: Sequence[bytes], note: bytes) -> bytes:
    lines = [f"{word} {number}", *map(encoded, path), "", ""]
    return "\n".join(lines).encode() + note


_HINT = "do not trust this log; compare it with a copy"


class LogRolledBack(ContextPlaneError):
    """A log shows a checkpoint of fewer entries than one that it showed before."""

    code: ClassVar[str] = "log_rolled_back"
    family: ClassVar[Family] = "untrusted"


class LogForked(ContextPlaneError):
    """A log signed two different trees of the same size: it shows different people different things."""

    code: ClassVar[str] = "log_forked"
    family: ClassVar[Family] = "untrusted"


class LogRewritten(ContextPlaneError):
    """A log does not begin with the entries that it had, or its entries are not those that it signed."""

    code: ClassVar[str] = "log_rewritten"
    family: ClassVar[Family] = "untrusted"


class LogTruncated(ContextPlaneError):
    """A log has fewer entries than it signed."""

    code: ClassVar[str] = "log_truncated"
    family: ClassVar[Family] = "untrusted"


def advanced(seen: Checkpoint | None, shown: Checkpoint, proof: Sequence[bytes]) -> Checkpoint:
    """The highest checkpoint after looking at one more; `proof` leads from `seen` to `shown`. The first is believed."""
    if seen is None:
        return shown
    if seen.origin != shown.origin:
        raise LogForked(f"a checkpoint of {shown.origin!r} instead of {seen.origin!r}", hint=_HINT)
    if shown.size < seen.size:
        raise LogRolledBack(f"{shown.size} entries, and {seen.size} were seen before", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.root != seen.root:
        raise LogForked(f"two different logs of {seen.size} entries", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.heads != seen.heads:
        raise LogForked(f"two different ends of streams with {seen.size} entries", at=seen.origin, hint=_HINT)
    if seen.time is not None and (shown.time is None or shown.time < seen.time):
        raise LogRolledBack(
            f"a checkpoint of {shown.time}, and one of {seen.time} was seen before", at=seen.origin, hint=_HINT
        )
    if not is_consistent(seen.size, seen.root, shown.size, root=shown.root, proof=proof):
        raise LogRewritten(f"its first {seen.size} entries are not proved the same", at=seen.origin, hint=_HINT)
    return shown
