"""The registry's log of entries, and the checkpoints over it.

An entry names an event and its digest. A checkpoint is a signed note (C2SP) with the time at which it was made. It is
trusted if the key that signed it was valid then and is not revoked from a time before it. The newest checkpoint must
not be older than a revocation: so nothing that a revoked key signs afterwards is covered by a checkpoint, even if
it writes an earlier time.
"""

from contextlib import suppress
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event
from contextplane.model.json.canonical import canonical
from contextplane.model.keys import PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    LogRewritten,
    LogTruncated,
    NoteKey,
    NoteUnsigned,
    open_checkpoint,
    open_note,
    signed_checkpoint,
)
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import StreamTree, append_leaves

__all__ = [
    "CheckpointBeforeRevocation",
    "CheckpointMissing",
    "LogEntry",
    "VerifiedCheckpoint",
    "append_entries",
    "check_revocations",
    "checkpoint_key",
    "entry_body",
    "latest_time",
    "newest_checkpoint",
    "read_note",
    "verify_checkpoint",
]

_HINT = "'ctx verify --registry' checks all of it; restore the catalog from a copy"
_SIGN = (
    "'ctx verify --registry --sign --key KEY' checks all and signs a fresh one; if that was done since, restore a copy"
)
_RENEWABLE = {"renewable": True}  # the only known problem is who signed it, or when


class CheckpointMissing(ContextPlaneError):
    """There are entries in the log, and no checkpoint of them."""

    code: ClassVar[str] = "checkpoint_missing"
    family: ClassVar[Family] = "untrusted"


class CheckpointBeforeRevocation(ContextPlaneError):
    """The newest checkpoint is older than the revocation of a key.

    It may cover what that key signed since.
    """

    code: ClassVar[str] = "checkpoint_before_revocation"
    family: ClassVar[Family] = "untrusted"


class LogEntry(Document, frozen=True):
    """One leaf of the log: event `seq` of `stream`, whose stored body has this SHA-256."""

    event: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    seq: int
    stream: Annotated[str, Meta(pattern=r"^\S+\Z")]


class VerifiedCheckpoint(Value, frozen=True):
    """A checkpoint whose signature was checked, and its note as it was signed."""

    checkpoint: Checkpoint
    note: bytes

    @property
    def time(self) -> Timestamp:
        if self.checkpoint.time is None:
            raise CheckpointInvalid("it says no time", at=CHECKPOINTS)
        return self.checkpoint.time

    @property
    def heads(self) -> bytes:
        """The root over the ends of all streams."""
        if self.checkpoint.heads is None:
            raise CheckpointInvalid("it says nothing of the ends of streams", at=CHECKPOINTS)
        return self.checkpoint.heads


def entry_body(entry: LogEntry) -> bytes:
    """An entry as it is stored, and as it is hashed."""
    return canonical({"event": entry.event, "seq": entry.seq, "stream": entry.stream})


def newest_checkpoint(
    streams: StreamsView, keyrings: KeyringHistory, check: SignatureCheck, origin: str
) -> VerifiedCheckpoint | None:
    """Open the newest checkpoint; None while there is no entry. It is not compared with the log here."""
    head = streams.head(CHECKPOINTS)
    if not head:
        if streams.head(LOG):
            raise CheckpointMissing("the log has entries and no checkpoint", at=CHECKPOINTS, hint=_HINT)
        return None
    stored = next(iter(streams.read(CHECKPOINTS, after=head - 1)))
    note, claimed = read_note(stored.body)
    try:
        checkpoint = open_checkpoint(note, origin=origin, keys=keyrings.trusted_keys_at(claimed), check=check)
    except NoteUnsigned as error:
        raise _unsigned_error(note, stored.seq, origin, keyrings.trusted_keys_then(claimed), check) from error
    return VerifiedCheckpoint(checkpoint=checkpoint, note=note)


def _unsigned_error(
    note: bytes, seq: int, origin: str, trusted_keys_then: tuple[PublicKey, ...], check: SignatureCheck
) -> NoteUnsigned:
    """Explain why the newest checkpoint is not trusted, with a hint.

    `trusted_keys_then`: the keys of its time, revoked or not.
    """
    place = f"{CHECKPOINTS}@{seq}"
    try:
        open_checkpoint(note, origin=origin, keys=trusted_keys_then, check=check)
    except NoteUnsigned:
        return NoteUnsigned("no key that was trusted then signed the newest checkpoint", at=place, hint=_HINT)
    why = "the key that signed the newest checkpoint is revoked from before then on"
    return NoteUnsigned(why, at=place, hint=_SIGN, details=_RENEWABLE)


