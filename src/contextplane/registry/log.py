"""The log of the registry: one entry for each event of its subjects and of the keyring, in order.

`sign_log` is the only way in which the log grows: it appends entries, moves the ends of their streams, and signs a
checkpoint of all of it. Changes of the keyring that are in no log yet come first.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.continuity import follow_entry, is_logged, read_entry
from contextplane.registry.stream_heads import HEAD_NODES, HeadNodes, HeadTree, StreamHeads
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE, NameInvalid
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.store.event_stream import StreamHead, last_event
from contextplane.trust.checkpoint import Checkpoint, KeyringPosition, open_checkpoint
from contextplane.trust.clock import is_far_ahead
from contextplane.trust.dsse import Envelope
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_events import KEYRING, read_keyring_event
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import (
    CheckpointBeforeKeyring,
    CheckpointKeys,
    LogEntry,
    MerkleLog,
    VerifiedCheckpoint,
)

__all__ = [
    "REGISTRY_LOG",
    "LogChanges",
    "checkpoint_before",
    "event_entry",
    "keyring_entries",
    "last_time",
    "log_ends",
    "next_keyring_entry",
    "rebuild_heads",
    "sign_log",
]

REGISTRY_LOG = MerkleLog(
    entries=LOG,
    tree=TREE,
    checkpoints=CHECKPOINTS,
    restore_hint="'ctx verify --registry' checks all of it; restore the catalog from a copy",
    renew_hint=(
        "'ctx verify --registry --sign --key KEY' checks all and signs a fresh one;"
        " if that was done since, restore a copy"
    ),
)


_SHOWN = 16


class LogChanges(Protocol):
    """Where the log is written to: a transaction, or changes that are staged for one."""

    @property
    def streams(self) -> Streams: ...

    @property
    def marks(self) -> HeadNodes: ...


def sign_log(  # noqa: PLR0913  what a checkpoint says
    changes: LogChanges,
    entries: Sequence[LogEntry],
    *,
    heads: bytes,
    keys: TrustedKeys,
    signer: Signer,
    at: Timestamp,
    origin: str,
) -> VerifiedCheckpoint:
    """Append entries and sign a checkpoint of the log under the newest keyring.

    `heads`: the root over the ends of streams before these entries.
    """
    logged = StreamHeads(changes.marks, heads).head(KEYRING_STREAM)
    unlogged = keyring_entries(changes.streams, logged)
    if unlogged and entries:
        # Events name their places in the log, which would be others.
        raise CheckpointBeforeKeyring(
            "the log lacks a change of the keyring", at=CHECKPOINTS, hint=REGISTRY_LOG.renew_hint
        )
    entries = [*unlogged, *entries]
    tree = HeadTree(changes.marks, heads)
    for entry in entries:
        if not is_logged(entry.stream):  # every reader would take it for void
            raise NameInvalid(f"not a stream of the registry: {entry.stream[:80]!r}", at=LOG)
        tree.put(entry.stream, StreamHead(seq=entry.seq, digest=entry.event))
    return REGISTRY_LOG.append_entries(
        changes.streams,
        entries,
        heads=tree.save(changes.marks),
        keyring=KeyringPosition(seq=keys.seq, head=keys.head),
        signer=signer,
        at=at,
        origin=origin,
    )


def last_time(
    streams: StreamsView,
    latest: VerifiedCheckpoint | None,
    keyrings: CheckpointKeys,
    check: SignatureCheck,
    clock: Timestamp,
) -> Timestamp:
    """The last time on record, which an act follows: of the keyring's last change or of a checkpoint.

    A checkpoint that is far ahead of the clock and of the keyring is refused, because an owner can take it back. What
    cannot be taken back is continued, since a refusal would close the store for good: a change of the keyring, the
    checkpoint of an owner without whom too few owners would remain, and a store of the first format, which is sealed.
    """
    known = keyrings.now.as_of
    if latest is None or keyrings.now.sealed is None:
        return known if latest is None else max(known, latest.time)
    if is_far_ahead(max(clock, known), latest.time) and is_far_ahead(
        _lasting_time(streams, keyrings.now, latest, check), latest.time
    ):
        key_id = REGISTRY_LOG.checkpoint_key(latest, keyrings, check).key.key_id[:_SHOWN]
        raise ClockWentBackwards(
            f"the clock shows {clock}, and key {key_id} signed the registry at {latest.time}: one of them is wrong",
            at=CHECKPOINTS,
            hint=f"set the clock; if it is right, an owner takes the other time back: ctx keys revoke {key_id}"
            " --reason TEXT --from TIME, with a time before it, then ctx verify --registry --sign --key OTHER",
            details={"key_id": key_id, "time": str(latest.time)},
        )
    return max(known, latest.time)


def _lasting_time(
    streams: StreamsView, keys: TrustedKeys, latest: VerifiedCheckpoint, check: SignatureCheck
) -> Timestamp:
    """The latest time of a checkpoint by an owner without whom too few would remain, up to `latest`."""
    lasting, last = {*keys.lasting_owners()}, NO_TIME
    needed = [key for key in lasting if len(keys.people_of(lasting - {key})) < keys.owner_threshold]
    owners = tuple(key.key for issuer in keys.issuers for key in issuer.keys if key.key.key_id in needed)
    for stored in streams.read(CHECKPOINTS):
        with suppress(ContextPlaneError):
            note, claimed = REGISTRY_LOG.read_note(stored.body)
            if last < claimed <= latest.time:
                open_checkpoint(note, origin=latest.checkpoint.origin, keys=owners, check=check)
                last = claimed
    return last


def checkpoint_before(  # noqa: PLR0913  what a checkpoint is judged by
    streams: StreamsView,
    keyrings: CheckpointKeys,
    check: SignatureCheck,
    origin: str,
    time: Timestamp,
    *,
    except_by: str = "",
) -> Checkpoint | None:
    """The checkpoint with most entries whose time counts and is before a time; None if there is none.

    `except_by`: the id of a key whose own checkpoints are left out. Neither the order of the stored checkpoints is
    believed, nor a size that the log does not have.
    """
    length, claims = streams.head(LOG), list[tuple[int, Timestamp, bytes]]()
    for stored in streams.read(CHECKPOINTS):
        with suppress(ContextPlaneError):
            note, claimed = REGISTRY_LOG.read_note(stored.body)
            size = REGISTRY_LOG.claimed_checkpoint(stored.body).size
            if claimed < time and size <= length:
                claims.append((size, claimed, note))
    for _, claimed, note in sorted(claims, reverse=True):
        keys = tuple(key for key in keyrings.trusted_keys_at(claimed) if key.key_id != except_by)
        with suppress(ContextPlaneError):
            return open_checkpoint(note, origin=origin, keys=keys, check=check)
    return None


def event_entry(verified: VerifiedEvent) -> LogEntry:
    """The entry of the log for an event."""
    event = verified.event
    previous = None if verified.is_first_format else event.previous
    return LogEntry(event=verified.digest, seq=event.seq, stream=event.subject, previous=previous)


def keyring_entries(streams: StreamsView, logged: StreamHead | None) -> list[LogEntry]:
    """Entries for the changes of the keyring after the one that the log has.

    Changes of the first format are in no log: the first one that names its store stands for them.
    """
    entries: list[LogEntry] = []
    for stored in streams.read(KEYRING_STREAM, after=0 if logged is None else logged.seq):
        event = read_keyring_event(Envelope.parse(stored.body, payload_type=KEYRING).payload)
        if event.origin:
            digest = Digest.of(stored.body).hex
            entries.append(LogEntry(event=digest, seq=stored.seq, stream=KEYRING_STREAM, previous=event.previous))
    return entries


def next_keyring_entry(streams: StreamsView, keys: TrustedKeys) -> int:
    """The place in the log of the next change of the keyring: after what is there and waits."""
    newest, logged = last_event(streams, CHECKPOINTS), None
    with suppress(ContextPlaneError):  # readers of the log refuse it; the place is a hint
        logged = None if newest is None else REGISTRY_LOG.claimed_checkpoint(newest.body).keyring
    # Changes from before a store is sealed are in no log.
    unlogged = keys.seq - logged.seq if logged is not None else 0 if keys.sealed is None else keys.seq
    return streams.head(LOG) + unlogged


def log_ends(streams: StreamsView) -> dict[str, StreamHead]:
    """The ends of streams that the entries of the log lead to. Void entries move none."""
    ends: dict[str, StreamHead] = {}
    for stored in streams.read(LOG):
        follow_entry(ends, read_entry(stored.body))
    return ends


def rebuild_heads(changes: LogChanges) -> bytes:
    """Make the tree over the ends of streams again from the log; returns its root."""
    changes.marks.drop(HEAD_NODES)
    tree = HeadTree(changes.marks, EMPTY_ROOT)
    for stream, head in log_ends(changes.streams).items():
        tree.put(stream, head)
    return tree.save(changes.marks)
