"""The registry's log and its checkpoints: what an entry says, and what the newest checkpoint says of all of them.

An entry names an event and its digest. A checkpoint is a signed note (C2SP) with the time at which it was made; it is
believed when a key signed it that was good then, and is not revoked from before then on. And the newest is not older
than a revocation: what a revoked key signs from then on, whatever time it writes, stands under no checkpoint.
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
from contextplane.registry.authority import Keyrings
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    LogRewritten,
    LogTruncated,
    NoteUnsigned,
    open_checkpoint,
    signed_checkpoint,
)
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import StreamTree, appended

__all__ = [
    "CheckpointBeforeRevocation",
    "CheckpointMissing",
    "Entry",
    "Standing",
    "append_entries",
    "check_revocations",
    "entry_body",
    "last_time",
    "newest",
    "read_note",
    "standing",
]

_HINT = "'ctx verify --registry' checks all of it; restore the catalog from a copy"
_SIGN = (
    "'ctx verify --registry --sign --key KEY' checks all and signs a fresh one; if that was done since, restore a copy"
)
_RENEWABLE = {"renewable": True}  # nothing is known to be wrong but who signed it, or when


class CheckpointMissing(ContextPlaneError):
    """There are entries in the log, and no checkpoint of them."""

    code: ClassVar[str] = "checkpoint_missing"
    family: ClassVar[Family] = "untrusted"


class CheckpointBeforeRevocation(ContextPlaneError):
    """The newest checkpoint is older than the revocation of a key: what that key signed since may stand under it."""

    code: ClassVar[str] = "checkpoint_before_revocation"
    family: ClassVar[Family] = "untrusted"


class Entry(Document, frozen=True):
    """One leaf of the log: event `seq` of `stream`, whose stored body has this SHA-256."""

    event: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    seq: int
    stream: Annotated[str, Meta(pattern=r"^\S+\Z")]


class Standing(Value, frozen=True):
    """The newest checkpoint, and its note as it was signed."""

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


def entry_body(entry: Entry) -> bytes:
    """An entry as it is stored, and as it is hashed."""
    return canonical({"event": entry.event, "seq": entry.seq, "stream": entry.stream})


def newest(streams: StreamsView, keyrings: Keyrings, check: SignatureCheck, origin: str) -> Standing | None:
    """The newest checkpoint, believed; None while there is no entry. It is not compared with the log here."""
    head = streams.head(CHECKPOINTS)
    if not head:
        if streams.head(LOG):
            raise CheckpointMissing("the log has entries and no checkpoint", at=CHECKPOINTS, hint=_HINT)
        return None
    stored = next(iter(streams.read(CHECKPOINTS, after=head - 1)))
    note, claimed = read_note(stored.body)
    try:
        checkpoint = open_checkpoint(note, origin=origin, keys=keyrings.good_at(claimed), check=check)
    except NoteUnsigned as error:
        raise _unsigned(note, stored.seq, origin, keyrings.good_then(claimed), check) from error
    return Standing(checkpoint=checkpoint, note=note)


def _unsigned(
    note: bytes, seq: int, origin: str, good_then: tuple[PublicKey, ...], check: SignatureCheck
) -> NoteUnsigned:
    """Why the newest checkpoint is not believed, and the way on. `good_then`: keys of its time, revoked or not."""
    place = f"{CHECKPOINTS}@{seq}"
    try:
        open_checkpoint(note, origin=origin, keys=good_then, check=check)
    except NoteUnsigned:
        return NoteUnsigned("no key that was trusted then signed the newest checkpoint", at=place, hint=_HINT)
    why = "the key that signed the newest checkpoint is revoked from before then on"
    return NoteUnsigned(why, at=place, hint=_SIGN, details=_RENEWABLE)


def last_time(streams: StreamsView, keyrings: Keyrings, check: SignatureCheck, origin: str) -> Timestamp:
    """The latest time on record: of the keyring's last change, and of the newest checkpoint.

    That is the newest that a key signed which was good then, whatever is known of the key since. Others say nothing.
    """
    known = keyrings.now.as_of
    last: Timestamp | None = None
    # Nearly always it is the last one. If not, all are looked at: their numbers are not believed, either.
    for after in (streams.head(CHECKPOINTS) - 1, 0):
        for stored in streams.read(CHECKPOINTS, after=max(after, 0)):
            with suppress(ContextPlaneError):
                note, claimed = read_note(stored.body)
                open_checkpoint(note, origin=origin, keys=keyrings.good_then(claimed), check=check)
                last = claimed
        if last is not None:
            return max(known, last)
    return known


def read_note(body: bytes) -> tuple[bytes, Timestamp]:
    """The note in a stored checkpoint, and the time that it claims: believed when a key of that time has signed it."""
    try:
        note = msgspec.json.decode(body, type=str).encode()
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CheckpointInvalid("not a note", at=CHECKPOINTS, hint=_HINT) from error
    claimed = Checkpoint.parse(note.decode().rpartition("\n\n")[0] + "\n")
    if claimed.time is None or claimed.heads is None:
        raise CheckpointInvalid("it says no time, or nothing of the ends of streams", at=CHECKPOINTS, hint=_HINT)
    return note, claimed.time


def standing(streams: StreamsView, keyrings: Keyrings, check: SignatureCheck, origin: str) -> Standing | None:
    """The newest checkpoint, if the log is what it says: as many entries, and the tree over them has its root."""
    status = newest(streams, keyrings, check, origin)
    size, length = 0 if status is None else status.checkpoint.size, streams.head(LOG)
    tree = StreamTree(streams, TREE)
    if min(length, tree.size) < size:
        raise LogTruncated(f"{min(length, tree.size)} entries, and {size} are signed", at=LOG, hint=_HINT)
    if max(length, tree.size) > size or (status is not None and tree.frontier().root != status.checkpoint.root):
        raise LogRewritten("its entries are not those that are signed", at=LOG, hint=_HINT)
    return status


def check_revocations(found: Standing | None, keys: TrustedKeys) -> None:
    """Refuse a newest checkpoint that is older than the time from which a key is revoked.

    Whoever has such a key signs checkpoints of times before that, and no others. A revocation that was announced for
    later counts from the first change of the keyring after it: before that, the key is good.
    """
    every = (key for issuer in keys.issuers for key in issuer.keys)
    ends = [(key.revoked_from, key.key.key_id) for key in every if key.revoked_from is not None]
    for since, key_id in sorted(ends, reverse=True):
        if found is not None and found.time < since <= keys.as_of:
            raise CheckpointBeforeRevocation(
                f"it is of {found.time}, and key {key_id[:16]} is revoked from {since} on",
                at=CHECKPOINTS,
                hint=_SIGN,
                details=_RENEWABLE,
            )


def append_entries(  # noqa: PLR0913  what a checkpoint says
    streams: Streams, entries: list[Entry], *, heads: bytes, signer: Signer, at: Timestamp, origin: str
) -> Standing:
    """Append entries to the log, hash them into its tree, and sign what it is then; without entries: sign it anew.

    `heads`: the root over the ends of all streams, these entries' events among them.
    """
    bodies = [entry_body(entry) for entry in entries]
    if bodies:
        streams.append(LOG, streams.head(LOG), [Event(kind="entry", body=body) for body in bodies])
    frontier = appended(streams, TREE, bodies)
    checkpoint = Checkpoint(origin=origin, size=frontier.size, root=frontier.root, time=at, heads=heads)
    note = signed_checkpoint(checkpoint, signer)
    body = canonical(note.decode())
    streams.append(CHECKPOINTS, streams.head(CHECKPOINTS), [Event(kind="checkpoint", body=body)])
    return Standing(checkpoint=checkpoint, note=note)
