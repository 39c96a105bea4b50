"""Event streams: fold one into a state, append to it, and keep the objects of its events.

- **Fold.** The state of a recording, a subject of the registry, a handoff pack or a keyring is a fold over its events.
  `EventStream` describes such a stream; states are values, so that a fold can be continued where it ended.
- **Append.** An event is decoded and folded as a reader would before it is written. If another writer was faster, the
  catalog raises `StreamConflict` and nothing is written; `update` then folds the new events and decides again.
- **Large bodies.** A body over 64 KiB is an object, and the event says `{"ref": "sha256:..."}` instead.
- **Objects of an event** become durable with it. A small one waits in the catalog: its commit is the only wait for the
  disk. A large one is stored before. `flush_pending` settles those that wait: it writes them as files.

This module knows no kind of event. Every kind is described by the package that writes it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Generic, NamedTuple, TypeVar

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import MAX_INLINE, Event, IndexedObject, StoredEvent, StoredObject
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, PendingView, StreamConflict, Streams, StreamsView, Transaction, View
from contextplane.ports.objects import Batch, ObjectReader, Objects

__all__ = [
    "MAX_PENDING",
    "Appended",
    "Chain",
    "EventStream",
    "Folded",
    "StreamHead",
    "commit_recorded",
    "external_digest",
    "flush_pending",
    "last_event",
    "pending_bytes",
    "put_large_body",
    "read_body",
    "read_object",
    "stream_head",
    "write_with_objects",
]

E = TypeVar("E")
S = TypeVar("S")

_TRIES = 16


# --- the ends of streams ----------------------------------------------------------------------------------------------


class StreamHead(Value, frozen=True):
    """The end of a stream: the number of its last event, and the SHA-256 of that event's body."""

    seq: int
    digest: str


def last_event(streams: StreamsView, name: str) -> StoredEvent | None:
    """The last event of a stream; None if it has none."""
    seq = streams.head(name)
    # A list, so that the query is read to its end: each of very many streams would leave one open.
    events = list(streams.read(name, after=seq - 1)) if seq else []
    return events[0] if events else None


def stream_head(streams: StreamsView, name: str) -> StreamHead | None:
    """The end of a stream, read from the stream itself; None if it has no event."""
    last = last_event(streams, name)
    return None if last is None else StreamHead(seq=last.seq, digest=Digest.of(last.body).hex)


# --- the fold ---------------------------------------------------------------------------------------------------------


class Folded(Value, Generic[S], frozen=True):
    """A state, and the end of the stream that it was folded from: `digest` is that of event `seq`.

    Before the first event, `seq` is 0 and `digest` is empty.
    """

    state: S
    seq: int = 0
    digest: str = ""


class Appended(NamedTuple, Generic[E, S]):
    """Events as a reader decodes them, and the fold that includes them."""

    events: tuple[E, ...]
    end: Folded[S]


class Chain(Value, Generic[E], frozen=True):
    """The link between events: each names the digest of the one before it, the first one names "".

    `previous`: the digest that an event names; None if it names none. `misplaced`: the error for an event that does not
    follow the one before it, with the reason.
    """

    previous: Callable[[E], str | None]
    misplaced: Callable[[StoredEvent, str], ContextPlaneError]


class EventStream(Value, Generic[E, S], frozen=True):
    """Describes one stream: its name, how its events are read, and the state that they lead to.

    `decode`: reads an event, or raises. `evolve`: the state after more events; it never changes the state before.
    `chain`: how its events are linked, if they are.
    """

    name: str
    initial: S
    decode: Callable[[StoredEvent], E]
    evolve: Callable[[S, Iterable[E]], S]
    chain: Chain[E] | None = None

    def fold(self, streams: StreamsView, start: Folded[S] | None = None) -> Folded[S]:
        """Fold the stream; with `start`, only the events after that.

        If the stream lost or changed the event at which `start` ended, it is folded from its first event again.
        """
        if start is not None and start.seq:
            stored = iter(streams.read(self.name, after=start.seq - 1))
            first = next(stored, None)
            if first is not None and first.seq == start.seq and Digest.of(first.body).hex == start.digest:
                return self.advance(start, stored)
        return self.advance(Folded(state=self.initial), streams.read(self.name))

    def advance(self, end: Folded[S], stored: Iterable[StoredEvent]) -> Folded[S]:
        """Fold events that the caller has read, and that follow a fold."""
        last: StoredEvent | None = None

        def remember() -> Iterator[StoredEvent]:
            nonlocal last
            for item in stored:
                last = item
                yield item

        state = self.evolve(end.state, self.follow(end, remember()))
        return end if last is None else Folded(state=state, seq=last.seq, digest=Digest.of(last.body).hex)

    def follow(self, end: Folded[S], stored: Iterable[StoredEvent]) -> Iterator[E]:
        """Yield events that follow a fold, decoded and linked. Nothing is folded."""
        if self.chain is None:
            yield from map(self.decode, stored)
            return
        seq, digest = end.seq, end.digest
        for item in stored:
            event = self.decode(item)
            if item.seq != seq + 1 or self.chain.previous(event) not in {None, digest}:
                raise self.chain.misplaced(item, f"it does not follow event {seq}")
            yield event
            seq, digest = item.seq, Digest.of(item.body).hex

    def append(self, streams: Streams, end: Folded[S], events: Sequence[Event]) -> Appended[E, S]:
        """Append one event or more to the stream that was folded.

        They are read as a reader would first: an event that a reader refuses is never written. `StreamConflict` if the
        stream does not end there any more.
        """
        numbered = [
            StoredEvent(stream=self.name, seq=seq, kind=event.kind, body=event.body)
            for seq, event in enumerate(events, end.seq + 1)
        ]
        decoded = tuple(self.follow(end, numbered))
        state = self.evolve(end.state, decoded)
        seq = streams.append(self.name, end.seq, events)
        return Appended(decoded, Folded(state=state, seq=seq, digest=Digest.of(events[-1].body).hex))

    def update(self, catalog: Catalog, decide: Callable[[S], Sequence[Event]]) -> Folded[S]:
        """Append the events that `decide` makes of the state, none or more, and return the fold after them.

        Nothing is locked while it decides. If another writer was faster, it decides again by the newer state.
        """
        end: Folded[S] | None = None
        tries = _TRIES
        while True:
            with catalog.read() as view:
                end = self.fold(view.streams, end)
            events = decide(end.state)
            if not events:
                return end
            try:
                with catalog.write() as tx:
                    return self.append(tx.streams, end, events).end
            except StreamConflict:
                tries -= 1
                if not tries:
                    raise


