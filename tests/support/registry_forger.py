"""Somebody who can write to a store and has one trusted key: events, entries, trees and checkpoints of his own.

He uses the functions of the package and none of its rules. What he writes has the right form, and only that.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.session import RegistrySession
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction
from contextplane.registry.artifact_state import ArtifactState
from contextplane.registry.events import Change, RegistryEvent, kind_of, sign_event
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE, origin_of
from contextplane.registry.writer import index_objects
from contextplane.store.event_stream import last_event, stream_head
from contextplane.trust.checkpoint import Checkpoint, signed_checkpoint
from contextplane.trust.clock import next_event_time
from contextplane.trust.keyring_stream import STREAM
from contextplane.trust.merkle import append_leaves
from contextplane.trust.merkle_log import LogEntry
from tests.support.forged_log import forge_log, heads_of
from tests.support.registry_team import Team
from tests.unit.trust.world import key_of

__all__ = ["Forger"]


class Forger:
    """Writes to the store of a team with the key of `person`."""

    def __init__(self, team: Team, person: str) -> None:
        self._team = team
        self._signer = key_of(person)
        self._settings = Settings(cwd=str(team.folder), database_url=team.database_url, state_dir=None)

    def store(self, data: bytes) -> Digest:
        """Store an object, so that an event can name it."""
        with open_platform(self._settings) as platform:
            digest = platform.objects.put(data)
            indexed = IndexedObject(digest=digest, kind="blob", size=len(data), traced=True)
            with platform.catalog.write() as tx:
                tx.objects.record(indexed)
            return digest

    def artifact(self, digest: Digest) -> ArtifactState:
        """What the events of a digest say, believed as they are."""
        state = ArtifactState(digest=digest)
        with open_platform(self._settings) as platform:
            session = RegistrySession(KeyStore(platform, lambda: None))
            with session.read() as reader:
                state = reader.artifact(digest)
        return state

    def append_event(
        self, stream: str, change: Change, at: Timestamp | None = None, *, hidden: bool = False, keyring: int = 0
    ) -> None:
        """Append an event whether or not it is allowed, with its entry and a checkpoint of everything.

        `at`: the time of the event, by default right after the newest checkpoint. The checkpoint has it as well, unless
        `hidden`. `keyring`: how many changes too old the keyring is that it names.
        """
        with self._transaction() as (tx, origin):
            before = stream_head(tx.streams, stream)
            event = RegistryEvent(
                subject=stream,
                seq=1 if before is None else before.seq + 1,
                previous="" if before is None else before.digest,
                entry=tx.streams.head(LOG),
                keyring=tx.streams.head(STREAM) - keyring,
                at=str(at or _next_time(tx)),
                reason="because I can",
                change=change,
                origin=origin,
            )
            body = sign_event(event, self._signer)
            index_objects(tx.objects, stream, change)
            self._append(tx, origin, stream, Event(kind=kind_of(change), body=body), None if hidden else at)

    def sign_checkpoint(self, at: Timestamp) -> None:
        """Sign the registry as it is, at any time."""
        with self._transaction() as (tx, origin):
            self._sign(tx, origin, [], at)

    def sign_other_root(self, at: Timestamp) -> None:
        """Sign a log that never was, of the size that the log has."""
        with self._transaction() as (tx, _):
            newest = last_event(tx.streams, CHECKPOINTS)
            assert newest is not None
            note, _ = REGISTRY_LOG.read_note(newest.body)
            claimed = Checkpoint.parse(note.decode().rpartition("\n\n")[0] + "\n")
            forged = replace(claimed, root=bytes(32), heads=bytes(32), time=at)
            body = canonical(signed_checkpoint(forged, self._signer).decode())
            tx.streams.append(CHECKPOINTS, newest.seq, [Event(kind="checkpoint", body=body)])

    def append_copy(self, stream: str, kind: str, body: bytes) -> None:
        """Append an event that somebody else signed elsewhere."""
        with self._transaction() as (tx, origin):
            self._append(tx, origin, stream, Event(kind=kind, body=body))

    def append_firsts(self, streams: Iterable[str], body: bytes) -> None:
        """Append the same bytes as the first event of each of these streams."""
        with self._transaction() as (tx, origin):
            entries: list[LogEntry] = []
            for stream in streams:
                tx.streams.append(stream, 0, [Event(kind="pinned", body=body)])
                entries.append(LogEntry(event=Digest.of(body).hex, seq=1, stream=stream, previous=""))
            self._sign(tx, origin, entries)

    def append_leaves(self, *bodies: bytes) -> None:
        """Append bytes to the log and its tree as they are, and sign the ends of streams as they were."""
        with self._transaction() as (tx, origin):
            tx.streams.append(LOG, tx.streams.head(LOG), [Event(kind="entry", body=body) for body in bodies])
            append_leaves(tx.streams, TREE, list(bodies))
            self._sign(tx, origin, [])

    def sign_heads(self) -> None:
        """Append some entry, and sign the ends of the streams as they are now, whatever is missing."""
        with self._transaction() as (tx, origin):
            last = last_event(tx.streams, LOG)
            assert last is not None
            heads = heads_of(tx.streams)
            stream = min(heads)
            self._sign(
                tx, origin, [LogEntry(event=heads[stream].digest, seq=heads[stream].seq, stream=stream, previous="")]
            )

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Transaction, str]]:
        with open_platform(self._settings) as platform, platform.catalog.write() as tx:
            yield tx, origin_of(platform.store_id)

    def _append(self, tx: Transaction, origin: str, stream: str, event: Event, at: Timestamp | None = None) -> None:
        head = stream_head(tx.streams, stream)
        seq, previous = (0, "") if head is None else (head.seq, head.digest)
        tx.streams.append(stream, seq, [event])
        entry = LogEntry(event=Digest.of(event.body).hex, seq=seq + 1, stream=stream, previous=previous)
        self._sign(tx, origin, [entry], at)

    def _sign(self, tx: Transaction, origin: str, entries: list[LogEntry], at: Timestamp | None = None) -> None:
        forge_log(tx, entries, signer=self._signer, at=at or _next_time(tx), origin=origin)


def _next_time(tx: Transaction) -> Timestamp:
    """The moment after the newest checkpoint."""
    newest = last_event(tx.streams, CHECKPOINTS)
    assert newest is not None
    _, claimed = REGISTRY_LOG.read_note(newest.body)
    return next_event_time(claimed, claimed)
