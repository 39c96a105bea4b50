"""The journal of one recording: its event stream, and the roots that keep its contents alive until the pack does.

A recording has roots from its first event until it is a registered pack: they are also the list of the unfinished.

Whether everything that a recording consists of is there and whole. Of what is not, no pack is made.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import BLOB, MAX_INLINE, Condition, Event, Recorded, Stored, StoredEvent
from contextplane.model.execution.manifest import MANIFEST_MOST, Manifest, ManifestInvalid, contents_of, manifest_bytes
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.json.canonical import canonical
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, StreamConflict, Transaction, View
from contextplane.ports.objects import Batch, ObjectCorrupt, ObjectNotFound, ObjectObstructed, Objects
from contextplane.ports.world import Clock, Sources
from contextplane.record.events import (
    Began,
    Finished,
    Given,
    Noted,
    RecordingBroken,
    RecordingEvent,
    RecordingRefused,
    SoFar,
    folded,
    put_given,
    room_of,
)
from contextplane.record.pack_log import PutContent

__all__ = [
    "RECORDINGS",
    "Closed",
    "Desk",
    "Entry",
    "Journal",
    "Part",
    "RecordingDamaged",
    "RecordingFinished",
    "RecordingIncomplete",
    "RecordingTaken",
    "parts_of",
    "refuse_unless_whole",
]

Part = tuple[str, Digest]
"""What a reference calls something that a run consists of, `steps/3` for example, and the object that it is.

