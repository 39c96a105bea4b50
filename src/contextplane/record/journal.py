"""The journal of a recording: its event stream, and the roots that protect its contents from gc.

A recording has roots from its first event until it is a registered pack, so the roots are also the list of unfinished
recordings. A pack is made only if every object that the run consists of is present and whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, assert_never

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import (
    BLOB,
    Event,
    IndexedObject,
    ObjectCondition,
    StoredEvent,
    StoredObject,
)
from contextplane.model.execution.manifest import Manifest, ManifestInvalid, contents_of, manifest_bytes
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.json.canonical import canonical
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, StreamConflict, Transaction, View
from contextplane.ports.objects import Batch, ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects
from contextplane.ports.world import Clock, Sources
from contextplane.record.events import (
    ContentLike,
    ItemRecorded,
    RecordingBroken,
    RecordingClosed,
    RecordingEvent,
    RecordingRefused,
    RecordingStarted,
    RecordingState,
    extend_recording,
    not_begun_error,
    put_content,
    size_in_manifest,
)
from contextplane.record.pack_log import StoredContent
from contextplane.store.event_stream import (
    EventStream,
    Folded,
    commit_recorded,
    external_digest,
    last_event,
    put_large_body,
    read_body,
)

__all__ = [
    "RECORDINGS",
    "ClosedRecording",
    "Journal",
    "JournalEntry",
    "RecordingContext",
    "RecordingDamaged",
    "RecordingFinished",
    "RecordingIncomplete",
    "RecordingTaken",
    "RunPart",
    "require_whole",
    "run_parts",
]

RECORDINGS = "recording/"
"""The prefix of the streams of recordings, and of their roots."""

RunPart = tuple[str, Digest]
"""The selector of a part of a run, such as `steps/3`, and the object that holds it.

