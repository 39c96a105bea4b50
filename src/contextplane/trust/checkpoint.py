"""Checkpoints of a log as signed notes (C2SP tlog-checkpoint), and how a client follows them.

Four parts:

- the signed note (C2SP signed-note): a short text, a blank line, and lines of signatures;
- the checkpoint: the text of such a note, with the origin, size and root of a log;
- proofs as texts, for any program that knows the C2SP formats to check offline. Inclusion is `c2sp.org/tlog-proof@v1`.
  Consistency is what a C2SP witness is sent: the old size and the proof, before the new checkpoint. Each contains the
  checkpoint's note as it was signed. `contextplane.testing.standalone_verifier` reads them;
- continuity: a log is refused that was rolled back, forked, rewritten or truncated, each with its own code.

These are rules over values. The client stores the highest checkpoint seen, not the log and not this module.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey
from contextplane.model.timestamp import NO_TIME, InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.dsse import Base64Refused, decode_base64, encode_base64
from contextplane.trust.merkle import is_consistent

__all__ = [
    "Checkpoint",
    "CheckpointInvalid",
    "KeyringPosition",
    "LogForked",
    "LogRewritten",
    "LogRolledBack",
    "LogTruncated",
    "NoteInvalid",
    "NoteKey",
    "NoteUnsigned",
    "advance_checkpoint",
    "consistency_text",
    "inclusion_text",
    "open_checkpoint",
    "open_note",
    "parse_signature_line",
    "signature_line",
    "signed_checkpoint",
    "signed_note",
    "signers_of",
]

# --- signed notes ----------------------------------------------------------------------------------------------------

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
        """The four bytes at the beginning of a signature line: a hash of the name and the key."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.key.raw).digest()[:_KEY_HASH_SIZE]

    def __str__(self) -> str:
        """The key as `name+hash+key`, which other programs call a vkey."""
        return f"{self.name}+{self.hash.hex()}+{encode_base64(_ED25519 + self.key.raw)}"


def signed_note(text: str, name: str, signer: Signer) -> bytes:
    """Sign a text under a name. The text ends with a newline, and none of its lines is empty."""
    if not _is_name(name) or not _is_text(text):
        raise NoteInvalid("a note has lines without control characters, a name no space and no plus")
    key = NoteKey(name=name, key=signer.public_key)
    line = f"{_MARK}{name} {encode_base64(key.hash + signer.sign(text.encode()))}\n"
    return f"{text}\n{line}".encode()


def open_note(note: bytes, keys: Sequence[NoteKey], check: SignatureCheck) -> str:
    """Return the text of a note that at least one of the keys signed.

    A signature that names one of the keys and does not hold spoils the note. Signatures of other keys are ignored.
    """
    text, lines = _split_note(note)
    by_hint = {(key.name, key.hash): key for key in keys}
    is_signed = False
    for line in lines:
        name, value = parse_signature_line(line)
        key = by_hint.get((name, value[:_KEY_HASH_SIZE]))
        if key is None:
            continue
        if not check.holds(key.key, value[_KEY_HASH_SIZE:], text.encode()):
            raise NoteUnsigned(f"the signature of {name} does not hold", hint="the note was changed")
        is_signed = True
    if not is_signed:
        raise NoteUnsigned("no trusted key signed it", hint="see whose key signs here")
    return text


def signers_of(note: bytes, keys: Iterable[NoteKey], check: SignatureCheck) -> frozenset[str]:
    """The ids of those of the keys that signed a note."""
    text, lines = _split_note(note)
    signatures = [parse_signature_line(line) for line in lines]
    return frozenset(
        key.key.key_id
        for key in keys
        for name, value in signatures
        if (name, value[:_KEY_HASH_SIZE]) == (key.name, key.hash)
        and check.holds(key.key, value[_KEY_HASH_SIZE:], text.encode())
    )


def _split_note(note: bytes) -> tuple[str, list[str]]:
    if len(note) > _MOST_BYTES:
        raise NoteInvalid(f"{len(note)} bytes", hint=f"a note has at most {_MOST_BYTES}")
    try:
        whole = note.decode()
    except UnicodeDecodeError as error:
        raise NoteInvalid("not UTF-8") from error
    text, blank, signatures = whole.rpartition("\n\n")
    lines = signatures.split("\n")
    if not blank or not _is_text(text + "\n") or lines.pop() != "" or not 0 < len(lines) <= _MOST_SIGNATURES:
        raise NoteInvalid("not a signed note", hint="a text, a blank line, then lines of signatures")
    return text + "\n", lines