`events/2` is an event that was too large for the catalog.
"""

_SAID = {"corrupt": "was tampered with", "missing": "is missing", "unreadable": "is unreadable"}
_WAY_OUT = (
    "no pack was made, and nothing of the recording is collected: restore these objects from a copy, or pack or import"
    " a run that has the same contents, then finalize it again"
)


class RecordingIncomplete(DocumentInvalid):
    """A content of a recording, or an event, is gone or cannot be read. `details.problems` lists all of them."""

    code: ClassVar[str] = "recording_incomplete"
    way_out: ClassVar[str] = _WAY_OUT


class RecordingDamaged(DocumentInvalid):
    """A content of a recording, or an event, is not what it was. `details.problems` lists all that is not whole."""

    code: ClassVar[str] = "recording_damaged"
    family: ClassVar[Family] = "untrusted"
    way_out: ClassVar[str] = _WAY_OUT


def parts_of(manifest: Manifest) -> Iterator[Part]:
    """Every object that a recorded run consists of, and the pack that it is a fork of."""
    named = (*contents_of(manifest), ("parent", manifest.parent))
    return ((part, Digest.parse(text)) for part, text in named if text)


def refuse_unless_whole(parts: Iterable[Part], look: Callable[[Digest], Condition]) -> None:
    """Refuse with everything that is not whole. Each object is looked at once, however often it stands there."""
    seen: dict[Digest, Condition] = {}
    broken = []
    for at, digest in parts:
        condition = seen[digest] if digest in seen else seen.setdefault(digest, look(digest))
        if condition.state != "whole":
            broken.append((condition, Problem(at=at, message=f"{_SAID[condition.state]}: {digest}")))
    if broken:
        damaged = any(condition.state == "corrupt" for condition, _ in broken)
        raise (RecordingDamaged if damaged else RecordingIncomplete)(tuple(problem for _, problem in broken))


RECORDINGS = "recording/"
"""The prefix of the streams of recordings, and of their roots."""

_FOREIGN = "it was not written by a recorder"
_decoder: msgspec.json.Decoder[RecordingEvent] = msgspec.json.Decoder(RecordingEvent)


class RecordingFinished(ContextPlaneError):
    """A recording that was finished, by its own process or by another one, takes nothing more."""

    code: ClassVar[str] = "recording_finished"
    family: ClassVar[Family] = "conflict"


class RecordingTaken(ContextPlaneError):
    """Another process records under the same id. What it recorded stays; this call recorded nothing."""

    code: ClassVar[str] = "recording_taken"
    family: ClassVar[Family] = "conflict"


class Desk(Value, frozen=True):
    """What a recorder works with. `sources`: the files that it may read, which are never those of the store.

    `register`: as part of a transaction, make a stored manifest a registered pack.
    """

    objects: Objects
    catalog: Catalog
    clock: Clock
    sources: Sources
    register: Callable[[Transaction, Digest, bytes], object]


class Closed(Value, frozen=True):
    """A recording that takes nothing more: its manifest, or none when it is a registered pack already."""

    digest: Digest
    raw: bytes | None


class Journal:
    """Writes and reads one recording. Two processes never both append: whoever was overtaken is told so."""

    def __init__(self, desk: Desk, recording_id: RecordingId) -> None:
        self.desk = desk
        self.id = recording_id
        self._seq = 0
        self._size = 0  # of the manifest so far, at least
        self._inherited: tuple[Part, ...] = ()  # what another process put, or this one long ago
        self._stream = f"{RECORDINGS}{recording_id}"

    def read(self, view: View | Transaction) -> SoFar:
        """What was recorded."""
        try:
            return folded(map(self._event, view.streams.read(self._stream)))
        except RecordingBroken as error:
            raise error.under(str(self.id)) from None

    def resume(self) -> SoFar | None:
        """The same, None when it was never begun; appending goes on behind it."""
        with self.desk.catalog.read() as view:
            self._seq = view.streams.head(self._stream)
            so_far = self.read(view) if self._seq else None
        self._size = _size(so_far) if so_far else 0
        self._inherited = tuple(parts_of(so_far.manifest)) if so_far else ()
        return so_far

    def pack(self) -> Digest | None:
        """The registered pack that it became, when nothing is left to do."""
        with self.desk.catalog.read() as view:
            return self._pack(view)

    def needs(self, view: View | Transaction) -> tuple[Digest, ...]:
        """What must be kept of it until it is a pack: what it consists of, and events too large for the catalog."""
        if self._pack(view) is not None:
            return ()
        try:
            parts = [digest for _, digest in parts_of(self.read(view).manifest)]
        except RecordingIncomplete:
            if self._finished(view) is None or self.kept(view):
                raise
            return ()  # it was a pack, which is not registered any more: its events were collected before that
        elsewhere = (_elsewhere(stored.body) for stored in view.streams.read(self._stream))
        return tuple(dict.fromkeys([*parts, *(digest for digest in elsewhere if digest)]))

    def kept(self, view: View | Transaction) -> frozenset[Digest]:
        """What its roots keep."""
        return frozenset(digest for _, digest in view.objects.roots(f"{self._stream}/"))

    @contextmanager
    def entry(self) -> Iterator["Entry"]:
        """One event in the making. Nothing of it is collected before it is kept: the batch is open until then."""
        with self.desk.objects.batch() as batch:
            yield Entry(self, batch)

    def append(
        self, event: Began | Noted, contents: Sequence[Stored], *, batch: Batch, at: str, others: Sequence[Digest] = ()
    ) -> None:
        """Write an event, and keep its contents, which are in the batch, and the others, which were there before.

        `at`: where it will stand in the manifest.
        What would make a manifest that nobody reads back is refused: the recording could not be finished any more.
        """
        size = self._size + room_of(event)
        if size > MANIFEST_MOST:
            raise RecordingRefused(
                (Problem(at=at, message=f"its manifest would have more than {MANIFEST_MOST:,} bytes"),)
            )
        body = canonical(msgspec.to_builtins(event))
        if len(body) > MAX_INLINE:
            elsewhere = Stored(digest=batch.put(body), size=len(body))
            body, contents = canonical({"ref": str(elsewhere.digest)}), (*contents, elsewhere)
        if contents:
            # Before it is visible: what a killed process leaves behind is then known, and can be collected.
            with self.desk.catalog.write(survives="crash") as tx:
                tx.objects.record_blobs((content.digest, content.size) for content in contents)
            batch.commit()
        try:
            with self.desk.catalog.write() as tx:
                seq = tx.streams.append(self._stream, self._seq, [Event(kind="recorded", body=body)])
                for n, digest in enumerate([*(content.digest for content in contents), *others]):
                    self._keep(tx, f"{seq}/{n}", digest)
        except StreamConflict:
            raise self._overtaken() from None
        self._seq, self._size = seq, size

    def close(self) -> Closed:
        """Let nothing follow, and say what was recorded. Doing it again gives the same.

        It is closed before it is registered. The other way round, what a process that was killed in between had
        registered could grow on, and one run would become two packs. What is not whole is refused before that.
        """
        # Before our turn, for hashing takes long. What this journal put itself is only looked for, below.
        self._require(self._inherited, self.desk.objects.check)
        with self.desk.catalog.write() as tx:
            return self._closed(tx)

    def _closed(self, tx: Transaction) -> Closed:
        pack = self._pack(tx)
        if pack is not None:
            return Closed(digest=pack, raw=None)
        so_far = self.read(tx)
        self._require(parts_of(so_far.manifest), self._present)
        raw = manifest_bytes(so_far.manifest)
        digest = Digest.of(raw)
        if so_far.finished is None:
            body = canonical(msgspec.to_builtins(Finished(digest=str(digest))))
            tx.streams.append(self._stream, tx.streams.head(self._stream), [Event(kind="recorded", body=body)])
        elif so_far.finished != digest:
            raise RecordingBroken("it is not what it was closed as", at=str(self.id), hint=_FOREIGN)
        return Closed(digest=digest, raw=raw)

    def register(self, closed: Closed) -> None:
        """Make it a pack, which from now on keeps the contents. Nothing happens when it is one already."""
        if closed.raw is None:
            return
        self.desk.objects.put(closed.raw)
        with self.desk.catalog.write() as tx:
            self.desk.register(tx, closed.digest, closed.raw)
            for name, _ in list(tx.objects.roots(f"{self._stream}/")):
                tx.objects.release(name)

    def keep_again(self, tx: Transaction) -> None:
        """Make its roots anew from its events, unless it is a registered pack. What is gone may come back."""
        for n, digest in enumerate(self.needs(tx)):
            if self.desk.objects.has(digest):
                self._keep(tx, f"0/{n}", digest)
            else:
                tx.objects.keep(f"{self._stream}/0/{n}", digest)

    def finished(self) -> RecordingFinished:
        return RecordingFinished("this recording is finished", at=str(self.id), hint="begin another one")

    def _keep(self, tx: Transaction, name: str, digest: Digest) -> None:
        size = self.desk.objects.size(digest)
        tx.objects.record(Recorded(digest=digest, kind=BLOB, size=size, traced=True))
        tx.objects.keep(f"{self._stream}/{name}", digest)

    def _require(self, parts: Iterable[Part], look: Callable[[Digest], Condition]) -> None:
        try:
            refuse_unless_whole(parts, look)
        except (RecordingDamaged, RecordingIncomplete) as error:
            raise error.under(f"{self.id}:") from None

    def _present(self, digest: Digest) -> Condition:
        return Condition(state="whole" if self.desk.objects.has(digest) else "missing")

    def _pack(self, view: View | Transaction) -> Digest | None:
        """The registered pack that it became. Only its last event is read: nothing keeps the others any more."""
        finished = self._finished(view)
        if finished is None or self.kept(view):
            return None
        return finished if view.packs.row(finished) is not None else None

    def _finished(self, view: View | Transaction) -> Digest | None:
        """What it was closed as. That is its last event, and small."""
        # Read to its end: of very many recordings, each would leave an answer open.
        last = list(view.streams.read(self._stream, after=view.streams.head(self._stream) - 1))
        if not last:
            return None
        try:
            event = None if _elsewhere(last[0].body) else self._event(last[0])
        except RecordingBroken as error:
            raise error.under(str(self.id)) from None
        return Digest.parse(event.digest) if isinstance(event, Finished) else None

    def _overtaken(self) -> ContextPlaneError:
        with self.desk.catalog.read() as view:
            finished = self._finished(view)
        if finished is not None:
            return self.finished()
        return RecordingTaken("another process records under this id", at=str(self.id), hint="begin another recording")

    def _event(self, stored: StoredEvent) -> RecordingEvent:
        elsewhere = _elsewhere(stored.body)
        try:
            return _decoder.decode(self.desk.objects.get(elsewhere) if elsewhere else stored.body)
        except msgspec.DecodeError as error:
            raise RecordingBroken(str(error), hint=_FOREIGN) from error
        except (ObjectNotFound, ObjectCorrupt, ObjectObstructed):
            if elsewhere is not None:
                self._require([(f"events/{stored.seq}", elsewhere)], self.desk.objects.check)
            raise  # it is whole by now


class Entry:
    """One event in the making: nothing of it is visible before all of it is known to be good."""

    def __init__(self, journal: Journal, batch: Batch) -> None:
        self._journal = journal
        self._batch = batch
        self._contents: list[Stored] = []

    def put(self, content: Given, at: str, *, required: bool = False) -> PutContent:
        """Put a content. `at`: where it will stand in the manifest."""
        put = put_given(content, self._batch, self._journal.desk.sources, at)
        if required and not put.stored.size:
            raise RecordingRefused((Problem(at=at, message="is missing"),))
        self._contents.append(put.stored)
        return put

    def write(self, event: Began | Noted, at: str, *others: Digest) -> None:
        """Write the event. `others`: objects that were there before, and that it needs."""
        self._journal.append(event, self._contents, batch=self._batch, at=at, others=others)


def _size(so_far: SoFar) -> int:
    """How large the manifest is so far. Of one that is too large already, nothing more is taken."""
    try:
        return len(manifest_bytes(so_far.manifest))
    except ManifestInvalid:
        return MANIFEST_MOST


def _elsewhere(body: bytes) -> Digest | None:
    """The object that holds an event too large for the catalog."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return Digest.parse(msgspec.json.decode(fields["ref"], type=str)) if set(fields) == {"ref"} else None
    except (msgspec.DecodeError, InvalidId) as error:
        raise RecordingBroken(str(error), hint=_FOREIGN) from error
