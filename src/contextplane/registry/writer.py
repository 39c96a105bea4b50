"""The one place that appends to the registry: events, their entries in the log, the trees, a checkpoint, together.

Nothing is written that a reader would refuse: each event is signed, read back as a reader would, and folded, before it
is appended. A refusal leaves every stream as it was, for it leaves the transaction.

The index of the registry, made anew from its streams and compared with them. It judges no event.

What objects are, what keeps them, and the tree over the ends of streams are index. A tree that was made anew is no more
believed than the old one: its root must be the one that the newest checkpoint signs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event, Recorded, StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.indexes import KindConflict, ObjectIndex
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.ports.objects import ObjectNotFound
from contextplane.registry.audit import Trouble
from contextplane.registry.authority import Keyrings
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import (
    Change,
    Drafted,
    Happened,
    PinChange,
    RegistryEvent,
    checked_change,
    kind_of,
    objects_of,
    read_event,
    written,
)
from contextplane.registry.log import Entry, Standing, append_entries, check_revocations, standing
from contextplane.registry.pin_state import PinState, pins_after
from contextplane.registry.reader import Reader, State
from contextplane.registry.stream_heads import Head, Heads, HeadsDamaged, KeptNodes, StreamCut, heads_of, put_heads
from contextplane.registry.streams import CHECKPOINTS, LOG, PINS, REGISTRY, SUBJECTS
from contextplane.trust.clock import moment_of_act, seconds_behind
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = [
    "DRAFTS",
    "Appended",
    "Planned",
    "Writer",
    "compare_ends",
    "compare_objects",
    "draft_root",
    "index_objects",
    "index_registry",
    "root_name",
]


class Planned(Value, frozen=True):
    """A change that somebody wants, and why. What is pinned after it (`pins`) is filled in when it is written."""

    stream: str
    change: Change
    reason: str


class Appended(Value, frozen=True):
    """The events as they were written, and the checkpoint of the log with them."""

    events: tuple[Happened, ...]
    standing: Standing


def root_name(digest: Digest) -> str:
    """The root that keeps an object of the registry."""
    return REGISTRY + digest.hex


DRAFTS = f"{REGISTRY}draft/"
"""What the roots of all drafts begin with."""


def draft_root(ref: PackRef | str, digest: Digest | None = None) -> str:
    """The root by which the drafts of a version are found; without a digest, what they all begin with."""
    return f"{DRAFTS}{ref}/{digest.hex if digest is not None else ''}"


def index_objects(index: ObjectIndex, stream: str, change: Change) -> None:
    """Say what the objects of an event are, and keep them. An index that is made anew is made by this as well."""
    for kind, digest in objects_of(stream, change):
        recorded = index.recorded(digest)
        if recorded is None:
            raise ObjectNotFound(f"{kind_of(change)} names it", at=str(digest), hint="store it first")
        index.record(replace(recorded, kind=kind, traced=True))
        index.keep(root_name(digest), digest)
        if isinstance(change, Drafted):
            index.keep(draft_root(f"{change.id}@{change.version}", digest), digest)


class Writer:
    """Whoever acts, in one transaction: a key, the time, and the keyring as it is in this transaction."""

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
        # Nothing is decided here by a log that is not what is signed.
        keyrings = Keyrings.of(tx.streams, keys)
        self.standing = standing(tx.streams, keyrings, check, origin)
        """The checkpoint before this act; after it, the one of it."""
        check_revocations(self.standing, keys)
        last = keys.as_of if self.standing is None else max(keys.as_of, self.standing.time)
        self.now = moment_of_act(now, last)
        """The moment of this act."""
        self.behind = seconds_behind(now, last)
        """How far the clock is behind what is on record."""
        self.reader = Reader(tx.streams, keyrings, check, Heads(tx.marks, self._root))
        self._signer = signer
        self._origin = origin

    @property
    def key_id(self) -> str:
        return self._signer.public_key.key_id

    @property
    def _root(self) -> bytes:
        return EMPTY_ROOT if self.standing is None else self.standing.heads

    def append(self, planned: Sequence[Planned], objects: Sequence[Recorded] = ()) -> Appended:
        """Append all or none. `objects`: those the events name that are stored and not recorded yet."""
        # (1) the key is good now
        self._refuse_untrusted()
        # (2) each event signed, read back and folded, then appended
        states: dict[str, State] = {}
        events: list[Happened] = []
        first = self.tx.streams.head(LOG)
        for n, one in enumerate(planned):
            state = states.get(one.stream) or self._state(one.stream)
            happened, states[one.stream] = self._appended(one, state, first + n)
            events.append(happened)
        # (3) what they name is there, and is kept
        self._keep(events, objects)
        # (4) their entries, the tree, the ends of their streams, the checkpoint
        entries = [Entry(event=event.digest, seq=event.event.seq, stream=event.event.subject) for event in events]
        ends = {entry.stream: Head(seq=entry.seq, digest=entry.event) for entry in entries}
        after = append_entries(
            self.tx.streams,
            entries,
            heads=put_heads(self.tx.marks, self._root, ends),
            signer=self._signer,
            at=self.now,
            origin=self._origin,
        )
        self.standing = after
        self.reader.heads = Heads(self.tx.marks, self._root)
        return Appended(events=tuple(events), standing=after)

    def _state(self, stream: str) -> State:
        if stream.startswith(PINS):
            environment, _, base_id = stream.removeprefix(PINS).partition("/")
            return self.reader.pins(environment, base_id)
        return self.reader.state(stream)

    def _appended(self, planned: Planned, state: State, entry: int) -> tuple[Happened, State]:
        change = _completed(planned.change, state, entry, str(self.now), self.key_id)
        checked_change(change, planned.reason)
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
        body, kind = written(event, self._signer), kind_of(change)
        stored = StoredEvent(stream=planned.stream, seq=event.seq, kind=kind, body=body)
        happened = self.reader.checked(stored, state)
        after = state.after_event(happened)
        self.tx.streams.append(planned.stream, state.seq, [Event(kind=kind, body=body)])
        return happened, after

    def _keep(self, events: Sequence[Happened], objects: Sequence[Recorded]) -> None:
        for object_ in objects:
            self.tx.objects.record(object_)
        for happened in events:
            index_objects(self.tx.objects, happened.event.subject, happened.change)

    def _refuse_untrusted(self) -> None:
        keyrings = self.reader.keyrings
        actor = keyrings.actor(self.key_id, keyrings.now.seq, self.now) if keyrings.now.seq else None
        if actor is None or actor.revoked:
            revoked = keyrings.is_revoked(self.key_id, self.now)
            raise RegistryUntrusted(
                f"key {self.key_id[:16]} is {'revoked, and ' if revoked else ''}not trusted at {self.now}",
                hint="that is for good: act with another key, 'ctx keys list' tells which are valid"
                if revoked
                else "see 'ctx keys list'; 'ctx keys trust' changes it",
            )


def _completed(change: Change, state: State, entry: int, at: str, by: str) -> Change:
    if isinstance(state, PinState) and isinstance(change, PinChange):
        return replace(change, pins=pins_after(state.pins, change, entry, at, by))
    return change


def index_registry(tx: Transaction, size_of: Callable[[Digest], int]) -> None:
    """Make it anew. An event that is none keeps nothing; whoever verifies tells of it."""
    for stream, change in _changes(tx.streams):
        with suppress(KindConflict):  # named as two kinds of thing: comparing tells of it
            for kind, digest in objects_of(stream, change):
                tx.objects.record(Recorded(digest=digest, kind=kind, size=size_of(digest), traced=True))
            index_objects(tx.objects, stream, change)
    put_heads(tx.marks, EMPTY_ROOT, heads_of(tx.streams))


def compare_objects(view: View) -> Iterator[tuple[str, str]]:
    """What is not kept, or not known for what it is, each with the reason."""
    roots = dict(view.objects.roots(REGISTRY))
    for stream, change in _changes(view.streams):
        for kind, digest in objects_of(stream, change):
            recorded = view.objects.recorded(digest)
            if roots.get(root_name(digest)) != digest:
                yield str(digest), f"{stream} names it, and nothing keeps it"
            elif recorded is None or recorded.kind != kind or not recorded.traced:
                yield str(digest), f"{stream} names it as {kind}, and the index does not"


def compare_ends(view: View, standing: Standing | None) -> Iterator[Trouble]:
    """Whether streams end where the newest checkpoint says, and whether the tree in the index says so too."""
    nodes = KeptNodes()
    root = put_heads(nodes, EMPTY_ROOT, heads_of(view.streams))
    if root != (EMPTY_ROOT if standing is None else standing.heads):
        why = "streams do not end where the newest checkpoint says: 'ctx verify --registry' tells which"
        yield Trouble(code=StreamCut.code, at=CHECKPOINTS, message=why)
    for name, text in nodes.texts.items():
        if view.marks.get(name) != text:
            yield Trouble(code=HeadsDamaged.code, at=name, message="not what the ends of the streams give")


def _changes(streams: StreamsView) -> Iterator[tuple[str, Change]]:
    for prefix in SUBJECTS:
        for stream in list(streams.names(prefix)):
            for stored in streams.read(stream):
                try:
                    yield stream, read_event(stored.body)[1].change
                except ContextPlaneError:
                    continue