def signature_line(name: str, data: bytes) -> str:
    """Format a line of a signature, without its newline. `data`: the hash of the key, and the signature."""
    if not _is_name(name):
        raise NoteInvalid("a name has no space and no plus")
    return f"{_MARK}{name} {encode_base64(data)}"


def parse_signature_line(line: str) -> tuple[str, bytes]:
    """Read a line of a signature: a name, the hash of the key and the signature."""
    mark, name, value = line[: len(_MARK)], *line[len(_MARK) :].partition(" ")[::2]
    try:
        data = decode_base64(value, at=name[:80])
    except Base64Refused as error:
        raise NoteInvalid("a signature is not base64", hint=error.hint) from error
    if mark != _MARK or not _is_name(name) or len(data) <= _KEY_HASH_SIZE:
        raise NoteInvalid("not a line of a signature", hint="a dash, a name, base64")
    return name, data


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(c.isspace() or not c.isprintable() for c in name)


def _is_text(text: str) -> bool:
    return text.endswith("\n") and not any(ord(c) < ord(" ") and c != "\n" for c in text)


# --- the checkpoint --------------------------------------------------------------------------------------------------

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_HASH_SIZE = 32
_FIRST = 3  # origin, size, root; extensions stand after them
_TIME, _HEADS, _KEYRING = "time ", "heads ", "keyring "
_POSITION = re.compile(r"(0|[1-9][0-9]{0,15}) ([0-9a-f]{64})")


class CheckpointInvalid(ContextPlaneError):
    """A note that is not a checkpoint of the log that is asked for."""

    code: ClassVar[str] = "checkpoint_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyringPosition(Value, frozen=True):
    """The end of a keyring: the number of its changes, and the SHA-256 of the last one."""

    seq: int
    head: str


