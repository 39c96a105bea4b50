"""Checkpoints (C2SP tlog-checkpoint): what a log says of itself at a size, in a signed note."""

import re
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value
from contextplane.ports.signer import PublicKey, SignatureCheck, Signer
from contextplane.trust.base64_text import Base64Refused, decoded, encoded
from contextplane.trust.note import NoteKey, opened, signed_note

__all__ = ["Checkpoint", "CheckpointInvalid", "open_checkpoint", "signed_checkpoint"]

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
        found = cls(origin=lines[0], size=int(lines[1]), root=_hash(lines[2]), time=time, heads=heads)
        if found.text != text:
            raise CheckpointInvalid("not in the one form that is written", hint="origin, size, root, time, heads")
        return found


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
