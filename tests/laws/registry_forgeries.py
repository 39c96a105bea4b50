"""Events of every kind that somebody without the right could write, in the form that the right one would have.

A forger follows no rule: what is appended has its entry in the log, and a checkpoint of everything.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from msgspec.structs import replace

from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction
from contextplane.registry.continuity import is_logged, read_entry
from contextplane.registry.events import (
    AliasDropped,
    AliasSet,
    Approval,
    Change,
    Deprecated,
    Drafted,
    DraftListed,
    EnvironmentOpened,
    EnvironmentProtected,
    IncidentClosed,
    IncidentOpened,
    Linted,
    NameClaimed,
    Observed,
    Pin,
    Pinned,
    Pins,
    Promoted,
    Published,
    RefreshReported,
    RefreshRequired,
    RegistryEvent,
    Review,
    Revoked,
    RollbackEnded,
    RolledBack,
    Signed,
    Unpinned,
    Withdrawn,
    kind_of,
    sign_event,
)
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import (
    CHECKPOINTS,
    LOG,
    aliases_stream,
    artifact_stream,
    drafts_stream,
    environment_stream,
    names_stream,
    pins_stream,
    version_stream,
)
from contextplane.store.event_stream import StreamHead, last_event, stream_head
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring_events import Change as KeyringChange
from contextplane.trust.keyring_events import KeyringEvent, sign_keyring_event
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import LogEntry
from tests.support.forged_log import forge_log, heads_of
from tests.unit.trust.world import key_of

__all__ = ["KINDS", "Forgery", "LogForger", "forged_changes"]

KINDS = tuple(str(change.__struct_config__.tag) for change in get_args(Change))
"""Every kind of event of the registry. A kind without a forgery fails the test."""


class Forgery(NamedTuple):
    """A change, and the stream that it belongs to."""

    stream: str
    change: Change


def forged_changes(  # noqa: PLR0913  what the events name
    ref: PackRef, digest: Digest, environment: str, *, issuer: str, key_id: str, entry: int, at: str
) -> dict[str, Forgery]:
    """Every kind of event about a version and an environment, as the next event of the log."""
    known, number, name = str(digest), ref.version, ref.pack_id
    pin = Pin(id=name, version=number, digest=known, kind="context_pack", entry=entry, at=at, by=key_id)
    artifact, drafts, version = artifact_stream(digest), drafts_stream(ref), version_stream(ref)
    pins, here = pins_stream(environment, name), environment_stream(environment)
    publication = Published(
        digest=known,
        kind="context_pack",
        issuer=issuer,
        envelope=known,
        report=known,
        golden="passed",
        after="",
        approvals=(Approval(role="security", by=key_id),),
    )
    after, kind = Pins(base=pin), pin.kind
    forgeries = [
        Forgery(artifact, Drafted(kind="context_pack", id=name, version=number, issuer=issuer)),
        Forgery(artifact, Linted(report=known, roles=(), after="")),
        Forgery(artifact, Review(role="security", verdict="approve")),
        Forgery(artifact, Signed(envelope=known, threshold=1)),
        Forgery(artifact, Withdrawn()),
        Forgery(drafts, DraftListed(digest=str(Digest.of(at.encode())))),
        Forgery(names_stream(name), NameClaimed(issuer=issuer, kind="context_pack", tenant=issuer)),
        Forgery(version, publication),
        Forgery(version, Deprecated()),
        Forgery(version, Revoked()),
        Forgery(version, RefreshRequired(trigger="MODEL_CONFIG_UPDATED", dependency="*", actions=("golden_replay",))),
        Forgery(version, RefreshReported(opened=2, action="tool_schema_validation", passed=True, report=known)),
        Forgery(version, IncidentOpened(incident="inc-forged")),
        Forgery(version, IncidentClosed(incident="inc-1")),
        Forgery(version, Observed(environment=environment, run="run_0123456789abcdef")),
        Forgery(pins, Pinned(kind=kind, id=name, version=number, digest=known, pins=after)),
        Forgery(pins, Unpinned(id=name, version=number, pins=Pins())),
        Forgery(pins, RolledBack(kind=kind, id=name, version=number, digest=known, away="1.0.1", pins=after)),
        Forgery(pins, RollbackEnded(rollback=1, milliseconds=1, golden="passed", report=known, pins=after)),
        Forgery(pins, Promoted(id=name, version=number, report=known, pins=after)),
        Forgery(aliases_stream(name), AliasSet(alias="live", version=number)),
        Forgery(aliases_stream(name), AliasDropped(alias="live")),
        Forgery(here, EnvironmentOpened()),
        Forgery(here, EnvironmentProtected(max_age=1)),
    ]
    return {kind_of(forgery.change): forgery for forgery in forgeries}


class LogForger:
    """Writes to a catalog with the keys of anybody; `signer` signs the log."""

    def __init__(self, tx: Transaction, origin: str, signer: str) -> None:
        self._tx = tx
        self._origin = origin
        self._signer = signer

    @property
    def entry(self) -> int:
        """The number of the next entry."""
        return self._tx.streams.head(LOG)

    @property
    def now(self) -> Timestamp:
        """The time of the newest checkpoint and a second."""
        time = self._newest.time
        assert time is not None
        return Timestamp(seconds=time.seconds + 1, nanos=0)

    @property
    def _newest(self) -> Checkpoint:
        """The newest checkpoint, believed as it is."""
        newest = last_event(self._tx.streams, CHECKPOINTS)
        assert newest is not None
        note, _ = REGISTRY_LOG.read_note(newest.body)
        return Checkpoint.parse(note.decode().rpartition("\n\n")[0] + "\n")

    def append_event(
        self, stream: str, change: Change, by: str, *, keyring: int | None = None, at: str | None = None
    ) -> None:
        """Append an event, made under this keyring at this time; by default under the newest, and now."""
        head = stream_head(self._tx.streams, stream)
        event = RegistryEvent(
            subject=stream,
            seq=1 if head is None else head.seq + 1,
            previous="" if head is None else head.digest,
            entry=self.entry,
            keyring=keyring or self._tx.streams.head(KEYRING),
            at=at or str(self.now),
            reason="because I can",
            change=change,
            origin=self._origin,
        )
        self.append(stream, kind_of(change), sign_event(event, key_of(by)))

    def append_keyring_change(self, change: KeyringChange, by: str) -> None:
        head = stream_head(self._tx.streams, KEYRING)
        assert head is not None
        event = KeyringEvent(
            seq=head.seq + 1, previous=head.digest, at=str(self.now), change=change, origin=self._origin
        )
        self.append(KEYRING, "keyring", sign_keyring_event(event, key_of(by)))

    def append(self, stream: str, kind: str, body: bytes) -> None:
        """Append any bytes as an event."""
        entry = self._next_entry(stream, Digest.of(body).hex)
        self._tx.streams.append(stream, entry.seq - 1, [Event(kind=kind, body=body)])
        self.sign(entry)

    def append_only_entry(self, stream: str, digest: str, skipped: int = 0) -> None:
        """Append the entry of an event that is not there, so many after the next one."""
        entry = self._next_entry(stream, digest)
        self.sign(replace(entry, seq=entry.seq + skipped))

    def repeat_entry(self, number: int) -> None:
        """Append an entry of the log once more. No end of a stream moves."""
        bodies = [stored.body for stored in self._tx.streams.read(LOG)]
        entry = read_entry(bodies[number % len(bodies)])
        assert entry is not None
        self.append_void_entry(entry)

    def append_void_entry(self, entry: LogEntry) -> None:
        """Append an entry that moves no end of a stream."""
        self._sign([entry], {}, self._newest.heads or EMPTY_ROOT, None)

    def append_entry_of_first(self, stream: str) -> None:
        """Append an entry for the first event of a stream that is there already, whatever it holds."""
        first = next(iter(self._tx.streams.read(stream)))
        self.sign(LogEntry(event=Digest.of(first.body).hex, seq=1, stream=stream, previous=""))

    def sign(self, *entries: LogEntry, at: Timestamp | None = None) -> None:
        """Append entries, and sign the ends of the streams as they were with what the entries say; by default now."""
        counting = [entry for entry in entries if is_logged(entry.stream)]
        ends = {entry.stream: StreamHead(seq=entry.seq, digest=entry.event) for entry in counting}
        self._sign(entries, ends, self._newest.heads or EMPTY_ROOT, at)

    def sign_streams(self) -> None:
        """Sign the ends of the streams as they are, whatever the log says."""
        self._sign((), heads_of(self._tx.streams), EMPTY_ROOT, None)

    def _sign(
        self, entries: Sequence[LogEntry], ends: Mapping[str, StreamHead], root: bytes, at: Timestamp | None
    ) -> None:
        signer, origin = key_of(self._signer), self._origin
        forge_log(self._tx, entries, signer=signer, at=at or self.now, origin=origin, heads=ends, root=root)

    def _next_entry(self, stream: str, digest: str) -> LogEntry:
        head = stream_head(self._tx.streams, stream)
        seq, previous = (0, "") if head is None else (head.seq, head.digest)
        return LogEntry(event=digest, seq=seq + 1, stream=stream, previous=previous)
