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
from typing import Protocol

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.handoff import HANDOFF_REVISION, HANDOFFS
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.indexes import KindConflict, ObjectIndexView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.ports.objects import ObjectNotFound
from contextplane.registry.continuity import HeadsRewritten
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import (
    Change,
    Drafted,
    PinChange,
    RegistryEvent,
    check_change,
    kind_of,
    objects_of,
    read_event,
    sign_event,
)
from contextplane.registry.first_format import refuse_unsealed
from contextplane.registry.log import LogChanges, event_entry, last_time, log_ends, rebuild_heads, sign_log
from contextplane.registry.log_audit import AuditProblem
from contextplane.registry.open import open_registry
from contextplane.registry.pin_state import PinState, pins_after
from contextplane.registry.reader import RegistryReader
from contextplane.registry.resign import refuse_log_signer
from contextplane.registry.stream_heads import (
    HEAD_NODES,
    HeadsDamaged,
    HeadTree,
    MemoryHeadNodes,
    StreamCut,
    StreamHeads,
)
from contextplane.registry.stream_reader import SubjectState
from contextplane.registry.streams import CHECKPOINTS, LOG, PINS, REGISTRY, SUBJECTS, is_subject
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.store.event_stream import stream_head
from contextplane.store.find import PACKS
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.clock import next_event_time, seconds_behind
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = [
    "DRAFT_ROOTS",
    "AppendResult",
    "PlannedChange",
    "RegistryChanges",
    "RegistryWriter",
    "compare_drafts",
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


DRAFT_ROOTS = f"{REGISTRY}draft/"
"""The prefix of the roots that keep drafts. They keep, and say nothing: names are looked up in signed events."""


def draft_root(ref: PackRef | str, digest: Digest | None = None) -> str:
    """The root that keeps a draft of a version; without a digest, the prefix of all its drafts."""
    return f"{DRAFT_ROOTS}{ref}/{digest.hex if digest is not None else ''}"


class ObjectRecords(Protocol):
    """The part of the index of objects that an act writes."""

    def lookup(self, digest: Digest) -> IndexedObject | None: ...

    def record(self, recorded: IndexedObject) -> None: ...

    def keep(self, name: str, target: Digest) -> None: ...


def index_objects(index: ObjectRecords, stream: str, change: Change) -> None:
    """Record the kinds of the objects of an event, and keep them. Rebuilding the index uses this as well."""
    for kind, digest in objects_of(stream, change):
        recorded = index.lookup(digest)
        if recorded is None:
            raise ObjectNotFound(f"{kind_of(change)} names it", at=str(digest), hint="store it first")
        index.record(replace(recorded, kind=kind, traced=True))
        index.keep(root_name(digest), digest)
        if isinstance(change, Drafted):
            index.keep(draft_root(f"{change.id}@{change.version}", digest), digest)


class RegistryChanges(LogChanges, Protocol):
    """Where an act is written to: a transaction, or changes that are staged for one."""

    @property
    def objects(self) -> ObjectRecords: ...


class RegistryWriter:
    """Appends the events of one act, signed by one key, under the newest keyring.

    `changes`: where they are written to. `seen`: the highest checkpoint that the client knew before, `voids` the number
    of void entries up to there. `root`: one that its user trusts.
    """

    def __init__(  # noqa: PLR0913  what an act consists of
        self,
        changes: RegistryChanges,
        *,
        keys: TrustedKeys,
        check: SignatureCheck,
        signer: Signer,
        now: Timestamp,
        origin: str,
        seen: Checkpoint | None = None,
        root: Checkpoint | None = None,
        voids: int | None = None,
    ) -> None:
        refuse_unsealed(keys)
        # A registry that a reader would refuse is refused before anything is read from it.
        opened = open_registry(changes, keys, check, origin=origin, seen=seen, root=root, voids=voids)
        if opened.missing is not None:
            raise opened.missing
        self.changes = changes
        self.newest, self.voids = opened.newest, opened.voids
        """The newest checkpoint: before `append` the one that was there, after it the one that it signed."""
        last = last_time(changes.streams, self.newest, opened.reader.keyrings, check, now)
        self.now = next_event_time(now, last)
        """The time of the events that are appended."""
        self.behind = seconds_behind(now, last)
        """How many seconds the clock is behind the record."""
        self.reader = opened.reader
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
        first = self.changes.streams.head(LOG)
        for n, change in enumerate(planned):
            state = states.get(change.stream) or self._state(change.stream)
            verified, states[change.stream] = self._append_event(change, state, first + n)
            events.append(verified)
        # (3) the objects that they name exist, and are kept
        self._keep(events, objects)
        # (4) their entries, the tree, the ends of their streams, the checkpoint
        self.newest = sign_log(
            self.changes,
            [event_entry(event) for event in events],
            heads=self._root,
            keys=self.reader.keyrings.now,
            signer=self._signer,
            at=self.now,
            origin=self._origin,
        )
        self.reader.advance(StreamHeads(self.changes.marks, self._root), self.newest.checkpoint)
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
            origin=self._origin,
        )
        signed = Event(kind=kind_of(change), body=sign_event(event, self._signer))
        return self.reader.append(self.changes.streams, planned.stream, state, signed)

    def _keep(self, events: Sequence[VerifiedEvent], objects: Sequence[IndexedObject]) -> None:
        for object_ in objects:
            self.changes.objects.record(object_)
        for verified in events:
            index_objects(self.changes.objects, verified.event.subject, verified.change)

    def _refuse_untrusted(self) -> None:
        keyrings, entry = self.reader.keyrings, self.changes.streams.head(LOG)
        actor = keyrings.actor(self.key_id, keyrings.now.seq, self.now, entry) if keyrings.now.seq else None
        if actor is None or actor.revoked:
            revoked = keyrings.is_revoked(self.key_id, self.now, entry)
            raise RegistryUntrusted(
                f"key {self.key_id[:16]} is {'revoked, and ' if revoked else ''}not trusted at {self.now}",
                hint="this cannot be undone: use another key; 'ctx keys list' lists valid ones"
                if revoked
                else "see 'ctx keys list'; 'ctx keys trust' changes it",
            )
        refuse_log_signer(self._signer, keyrings, self.now)


