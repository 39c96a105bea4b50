"""Writing to the registry: events, their log entries, the trees and a checkpoint, in one transaction.

No other module appends to these streams. Nothing is written that a reader would refuse: each event is signed, verified
as a reader would, and folded, before it is appended. A refusal leaves every stream unchanged, because it aborts the
transaction.

The second part rebuilds the index from the streams and compares them. The kinds and roots of objects and the tree over
the ends of streams are an index. A rebuilt tree is trusted no more than the old one: its root must be the one that the
newest checkpoint signs. Events are not verified there.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.indexes import KindConflict, ObjectIndex
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.ports.objects import ObjectNotFound
from contextplane.registry.audit import AuditProblem
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import (
    Change,
    Drafted,
    PinChange,
    RegistryEvent,
    VerifiedEvent,
    check_change,
    kind_of,
    objects_of,
    read_event,
    sign_event,
)
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.pin_state import PinState, pins_after
from contextplane.registry.reader import RegistryReader, SubjectState
from contextplane.registry.stream_heads import (
    HeadsDamaged,
    MemoryHeadNodes,
    StreamCut,
    StreamHeads,
    heads_of,
    put_heads,
)
from contextplane.registry.streams import CHECKPOINTS, LOG, PINS, REGISTRY, SUBJECTS
from contextplane.store.event_stream import StreamHead
from contextplane.trust.clock import next_event_time, seconds_behind
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import LogEntry, VerifiedCheckpoint

__all__ = [
    "DRAFTS",
    "AppendResult",
    "PlannedChange",
    "RegistryWriter",
    "compare_ends",
    "compare_objects",
    "draft_root",
    "index_objects",
    "rebuild_index",
    "root_name",
]


class PlannedChange(Value, frozen=True):
    """A change to append to a stream, and the reason. The `pins` of a pin change are filled in on writing."""

    stream: str
    change: Change
    reason: str


class AppendResult(Value, frozen=True):
    """The events as they were written, and the newest checkpoint, which covers them."""

    events: tuple[VerifiedEvent, ...]
    newest: VerifiedCheckpoint


def root_name(digest: Digest) -> str:
    """The root that keeps an object of the registry."""
    return REGISTRY + digest.hex


DRAFTS = f"{REGISTRY}draft/"
"""The prefix of the roots of all drafts."""


def draft_root(ref: PackRef | str, digest: Digest | None = None) -> str:
    """The root that keeps a draft of a version; without a digest, the prefix of all its drafts."""
    return f"{DRAFTS}{ref}/{digest.hex if digest is not None else ''}"


def index_objects(index: ObjectIndex, stream: str, change: Change) -> None:
    """Record the kinds of the objects of an event, and keep them. Rebuilding the index uses this as well."""
    for kind, digest in objects_of(stream, change):
        recorded = index.lookup(digest)
        if recorded is None:
            raise ObjectNotFound(f"{kind_of(change)} names it", at=str(digest), hint="store it first")
        index.record(replace(recorded, kind=kind, traced=True))
        index.keep(root_name(digest), digest)
        if isinstance(change, Drafted):
            index.keep(draft_root(f"{change.id}@{change.version}", digest), digest)


class RegistryWriter:
    """Appends events in one transaction, signed by one key, under the keyring of this transaction."""

    def __init__(  # noqa: PLR0913  what an act consists of
        self,
        tx: Transaction,
        *,
        keys: TrustedKeys,
        check: SignatureCheck,
        signer: Signer,
        now: Timestamp,
        origin: str,
    ) -> None:
        self.tx = tx
        # A log that does not match its newest checkpoint is refused before anything is read from it.
        keyrings = KeyringHistory.of(tx.streams, keys)
        self.newest = REGISTRY_LOG.verify_checkpoint(tx.streams, keyrings, check, origin)
        """The newest checkpoint: before `append` the one that was there, after it the one that it signed."""
        REGISTRY_LOG.check_revocations(self.newest, keys)
        last = keys.as_of if self.newest is None else max(keys.as_of, self.newest.time)
        self.now = next_event_time(now, last)
        """The time of the events that are appended."""
        self.behind = seconds_behind(now, last)
        """How many seconds the clock is behind the record."""
        self.reader = RegistryReader(tx.streams, keyrings, check, StreamHeads(tx.marks, self._root))
        self._signer = signer
        self._origin = origin

    @property
    def key_id(self) -> str:
        return self._signer.public_key.key_id

    @property
    def _root(self) -> bytes:
        return EMPTY_ROOT if self.newest is None else self.newest.heads

    def append(self, planned: Sequence[PlannedChange], objects: Sequence[IndexedObject] = ()) -> AppendResult:
        """Append all changes or none. `objects`: those that they name and that are not recorded yet."""
        # (1) the key is valid now
        self._refuse_untrusted()
        # (2) each event is signed, verified and folded, then appended
        states: dict[str, SubjectState] = {}
        events: list[VerifiedEvent] = []
        first = self.tx.streams.head(LOG)
        for n, change in enumerate(planned):
            state = states.get(change.stream) or self._state(change.stream)
            verified, states[change.stream] = self._append_event(change, state, first + n)
            events.append(verified)
        # (3) the objects that they name exist, and are kept
        self._keep(events, objects)
        # (4) their entries, the tree, the ends of their streams, the checkpoint
        entries = [LogEntry(event=event.digest, seq=event.event.seq, stream=event.event.subject) for event in events]
        ends = {entry.stream: StreamHead(seq=entry.seq, digest=entry.event) for entry in entries}
        self.newest = REGISTRY_LOG.append_entries(
            self.tx.streams,
            entries,
            heads=put_heads(self.tx.marks, self._root, ends),
            signer=self._signer,
            at=self.now,
            origin=self._origin,
        )
        self.reader.heads = StreamHeads(self.tx.marks, self._root)
        return AppendResult(events=tuple(events), newest=self.newest)

    def _state(self, stream: str) -> SubjectState:
        if stream.startswith(PINS):
            environment, _, base_id = stream.removeprefix(PINS).partition("/")
            return self.reader.pins(environment, base_id)
        return self.reader.state(stream)

    def _append_event(
        self, planned: PlannedChange, state: SubjectState, entry: int
    ) -> tuple[VerifiedEvent, SubjectState]:
        change = _complete_change(planned.change, state, entry, str(self.now), self.key_id)
        check_change(change, planned.reason)
        event = RegistryEvent(
            subject=planned.stream,
            seq=state.seq + 1,
            previous=state.head,
            entry=entry,
            keyring=self.reader.keyrings.now.seq,
            at=str(self.now),
            reason=planned.reason,
            change=change,
        )
        signed = Event(kind=kind_of(change), body=sign_event(event, self._signer))
        return self.reader.append(self.tx.streams, planned.stream, state, signed)

    def _keep(self, events: Sequence[VerifiedEvent], objects: Sequence[IndexedObject]) -> None:
        for object_ in objects:
            self.tx.objects.record(object_)
        for verified in events:
            index_objects(self.tx.objects, verified.event.subject, verified.change)

    def _refuse_untrusted(self) -> None:
        keyrings = self.reader.keyrings
        actor = keyrings.actor(self.key_id, keyrings.now.seq, self.now) if keyrings.now.seq else None
        if actor is None or actor.revoked:
            revoked = keyrings.is_revoked(self.key_id, self.now)
            raise RegistryUntrusted(
                f"key {self.key_id[:16]} is {'revoked, and ' if revoked else ''}not trusted at {self.now}",
                hint="this cannot be undone: use another key; 'ctx keys list' lists valid ones"
                if revoked
                else "see 'ctx keys list'; 'ctx keys trust' changes it",
            )


def _complete_change(change: Change, state: SubjectState, entry: int, at: str, by: str) -> Change:
    if isinstance(state, PinState) and isinstance(change, PinChange):
        return replace(change, pins=pins_after(state.pins, change, entry, at, by))
    return change


def rebuild_index(tx: Transaction, size_of: Callable[[Digest], int]) -> None:
    """Rebuild the index from the streams. An unreadable event keeps nothing; an audit reports it."""
    for stream, change in _changes(tx.streams):
        with suppress(KindConflict):  # named as two kinds: `compare_objects` reports it
            for kind, digest in objects_of(stream, change):
                tx.objects.record(IndexedObject(digest=digest, kind=kind, size=size_of(digest), traced=True))
            index_objects(tx.objects, stream, change)
    put_heads(tx.marks, EMPTY_ROOT, heads_of(tx.streams))


def compare_objects(view: View) -> Iterator[tuple[str, str]]:
    """Objects that are not kept, or indexed as another kind, each with the problem."""
    roots = dict(view.objects.roots(REGISTRY))
    for stream, change in _changes(view.streams):
        for kind, digest in objects_of(stream, change):
            recorded = view.objects.lookup(digest)
            if roots.get(root_name(digest)) != digest:
                yield str(digest), f"{stream} names it, and nothing keeps it"
            elif recorded is None or recorded.kind != kind or not recorded.traced:
                yield str(digest), f"{stream} names it as {kind}, and the index does not"


def compare_ends(view: View, newest: VerifiedCheckpoint | None) -> Iterator[AuditProblem]:
    """Problems of the ends of streams, compared with the newest checkpoint and the tree in the index."""
    nodes = MemoryHeadNodes()
    root = put_heads(nodes, EMPTY_ROOT, heads_of(view.streams))
    if root != (EMPTY_ROOT if newest is None else newest.heads):
        why = "streams do not end where the newest checkpoint says: 'ctx verify --registry' lists them"
        yield AuditProblem(code=StreamCut.code, at=CHECKPOINTS, message=why)
    for name, text in nodes.texts.items():
        if view.marks.get(name) != text:
            yield AuditProblem(code=HeadsDamaged.code, at=name, message="not what the ends of the streams give")


def _changes(streams: StreamsView) -> Iterator[tuple[str, Change]]:
    for prefix in SUBJECTS:
        for stream in list(streams.names(prefix)):
            for stored in streams.read(stream):
                try:
                    yield stream, read_event(stored.body)[1].change
                except ContextPlaneError:
                    continue
