"""A Merkle log in the catalog: its entries, the tree over them, and the checkpoints that sign it.

An entry names an event and its digest. A checkpoint is a signed note (C2SP) with the time at which it was made. It is
trusted if the key that signed it could sign the log then and is not revoked from a time before it. It names the keyring
under which it was made. The newest checkpoint must name the newest keyring and not be older: so nothing that a revoked
key signs afterwards is covered by a checkpoint, even if it writes an earlier time, and no old keyring can be shown with
a newer log.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, ClassVar, Protocol

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.keys import PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document, Value
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.store.event_stream import last_event
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    KeyringPosition,
    LogRewritten,
    LogTruncated,
    NoteInvalid,
    NoteKey,
    NoteUnsigned,
    open_checkpoint,
    open_note,
    signed_checkpoint,
)
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.keyring_stream import KeyringRewritten, KeyringRolledBack
from contextplane.trust.merkle import StreamTree, append_leaves

__all__ = [
    "CheckpointBeforeKeyring",
    "CheckpointBeforeRevocation",
    "CheckpointKeys",
    "CheckpointMissing",
    "LogEntry",
    "MerkleLog",
    "VerifiedCheckpoint",
    "believed_checkpoint",
    "entry_body",
    "revoked_keys",
]

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


class CheckpointBeforeKeyring(ContextPlaneError):
    """The newest checkpoint was made under an older keyring than the newest one."""

    code: ClassVar[str] = "checkpoint_before_keyring"
    family: ClassVar[Family] = "untrusted"


class LogEntry(Document, frozen=True, omit_defaults=True):
    """One leaf of the log: event `seq` of `stream`, whose stored body has this SHA-256.

    `previous`: the SHA-256 of the event before it in the stream, empty if it is the first; None in the first format.
    """

    event: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    seq: Annotated[int, Meta(ge=1)]
    stream: Annotated[str, Meta(pattern=r"^\S+\Z")]
    previous: Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")] | None = None


class VerifiedCheckpoint(Value, frozen=True):
    """A checkpoint whose signature was checked, and its note as it was signed."""

    checkpoint: Checkpoint
    note: bytes

    @property
    def time(self) -> Timestamp:
        if self.checkpoint.time is None:
            raise CheckpointInvalid("it has no time", at=self.checkpoint.origin)
        return self.checkpoint.time

    @property
    def heads(self) -> bytes:
        """The root over the ends of all streams."""
        if self.checkpoint.heads is None:
            raise CheckpointInvalid("it has no ends of streams", at=self.checkpoint.origin)
        return self.checkpoint.heads

    @property
    def is_first_format(self) -> bool:
        return self.checkpoint.keyring is None


def entry_body(entry: LogEntry) -> bytes:
    """An entry as it is stored, and as it is hashed."""
    members: dict[str, Json] = {"event": entry.event, "seq": entry.seq, "stream": entry.stream}
    return canonical(members if entry.previous is None else members | {"previous": entry.previous})


class CheckpointKeys(Protocol):
    """The keys that may sign checkpoints, by time.

    `now`: the newest keyring, which the caller has verified.
    """

    @property
    def now(self) -> TrustedKeys: ...

    def trusted_keys_at(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that were valid at a time, and are not revoked from before it."""
        ...

    def trusted_keys_then(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that were valid at a time, later revocations ignored."""
        ...


def revoked_keys(keys: TrustedKeys, at: Timestamp) -> tuple[PublicKey, ...]:
    """All keys that a keyring has revoked from a time or from before it: what they signed then is void."""
    entries = (key for issuer in keys.issuers for key in issuer.keys)
    return tuple({key.key for key in entries if key.state_at(at) == "revoked"})


def believed_checkpoint(note: bytes, keys: TrustedKeys, check: SignatureCheck) -> Checkpoint:
    """Read a checkpoint that a client remembers; without its time if that is not believed any more.

    That is so if its signer is revoked from before it. The log that the client saw stays the one that every later log
    must continue.
    """
    checkpoint = Checkpoint.parse_note(note.decode())
    if checkpoint.time is None:
        return checkpoint
    void = revoked_keys(keys, checkpoint.time)
    others = {key.key for issuer in keys.issuers for key in issuer.keys} - {*void}
    # A signature that somebody added to the note of another key changes nothing.
    is_void = _is_signed(note, checkpoint.origin, void, check) and not _is_signed(
        note, checkpoint.origin, others, check
    )
    return replace(checkpoint, time=None) if is_void else checkpoint


def _is_signed(note: bytes, origin: str, keys: Iterable[PublicKey], check: SignatureCheck) -> bool:
    try:
        open_note(note, [NoteKey(name=origin, key=key) for key in keys], check)
    except (NoteInvalid, NoteUnsigned):
        return False
    return True


class MerkleLog(Value, frozen=True):
    """Where a log is kept: the stream of its entries, the name of its tree, the stream of its checkpoints.

    `restore_hint`: the way out when the log is damaged. `renew_hint`: when only a fresh checkpoint is needed.
    """

    entries: str
    tree: str
    checkpoints: str
    restore_hint: str
    renew_hint: str

    def newest_checkpoint(
        self, streams: StreamsView, keyrings: CheckpointKeys, check: SignatureCheck, origin: str
    ) -> VerifiedCheckpoint | None:
        """Open the newest checkpoint; None while there is no entry. It is not compared with the log here."""
        stored = last_event(streams, self.checkpoints)
        if stored is None:
            if streams.head(self.entries):
                raise CheckpointMissing(
                    "the log has entries and no checkpoint", at=self.checkpoints, hint=self.restore_hint
                )
            return None
        note, claimed = self.read_note(stored.body)
        try:
            checkpoint = open_checkpoint(note, origin=origin, keys=keyrings.trusted_keys_at(claimed), check=check)
        except NoteUnsigned as error:
            keys = (*keyrings.trusted_keys_then(claimed), *revoked_keys(keyrings.now, claimed))
            raise self._unsigned_error(note, stored.seq, origin, keys, check) from error
        return VerifiedCheckpoint(checkpoint=checkpoint, note=note)

    def verify_checkpoint(
        self, streams: StreamsView, keyrings: CheckpointKeys, check: SignatureCheck, origin: str
    ) -> VerifiedCheckpoint | None:
        """Open the newest checkpoint and refuse a log that is not of its size and root."""
        newest = self.newest_checkpoint(streams, keyrings, check, origin)
        size, length = 0 if newest is None else newest.checkpoint.size, streams.head(self.entries)
        tree = StreamTree(streams, self.tree)
        if min(length, tree.size) < size:
            raise LogTruncated(
                f"{min(length, tree.size)} entries, and {size} are signed", at=self.entries, hint=self.restore_hint
            )
        if max(length, tree.size) > size or (newest is not None and tree.frontier().root != newest.checkpoint.root):
            raise LogRewritten("its entries are not those that are signed", at=self.entries, hint=self.restore_hint)
        return newest

    def check_keyring(self, newest: VerifiedCheckpoint | None, keys: TrustedKeys) -> None:
        """Refuse a newest checkpoint that was made under another keyring than the newest.

        A keyring that is older than the checkpoint says was put back: a revocation may be missing. A checkpoint that is
        older than the keyring may cover what a key signed that is revoked since.
        """
        if newest is None:
            if keys.sealed is not None:
                raise CheckpointMissing(
                    "the keyring has changes and no checkpoint covers them", at=self.checkpoints, hint=self.renew_hint
                )
            return
        position = newest.checkpoint.keyring
        if position is None:
            self._check_revocations(newest, keys)
            if keys.sealed is not None:
                raise self._before_keyring_error(newest, keys)
        elif position.seq > keys.seq:
            raise KeyringRolledBack(
                f"{keys.seq} changes, and the newest checkpoint was made under {position.seq}",
                at=KEYRING_STREAM,
                hint=self.restore_hint,
            )
        elif position.seq == keys.seq and position.head != keys.head:
            raise KeyringRewritten(
                "it is not the one that the newest checkpoint was made under", at=KEYRING_STREAM, hint=self.restore_hint
            )
        elif position.seq < keys.seq or newest.time < keys.as_of:
            self._check_revocations(newest, keys)
            raise self._before_keyring_error(newest, keys)

    def _check_revocations(self, newest: VerifiedCheckpoint, keys: TrustedKeys) -> None:
        """Refuse a newest checkpoint that is older than the time from which a key is revoked.

        Such a key could still sign checkpoints of times before that. A revocation that was announced for later counts
        from the first change of the keyring after it: before that, the key is valid.
        """
        keyring_keys = (key for issuer in keys.issuers for key in issuer.keys)
        ends = [(key.revoked_from, key.key.key_id) for key in keyring_keys if key.revoked_from is not None]
        for since, key_id in sorted(ends, reverse=True):
            if newest.time < since <= keys.as_of:
                raise CheckpointBeforeRevocation(
                    f"it is of {newest.time}, and key {key_id[:16]} is revoked from {since} on",
                    at=self.checkpoints,
                    hint=self.renew_hint,
                    details=_RENEWABLE,
                )

    def _before_keyring_error(self, newest: VerifiedCheckpoint, keys: TrustedKeys) -> CheckpointBeforeKeyring:
        return CheckpointBeforeKeyring(
            f"it is of {newest.time}, and the keyring changed at {keys.as_of}",
            at=self.checkpoints,
            hint=self.renew_hint,
            details=_RENEWABLE,
        )

    def latest_checkpoint(
        self, streams: StreamsView, keyrings: CheckpointKeys, check: SignatureCheck, origin: str
    ) -> VerifiedCheckpoint | None:
        """The last checkpoint whose time counts. It is not compared with the log here.

        Its key could sign the log then, and is not revoked from before it.
        """
        last: VerifiedCheckpoint | None = None
        # Nearly always it is the last one. If not, all are read: their numbers are not trusted, either.
        for after in (streams.head(self.checkpoints) - 1, 0):
            for stored in streams.read(self.checkpoints, after=max(after, 0)):
                with suppress(ContextPlaneError):
                    note, claimed = self.read_note(stored.body)
                    keys = keyrings.trusted_keys_at(claimed)
                    checkpoint = open_checkpoint(note, origin=origin, keys=keys, check=check)
                    last = VerifiedCheckpoint(checkpoint=checkpoint, note=note)
            if last is not None:
                return last
        return None

    def read_note(self, body: bytes) -> tuple[bytes, Timestamp]:
        """Parse a stored checkpoint; returns its note and the time that it claims, both unverified."""
        note, claimed = self._parse_note(body)
        if claimed.time is None or claimed.heads is None:
            raise CheckpointInvalid(
                "it has no time, or no ends of streams", at=self.checkpoints, hint=self.restore_hint
            )
        return note, claimed.time

    def claimed_checkpoint(self, body: bytes) -> Checkpoint:
        """Parse a stored checkpoint, unverified."""
        return self._parse_note(body)[1]

    def _parse_note(self, body: bytes) -> tuple[bytes, Checkpoint]:
        try:
            note = msgspec.json.decode(body, type=str)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise CheckpointInvalid("not a note", at=self.checkpoints, hint=self.restore_hint) from error
        return note.encode(), Checkpoint.parse_note(note)

    def append_entries(  # noqa: PLR0913  what a checkpoint says
        self,
        streams: Streams,
        entries: list[LogEntry],
        *,
        heads: bytes,
        keyring: KeyringPosition,
        signer: Signer,
        at: Timestamp,
        origin: str,
    ) -> VerifiedCheckpoint:
        """Append entries to the log and its tree, and sign a new checkpoint. Without entries, only sign.

        `heads`: the root over the ends of all streams, including the events of these entries.
        """
        bodies = [entry_body(entry) for entry in entries]
        if bodies:
            streams.append(
                self.entries, streams.head(self.entries), [Event(kind="entry", body=body) for body in bodies]
            )
        frontier = append_leaves(streams, self.tree, bodies)
        checkpoint = Checkpoint(
            origin=origin, size=frontier.size, root=frontier.root, time=at, heads=heads, keyring=keyring
        )
        note = signed_checkpoint(checkpoint, signer)
        body = canonical(note.decode())
        streams.append(self.checkpoints, streams.head(self.checkpoints), [Event(kind="checkpoint", body=body)])
        return VerifiedCheckpoint(checkpoint=checkpoint, note=note)

    def checkpoint_key(self, verified: VerifiedCheckpoint, keyrings: CheckpointKeys, check: SignatureCheck) -> NoteKey:
        """The key that signed a checkpoint, with the name of the log."""
        for key in keyrings.trusted_keys_at(verified.time):
            note_key = NoteKey(name=verified.checkpoint.origin, key=key)
            try:
                open_note(verified.note, [note_key], check)
            except NoteUnsigned:
                continue
            return note_key
        raise NoteUnsigned("no trusted key signed it", at=self.entries)

    def _unsigned_error(
        self, note: bytes, seq: int, origin: str, former_keys: tuple[PublicKey, ...], check: SignatureCheck
    ) -> NoteUnsigned:
        """Explain why the newest checkpoint is not trusted, with a hint.

        `former_keys`: the keys of its time, revoked or not.
        """
        place = f"{self.checkpoints}@{seq}"
        try:
            open_checkpoint(note, origin=origin, keys=former_keys, check=check)
        except NoteUnsigned:
            return NoteUnsigned(
                "no key that was trusted then signed the newest checkpoint", at=place, hint=self.restore_hint
            )
        why = "the key that signed the newest checkpoint is revoked from before that time"
        return NoteUnsigned(why, at=place, hint=self.renew_hint, details=_RENEWABLE)