def _complete_change(change: Change, state: SubjectState, entry: int, at: str, by: str) -> Change:
    if isinstance(state, PinState) and isinstance(change, PinChange):
        return replace(change, pins=pins_after(state.pins, change, entry, at, by))
    return change


def rebuild_index(tx: Transaction, size_of: Callable[[Digest], int]) -> None:
    """Rebuild the index from the streams. An unreadable event keeps nothing; an audit reports it.

    A kind that an object was recorded as before gives way, unless something else has just been rebuilt with it.
    """
    for stream, change in _changes(tx.streams):
        with suppress(KindConflict):  # named as two kinds: `compare_objects` reports it
            for kind, digest in objects_of(stream, change):
                recorded = tx.objects.lookup(digest)
                if recorded is not None and recorded.kind != kind and _is_left_over(tx.objects, recorded):
                    tx.objects.forget(digest)
                tx.objects.record(IndexedObject(digest=digest, kind=kind, size=size_of(digest), traced=True))
            index_objects(tx.objects, stream, change)
        for _, digest in objects_of(stream, change):  # whatever it is: else nothing would ever be collected again
            tx.objects.keep(root_name(digest), digest)
    rebuild_heads(tx)


def _is_left_over(index: ObjectIndexView, recorded: IndexedObject) -> bool:
    """Whether nothing that was rebuilt so far says what an object is: its row is from before.

    A rebuild traces what it records again: execution packs by their entries, and all that was a handoff revision.
    """
    if recorded.kind == HANDOFF_REVISION:
        return not any(name.startswith(HANDOFFS) for name in index.referrers(recorded.digest))
    is_pack = next(index.roots(PACKS + recorded.digest.hex), None) is not None
    return not (recorded.traced or is_pack or index.targets(recorded.digest))


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
            elif isinstance(change, Drafted):
                ref = f"{change.id}@{change.version}"
                if roots.get(draft_root(ref, digest)) != digest:
                    yield str(digest), f"{stream} records it as a draft of {ref}, and the index does not"


def compare_ends(view: View, newest: VerifiedCheckpoint | None) -> Iterator[AuditProblem]:
    """Problems of the ends of streams, compared with the newest checkpoint and the tree in the index."""
    names = [name for prefix in SUBJECTS for name in view.streams.names(prefix) if is_subject(name)]
    logged = log_ends(view.streams)
    for name in sorted({*names, *logged}):
        if stream_head(view.streams, name) != logged.get(name):
            why = "the stream does not end where the log says: see 'ctx verify --registry'"
            yield AuditProblem(code=StreamCut.code, at=name, message=why)
    if newest is None or newest.is_first_format:
        return
    nodes = MemoryHeadNodes()
    tree = HeadTree(nodes)
    for name, head in logged.items():
        tree.put(name, head)
    if tree.save(nodes) != newest.heads:
        why = "the newest checkpoint signs other ends of streams than those of the log"
        yield AuditProblem(code=HeadsRewritten.code, at=CHECKPOINTS, message=why)
    stored = {*view.marks.names(HEAD_NODES)}
    for name, text in nodes.texts.items():
        if view.marks.get(name) != text:
            yield AuditProblem(code=HeadsDamaged.code, at=name, message="not what the ends of the streams give")
    for name in sorted(stored - {*nodes.texts}):
        yield AuditProblem(code=HeadsDamaged.code, at=name, message="a node that the tree has not")


def compare_drafts(view: View, reader: RegistryReader) -> Iterator[tuple[str, str]]:
    """Roots that keep drafts under a name that no signed event gives them, each with the problem."""
    for name, digest in view.objects.roots(DRAFT_ROOTS):
        ref = name.removeprefix(DRAFT_ROOTS).rpartition("/")[0]
        if str(reader.artifact(digest).ref) != ref:
            yield str(digest), f"the index keeps it as a draft of {ref}, and no signed event does"


def _changes(streams: StreamsView) -> Iterator[tuple[str, Change]]:
    """The changes of all subjects that can be read, and whose objects are known by their streams."""
    for prefix in SUBJECTS:
        for stream in filter(is_subject, list(streams.names(prefix))):
            for stored in streams.read(stream):
                try:
                    change = read_event(stored.body)[1].change
                    objects_of(stream, change)
                except ContextPlaneError:
                    continue
                yield stream, change