`events/2` is an event that was too large for the catalog.
"""

_FOREIGN = "it was not written by a recorder"
_decoder: msgspec.json.Decoder[RecordingEvent] = msgspec.json.Decoder(RecordingEvent)
_WAY_OUT = (
    "no pack was made, and nothing of the recording is collected: restore these objects from a copy, or pack or import"
    " a run that has the same contents, then finalize it again"
)


class RecordingIncomplete(DocumentInvalid):
    """A content or an event of a recording is gone or cannot be read.

    `details.problems` lists all of them.
    """

    code: ClassVar[str] = "recording_incomplete"
    way_out: ClassVar[str] = _WAY_OUT


class RecordingDamaged(DocumentInvalid):
    """A content or an event of a recording is not what it was.

    `details.problems` lists all that is not whole.
    """

    code: ClassVar[str] = "recording_damaged"
    family: ClassVar[Family] = "untrusted"
    way_out: ClassVar[str] = _WAY_OUT


class RecordingFinished(ContextPlaneError):
    """A recording that was finished, by its own process or by another one, takes nothing more."""

    code: ClassVar[str] = "recording_finished"
    family: ClassVar[Family] = "conflict"


class RecordingTaken(ContextPlaneError):
    """Another process records under the same id. What it recorded stays; this call recorded nothing."""

    code: ClassVar[str] = "recording_taken"
    family: ClassVar[Family] = "conflict"


def run_parts(manifest: Manifest) -> Iterator[RunPart]:
    """Yield every object that a run consists of, and the pack that it is a fork of."""
    references = (*contents_of(manifest), ("parent", manifest.parent))
    return ((part, Digest.parse(text)) for part, text in references if text)


def require_whole(parts: Iterable[RunPart], look: Callable[[Digest], ObjectCondition]) -> None:
    """Raise an error that lists every part whose object is not whole. Each object is looked at once."""
    seen: dict[Digest, ObjectCondition] = {}
    broken = []
    for at, digest in parts:
        condition = seen[digest] if digest in seen else seen.setdefault(digest, look(digest))
        damage = _damage(condition)
        if damage is not None:
            broken.append((condition, Problem(at=at, message=f"{damage}: {digest}")))
    if broken:
        damaged = any(condition.state == "corrupt" for condition, _ in broken)
        raise (RecordingDamaged if damaged else RecordingIncomplete)(tuple(problem for _, problem in broken))


def _damage(condition: ObjectCondition) -> str | None:
    """What is wrong with an object, in the words of a message; None if it is whole."""
    match condition.state:
        case "whole":
            return None
        case "corrupt":
            return "was tampered with"
        case "missing":
            return "is missing"
        case "unreadable":
            return "is unreadable"
        case unreachable:
            assert_never(unreachable)


class RecordingContext(Value, frozen=True):
    """The ports that a recorder works with.

    `sources`: the files that it may read, which are never those of the store. `register`: makes a stored manifest a
    registered pack, as part of a transaction.
    """

    objects: Objects
    catalog: Catalog
    clock: Clock
    sources: Sources
    register: Callable[[Transaction, Digest, bytes], object]


class ClosedRecording(Value, frozen=True):
    """A closed recording. `raw`: the bytes of its manifest, or None if it is a registered pack already."""

    digest: Digest
    raw: bytes | None


class Journal:
    """Writes and reads one recording. If two processes append, the second raises `RecordingTaken`."""

    def __init__(self, context: RecordingContext, recording_id: RecordingId) -> None:
        self.context = context
        self.id = recording_id
        self._seq = 0
        self._size = 0  # of the manifest so far, at least
        self._inherited: tuple[RunPart, ...] = ()  # what another process put, or this one long ago
        self._stream = f"{RECORDINGS}{recording_id}"
        self._events: EventStream[RecordingEvent, RecordingState | None] = EventStream(
            name=self._stream, initial=None, decode=self._event, evolve=extend_recording
        )

    def read(self, view: View | Transaction) -> RecordingState:
        """Read the events, and fold them into the state of the recording."""
        return self._fold(view)[0]

    def _fold(self, view: View | Transaction) -> tuple[RecordingState, Folded[RecordingState | None]]:
        """Fold the events: the state, and the end of the stream to append to."""
        try:
            end = self._events.fold(view.streams)
            if end.state is None:
                raise not_begun_error()
        except RecordingBroken as error:
            raise error.under(str(self.id)) from None
        return end.state, end

    def resume(self) -> RecordingState | None:
        """Read the state and continue appending after it; None if the recording was never begun."""
        with self.context.catalog.read() as view:
            self._seq = view.streams.head(self._stream)
            state = self.read(view) if self._seq else None
        self._size = _manifest_size(state) if state else 0
        self._inherited = tuple(run_parts(state.manifest)) if state else ()
        return state

    def pack(self) -> Digest | None:
        """The registered pack that the recording became, or None while it is not one."""
        with self.context.catalog.read() as view:
            return self._pack(view)

    def required_objects(self, view: View | Transaction) -> tuple[Digest, ...]:
        """The objects that must be kept until the recording is a pack.

        They are the parts of the run, and the events too large for the catalog.
        """
        if self._pack(view) is not None:
            return ()
        try:
            parts = [digest for _, digest in run_parts(self.read(view).manifest)]
        except RecordingIncomplete:
            if self._closing_digest(view) is None or self.rooted_objects(view):
                raise
            return ()  # it was a pack, which is not registered any more: its events were collected before that
        external = (external_digest(stored.body) for stored in view.streams.read(self._stream))
        return tuple(dict.fromkeys([*parts, *(digest for digest in external if digest)]))

    def rooted_objects(self, view: View | Transaction) -> frozenset[Digest]:
        """The objects that the roots of the recording keep."""
        return frozenset(digest for _, digest in view.objects.roots(f"{self._stream}/"))

    @contextmanager
    def entry(self) -> Iterator["JournalEntry"]:
        """Open an entry for one event. Its batch stays open until a root keeps its contents from collection."""
        with self.context.objects.batch() as batch:
            yield JournalEntry(self, batch)

    def append(
        self,
        event: RecordingStarted | ItemRecorded,
        contents: Sequence[StoredObject],
        *,
        batch: Batch,
        at: str,
        others: Sequence[Digest] = (),
    ) -> None:
        """Write an event, and keep its contents (in the batch) and the others (stored before).

        `at`: the place of the event in the manifest. An event that makes the manifest too large to be read back is
        refused: the recording could not be finished any more.
        """
        size = self._size + size_in_manifest(event)
        if size > MAX_MANIFEST_BYTES:
            raise RecordingRefused(
                (Problem(at=at, message=f"its manifest would have more than {MAX_MANIFEST_BYTES:,} bytes"),)
            )
        body, external = put_large_body(canonical(msgspec.to_builtins(event)), batch)
        if external is not None:
            contents = (*contents, external)
        if contents:
            blobs = [(content.digest, content.size) for content in contents]
            commit_recorded(batch, self.context.catalog, lambda tx: tx.objects.record_blobs(blobs))
        try:
            with self.context.catalog.write() as tx:
                seq = tx.streams.append(self._stream, self._seq, [Event(kind="recorded", body=body)])
                for n, digest in enumerate([*(content.digest for content in contents), *others]):
                    self._keep(tx, f"{seq}/{n}", digest)
        except StreamConflict:
            raise self._conflict_error() from None
        self._seq, self._size = seq, size

    def close(self) -> ClosedRecording:
        """Append the closing event, and return the manifest. Closing again returns the same.

        A recording is closed before it is registered. In the other order, a recording that was registered by a process
        killed in between could grow, and one run would become two packs. What is not whole is refused before that.
        """
        # Before the transaction, because hashing takes long. What this journal put itself is only looked for, below.
        self._require(self._inherited, self.context.objects.check)
        with self.context.catalog.write() as tx:
            return self._close_within(tx)

    def _close_within(self, tx: Transaction) -> ClosedRecording:
        pack = self._pack(tx)
        if pack is not None:
            return ClosedRecording(digest=pack, raw=None)
        state, end = self._fold(tx)
        self._require(run_parts(state.manifest), self._presence)
        raw = manifest_bytes(state.manifest)
        digest = Digest.of(raw)
        if state.closed_as is None:
            body = canonical(msgspec.to_builtins(RecordingClosed(digest=str(digest))))
            self._events.append(tx.streams, end, [Event(kind="recorded", body=body)])
        elif state.closed_as != digest:
            raise RecordingBroken("it is not what it was closed as", at=str(self.id), hint=_FOREIGN)
        return ClosedRecording(digest=digest, raw=raw)

    def register(self, closed: ClosedRecording) -> None:
        """Register the pack, which keeps the contents from now on. Does nothing if it is registered already."""
        if closed.raw is None:
            return
        self.context.objects.put(closed.raw)
        with self.context.catalog.write() as tx:
            self.context.register(tx, closed.digest, closed.raw)
            for name, _ in list(tx.objects.roots(f"{self._stream}/")):
                tx.objects.release(name)

    def restore_roots(self, tx: Transaction) -> None:
        """Rebuild the roots from the events, unless it is a registered pack. A lost object may come back."""
        for n, digest in enumerate(self.required_objects(tx)):
            if self.context.objects.has(digest):
                self._keep(tx, f"0/{n}", digest)
            else:
                tx.objects.keep(f"{self._stream}/0/{n}", digest)

    def finished_error(self) -> RecordingFinished:
        """The error for a call on a finished recording."""
        return RecordingFinished("this recording is finished", at=str(self.id), hint="begin another one")

    def _keep(self, tx: Transaction, name: str, digest: Digest) -> None:
        size = self.context.objects.size(digest)
        tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=size, traced=True))
        tx.objects.keep(f"{self._stream}/{name}", digest)

    def _require(self, parts: Iterable[RunPart], look: Callable[[Digest], ObjectCondition]) -> None:
        try:
            require_whole(parts, look)
        except (RecordingDamaged, RecordingIncomplete) as error:
            raise error.under(f"{self.id}:") from None

    def _presence(self, digest: Digest) -> ObjectCondition:
        return ObjectCondition(state="whole" if self.context.objects.has(digest) else "missing")

    def _pack(self, view: View | Transaction) -> Digest | None:
        """The registered pack that it became. Reads only the last event: nothing keeps the others any more."""
        digest = self._closing_digest(view)
        if digest is None or self.rooted_objects(view):
            return None
        return digest if view.packs.row(digest) is not None else None

    def _closing_digest(self, view: View | Transaction) -> Digest | None:
        """The digest in the closing event, which is the last one and small; None if the recording is open."""
        last = last_event(view.streams, self._stream)
        if last is None:
            return None
        try:
            event = None if _is_external(last.body) else self._event(last)
        except RecordingBroken as error:
            raise error.under(str(self.id)) from None
        return Digest.parse(event.digest) if isinstance(event, RecordingClosed) else None

    def _conflict_error(self) -> ContextPlaneError:
        with self.context.catalog.read() as view:
            closed_as = self._closing_digest(view)
        if closed_as is not None:
            return self.finished_error()
        return RecordingTaken("another process records under this id", at=str(self.id), hint="begin another recording")

    def _event(self, stored: StoredEvent) -> RecordingEvent:
        try:
            return _decoder.decode(read_body(stored.body, self.context.objects))
        except (msgspec.DecodeError, InvalidId) as error:
            raise RecordingBroken(str(error), hint=_FOREIGN) from error
        except (ObjectNotFound, ObjectCorrupt, ObjectObstructed):
            external = external_digest(stored.body)
            if external is not None:
                self._require([(f"events/{stored.seq}", external)], self.context.objects.check)
            raise  # it is whole by now


class JournalEntry:
    """One event and its contents while they are written. Nothing is visible before all of it is checked."""

    def __init__(self, journal: Journal, batch: Batch) -> None:
        self._journal = journal
        self._batch = batch
        self._contents: list[StoredObject] = []

    def put(self, content: ContentLike, at: str, *, required: bool = False) -> StoredContent:
        """Put a content of the event. `at`: its place in the manifest."""
        put = put_content(content, self._batch, self._journal.context.sources, at)
        if required and not put.stored.size:
            raise RecordingRefused((Problem(at=at, message="is missing"),))
        self._contents.append(put.stored)
        return put

    def write(self, event: RecordingStarted | ItemRecorded, at: str, *others: Digest) -> None:
        """Write the event. `others`: objects stored before that it needs."""
        self._journal.append(event, self._contents, batch=self._batch, at=at, others=others)


def _manifest_size(state: RecordingState) -> int:
    """The size of the manifest so far; the limit if it is too large, so that it takes no more events."""
    try:
        return len(manifest_bytes(state.manifest))
    except ManifestInvalid:
        return MAX_MANIFEST_BYTES


def _is_external(body: bytes) -> bool:
    try:
        return external_digest(body) is not None
    except (msgspec.DecodeError, InvalidId) as error:
        raise RecordingBroken(str(error), hint=_FOREIGN) from error