# --- large bodies -----------------------------------------------------------------------------------------------------

_REF = b'{"ref":"'


class _ExternalBody(Value, frozen=True, forbid_unknown_fields=True):
    ref: str


_external = msgspec.json.Decoder(_ExternalBody)


def put_large_body(body: bytes, batch: Batch) -> tuple[bytes, StoredObject | None]:
    """Put a body that is too large for the catalog into the batch.

    Return the body to append, and the object that was put; None if the body fits.
    """
    if len(body) <= MAX_INLINE:
        return body, None
    external = StoredObject(digest=batch.put(body), size=len(body))
    return canonical({"ref": str(external.digest)}), external


def external_digest(body: bytes) -> Digest | None:
    """The object that holds a large body; None if `body` is the body itself.

    A damaged reference raises `msgspec.DecodeError` or `InvalidId`.
    """
    return Digest.parse(_external.decode(body).ref) if body.startswith(_REF) else None


def read_body(body: bytes, objects: ObjectReader) -> bytes:
    """The body of an event, from the event or from its object, whose bytes are verified."""
    external = external_digest(body)
    return body if external is None else objects.get(external)


# --- the objects of events --------------------------------------------------------------------------------------------

MAX_PENDING = 256
"""When so many small objects wait in the catalog, the writer writes them as files: they take space there."""

_BATCH = 256
"""Objects that become files together: syncing many at once is cheap."""


def commit_recorded(batch: Batch, catalog: Catalog, record: Callable[[Transaction], None]) -> None:
    """Record the objects of a batch in the index, then commit the batch.

    In this order: what a killed process leaves behind is then known, and can be collected.
    """
    with catalog.write(survives="crash") as tx:
        record(tx)
    batch.commit()


@contextmanager
def write_with_objects(
    catalog: Catalog, objects: Objects, contents: Sequence[bytes], *, kind: str
) -> Iterator[Transaction]:
    """Open a transaction whose events refer to these objects, which refer to no others.

    They become durable with its commit, or before it. Afterwards, the small ones are settled if very many wait.
    """
    indexed = [IndexedObject(digest=Digest.of(data), kind=kind, size=len(data), traced=True) for data in contents]
    large = [data for data in contents if len(data) > MAX_INLINE]

    def record(tx: Transaction) -> None:
        for item in indexed:
            tx.objects.record(item)

    # The batch stays open until the commit: nothing else keeps its objects from being collected.
    with objects.batch() if large else nullcontext() as batch:
        if batch is not None:
            for data in large:
                batch.put(data)
            commit_recorded(batch, catalog, record)
        with catalog.write() as tx:
            yield tx
            record(tx)
            for item, data in zip(indexed, contents, strict=True):
                if item.size <= MAX_INLINE:
                    tx.pending.put(item.digest, data)
            pending = tx.pending.count()
    if pending >= MAX_PENDING:
        flush_pending(catalog, objects)


def pending_bytes(pending: PendingView, digest: Digest) -> bytes | None:
    """The bytes of a pending object; None when it does not wait, or is not what its name says."""
    data = pending.get(digest)
    return data if data is not None and Digest.of(data) == digest else None


def read_object(view: View | Transaction, objects: ObjectReader, digest: Digest) -> bytes:
    """The verified bytes of an object, from the catalog while it waits there, else from the object store."""
    pending = pending_bytes(view.pending, digest)
    return objects.get(digest) if pending is None else pending


def flush_pending(catalog: Catalog, objects: Objects) -> None:
    """Write all pending objects to the object store, durably, and only then remove them from the catalog.

    When it is interrupted, the next call begins again.
    """
    while True:
        with catalog.read() as view:
            # An object that is not what its name says stays where it is, and a check finds it missing.
            pending = [(digest, data) for digest, data in view.pending.some(_BATCH) if Digest.of(data) == digest]
        if not pending:
            return
        with objects.batch() as batch:
            for _, data in pending:
                batch.put(data)
            batch.commit()
            # Within the batch: none of them is collected before the catalog lets go of it.
            with catalog.write(survives="crash") as tx:
                for digest, _ in pending:
                    tx.pending.remove(digest)