class Checkpoint(Value, frozen=True):
    """A log (`origin`), the number of its entries, and the root of the tree over them.

    Extensions: `time` is when the signer says that it was made; `heads` is the root over the ends of all streams that
    the entries are about; `keyring` is the keyring under which it was made. The first format has no `keyring`.
    """

    origin: str
    size: int
    root: bytes
    time: Timestamp | None = None
    heads: bytes | None = None
    keyring: KeyringPosition | None = None

    @property
    def text(self) -> str:
        time = "" if self.time is None else f"{_TIME}{self.time}\n"
        heads = "" if self.heads is None else f"{_HEADS}{encode_base64(self.heads)}\n"
        keyring = "" if self.keyring is None else f"{_KEYRING}{self.keyring.seq} {self.keyring.head}\n"
        return f"{self.origin}\n{self.size}\n{encode_base64(self.root)}\n{time}{heads}{keyring}"

    @property
    def height(self) -> tuple[int, Timestamp]:
        """What a later checkpoint of the same log has more of: entries, or else time."""
        return self.size, self.time or NO_TIME

    @classmethod
    def parse_note(cls, note: str) -> "Checkpoint":
        """Read the text of a signed note. Its signatures are not looked at."""
        return cls.parse(note.rpartition("\n\n")[0] + "\n")

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Read the text of a note. An unknown extension is refused, because nothing here would check it."""
        lines = text.split("\n")
        if len(lines) <= _FIRST or not lines[0] or _SIZE.fullmatch(lines[1]) is None:
            raise CheckpointInvalid("not a checkpoint", hint="three lines: origin, size, root")
        time = heads = keyring = None
        for line in lines[_FIRST:-1]:
            if line.startswith(_TIME):
                time = _parse_time(line)
            elif line.startswith(_HEADS):
                heads = _parse_hash(line.removeprefix(_HEADS))
            elif (position := _POSITION.fullmatch(line.removeprefix(_KEYRING))) is not None:
                keyring = KeyringPosition(seq=int(position[1]), head=position[2])
            else:
                raise CheckpointInvalid(f"not a line that is known: {line[:80]!r}")
        checkpoint = cls(
            origin=lines[0], size=int(lines[1]), root=_parse_hash(lines[2]), time=time, heads=heads, keyring=keyring
        )
        if checkpoint.text != text:
            raise CheckpointInvalid(
                "not in the one form that is written", hint="origin, size, root, time, heads, keyring"
            )
        return checkpoint


def _parse_hash(text: str) -> bytes:
    try:
        root = decode_base64(text, at="/root")
    except Base64Refused as error:
        raise CheckpointInvalid("its root is not base64", hint=error.hint) from error
    if len(root) != _HASH_SIZE:
        raise CheckpointInvalid(f"a root of {len(root)} bytes", hint="SHA-256 has 32")
    return root


def _parse_time(line: str) -> Timestamp:
    try:
        return Timestamp.parse(line.removeprefix(_TIME))
    except InvalidTimestamp as error:
        raise CheckpointInvalid(f"not a time: {line[:80]!r}", hint=error.hint) from error


def signed_checkpoint(checkpoint: Checkpoint, signer: Signer) -> bytes:
    """Sign a checkpoint as a note, under the name of its origin."""
    return signed_note(checkpoint.text, checkpoint.origin, signer)


def open_checkpoint(note: bytes, *, origin: str, keys: tuple[PublicKey, ...], check: SignatureCheck) -> Checkpoint:
    """Return the checkpoint in a note that one of the keys of this log signed."""
    note_keys = [NoteKey(name=origin, key=key) for key in keys]
    checkpoint = Checkpoint.parse(open_note(note, note_keys, check))
    if checkpoint.origin != origin:
        raise CheckpointInvalid(f"a checkpoint of {checkpoint.origin[:80]!r}, not of {origin!r}")
    return checkpoint


# --- proofs as texts -------------------------------------------------------------------------------------------------

_HEADER = "c2sp.org/tlog-proof@v1\n"


def inclusion_text(index: int, path: Sequence[bytes], note: bytes) -> bytes:
    """Format a proof that the log of this note has an entry at `index`."""
    return _HEADER.encode() + _proof_text("index", index, path, note)


def consistency_text(old: int, path: Sequence[bytes], note: bytes) -> bytes:
    """Format a proof that the log of this note begins with its first `old` entries."""
    return _proof_text("old", old, path, note)


def _proof_text(word: str, number: int, path: Sequence[bytes], note: bytes) -> bytes:
    lines = [f"{word} {number}", *map(encode_base64, path), "", ""]
    return "\n".join(lines).encode() + note


# --- continuity ------------------------------------------------------------------------------------------------------

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


def advance_checkpoint(seen: Checkpoint | None, shown: Checkpoint, proof: Sequence[bytes]) -> Checkpoint:
    """Verify consistency from `seen` to `shown` and return the newer. Trust on first use.

    `proof`: the hashes that lead from the tree of `seen` to the tree of `shown`.
    """
    if seen is None:
        return shown
    if seen.origin != shown.origin:
        raise LogForked(f"a checkpoint of {shown.origin!r} instead of {seen.origin!r}", hint=_HINT)
    if shown.size < seen.size:
        raise LogRolledBack(f"{shown.size} entries, and {seen.size} were seen before", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.root != seen.root:
        raise LogForked(f"two different logs of {seen.size} entries", at=seen.origin, hint=_HINT)
    if seen.keyring is not None and (shown.keyring is None or shown.keyring.seq < seen.keyring.seq):
        raise LogRolledBack("a checkpoint with an older keyring than was seen before", at=seen.origin, hint=_HINT)
    if shown.size == seen.size and shown.heads != seen.heads:
        raise LogForked(f"two different ends of streams with {seen.size} entries", at=seen.origin, hint=_HINT)
    if seen.time is not None and (shown.time is None or shown.time < seen.time):
        raise LogRolledBack(
            f"a checkpoint of {shown.time}, and one of {seen.time} was seen before", at=seen.origin, hint=_HINT
        )
    if not is_consistent(seen.size, seen.root, shown.size, root=shown.root, proof=proof):
        raise LogRewritten(f"its first {seen.size} entries are not proved the same", at=seen.origin, hint=_HINT)
    return shown