def latest_time(streams: StreamsView, keyrings: KeyringHistory, check: SignatureCheck, origin: str) -> Timestamp:
    """The latest time on record: of the keyring's last change or of the newest checkpoint.

    Checkpoints count if their key was valid then, later revocations ignored.
    """
    known = keyrings.now.as_of
    last: Timestamp | None = None
    # Nearly always it is the last one. If not, all are read: their numbers are not trusted, either.
    for after in (streams.head(CHECKPOINTS) - 1, 0):
        for stored in streams.read(CHECKPOINTS, after=max(after, 0)):
            with suppress(ContextPlaneError):
                note, claimed = read_note(stored.body)
                open_checkpoint(note, origin=origin, keys=keyrings.trusted_keys_then(claimed), check=check)
                last = claimed
        if last is not None:
            return max(known, last)
    return known


def read_note(body: bytes) -> tuple[bytes, Timestamp]:
    """Parse a stored checkpoint; returns its note and the time that it claims, both unverified."""
    try:
        note = msgspec.json.decode(body, type=str).encode()
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CheckpointInvalid("not a note", at=CHECKPOINTS, hint=_HINT) from error
    claimed = Checkpoint.parse(note.decode().rpartition("\n\n")[0] + "\n")
    if claimed.time is None or claimed.heads is None:
        raise CheckpointInvalid("it says no time, or nothing of the ends of streams", at=CHECKPOINTS, hint=_HINT)
    return note, claimed.time


def verify_checkpoint(
    streams: StreamsView, keyrings: KeyringHistory, check: SignatureCheck, origin: str
) -> VerifiedCheckpoint | None:
    """Open the newest checkpoint and refuse a log that is not of its size and root."""
    newest = newest_checkpoint(streams, keyrings, check, origin)
    size, length = 0 if newest is None else newest.checkpoint.size, streams.head(LOG)
    tree = StreamTree(streams, TREE)
    if min(length, tree.size) < size:
        raise LogTruncated(f"{min(length, tree.size)} entries, and {size} are signed", at=LOG, hint=_HINT)
    if max(length, tree.size) > size or (newest is not None and tree.frontier().root != newest.checkpoint.root):
        raise LogRewritten("its entries are not those that are signed", at=LOG, hint=_HINT)
    return newest


def check_revocations(newest: VerifiedCheckpoint | None, keys: TrustedKeys) -> None:
    """Refuse a newest checkpoint that is older than the time from which a key is revoked.

    Such a key could still sign checkpoints of times before that. A revocation that was announced for later counts from
    the first change of the keyring after it: before that, the key is valid.
    """
    keyring_keys = (key for issuer in keys.issuers for key in issuer.keys)
    ends = [(key.revoked_from, key.key.key_id) for key in keyring_keys if key.revoked_from is not None]
    for since, key_id in sorted(ends, reverse=True):
        if newest is not None and newest.time < since <= keys.as_of:
            raise CheckpointBeforeRevocation(
                f"it is of {newest.time}, and key {key_id[:16]} is revoked from {since} on",
                at=CHECKPOINTS,
                hint=_SIGN,
                details=_RENEWABLE,
            )


def append_entries(  # noqa: PLR0913  what a checkpoint says
    streams: Streams, entries: list[LogEntry], *, heads: bytes, signer: Signer, at: Timestamp, origin: str
) -> VerifiedCheckpoint:
    """Append entries to the log and its tree, and sign a new checkpoint. Without entries, only sign.

    `heads`: the root over the ends of all streams, including the events of these entries.
    """
    bodies = [entry_body(entry) for entry in entries]
    if bodies:
        streams.append(LOG, streams.head(LOG), [Event(kind="entry", body=body) for body in bodies])
    frontier = append_leaves(streams, TREE, bodies)
    checkpoint = Checkpoint(origin=origin, size=frontier.size, root=frontier.root, time=at, heads=heads)
    note = signed_checkpoint(checkpoint, signer)
    body = canonical(note.decode())
    streams.append(CHECKPOINTS, streams.head(CHECKPOINTS), [Event(kind="checkpoint", body=body)])
    return VerifiedCheckpoint(checkpoint=checkpoint, note=note)


def checkpoint_key(verified: VerifiedCheckpoint, keyrings: KeyringHistory, check: SignatureCheck) -> NoteKey:
    """The key that signed a checkpoint, with the name of the log."""
    for key in keyrings.trusted_keys_at(verified.time):
        note_key = NoteKey(name=verified.checkpoint.origin, key=key)
        try:
            open_note(verified.note, [note_key], check)
        except NoteUnsigned:
            continue
        return note_key
    raise NoteUnsigned("signed by nobody whom we trust for it", at=LOG)
