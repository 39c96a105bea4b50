"""The journal of one recording: its event stream, and the roots that keep its contents alive until the pack does.

A recording has roots from its first event until it is a registered pack: they are also the list of the unfinished.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.execution import MANIFEST_MOST, references
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.manifest import ManifestInvalid, manifest_bytes
from contextplane.model.problems import Problem
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.clock import Clock
from contextplane.ports.object_index import BLOB, Recorded
from contextplane.ports.objects import Batch, Objects, Stored
from contextplane.ports.sources import Sources
from contextplane.ports.streams import MAX_INLINE, Event, StreamConflict
from contextplane.record.checking import RecordingRefused
from contextplane.record.contents import PutContent
from contextplane.record.folding import Began, Finished, Noted, RecordingBroken, RecordingEvent, SoFar, folded, room_of
from contextplane.record.given import Given, put_given

__all__ = ["RECORDINGS", "Closed", "Desk", "Entry", "Journal", "RecordingFinished", "RecordingTaken"]

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
    """A recording that takes nothing more: its manifest, and whether it is a registered pack already."""

    digest: Digest
    raw: bytes
    registered: bool


class Journal:
    """Writes and reads one recording. Two processes never both append: whoever was overtaken is told so."""

    def __init__(self, desk: Desk, recording_id: RecordingId) -> None:
        self.desk = desk
        self.id = recording_id
        self._seq = 0
        self._size = 0  # of the manifest so far, at least
        self._stream = f"{RECORDINGS}{recording_id}"

    def read(self, view: View | Transaction) -> SoFar:
        """What was recorded."""
        try:
            return folded(self._event(stored.body) for stored in view.streams.read(self._stream))
        except RecordingBroken as error:
            raise error.under(str(self.id)) from None

    def resume(self) -> SoFar | None:
        """The same, None when it was never begun; appending goes on behind it."""
        with self.desk.catalog.read() as view:
            self._seq = view.streams.head(self._stream)
            so_far = self.read(view) if self._seq else None
        self._size = _size(so_far) if so_far else 0
        return so_far

    def is_pack(self, digest: Digest) -> bool:
        """Whether nothing is left to do: what was recorded is kept by this registered pack."""
        with self.desk.catalog.read() as view:
            return self._is_pack(view, digest)

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
                tx.objects.record_blobs((one.digest, one.size) for one in contents)
            batch.commit()
        try:
            with self.desk.catalog.write() as tx:
                seq = tx.streams.append(self._stream, self._seq, [Event(kind="recorded", body=body)])
                self._keep(tx, seq, [*(one.digest for one in contents), *others])
        except StreamConflict:
            raise self._overtaken() from None
        self._seq, self._size = seq, size

    def close(self) -> Closed:
        """Let nothing follow, and say what was recorded. Doing it again gives the same.

        It is closed before it is registered. The other way round, what a process that was killed in between had
        registered could grow on, and one run would become two packs.
        """
        with self.desk.catalog.write() as tx:
            so_far = self.read(tx)
            raw = manifest_bytes(so_far.manifest)
            digest = so_far.finished or Digest.of(raw)
            registered = so_far.finished is not None and self._is_pack(tx, so_far.finished)
            if not registered and digest != Digest.of(raw):
                raise RecordingBroken("it is not what it was closed as", at=str(self.id), hint=_FOREIGN)
            if so_far.finished is None:
                body = canonical(msgspec.to_builtins(Finished(digest=str(digest))))
                tx.streams.append(self._stream, tx.streams.head(self._stream), [Event(kind="recorded", body=body)])
        return Closed(digest=digest, raw=raw, registered=registered)

    def register(self, closed: Closed) -> None:
        """Make it a pack, which from now on keeps the contents."""
        self.desk.objects.put(closed.raw)
        with self.desk.catalog.write() as tx:
            self.desk.register(tx, closed.digest, closed.raw)
            for name, _ in list(tx.objects.roots(f"{self._stream}/")):
                tx.objects.release(name)

    def keep_again(self, tx: Transaction) -> None:
        """Make its roots anew from its events, unless it is a registered pack."""
        so_far = self.read(tx)
        if so_far.finished is not None and tx.packs.row(so_far.finished) is not None:
            return
        found = references(manifest_bytes(so_far.manifest))
        elsewhere = [_elsewhere(stored.body) for stored in tx.streams.read(self._stream)]
        named = [*(target for _, target in found.found), *(one for one in elsewhere if one)] if found else []
        self._keep(tx, 0, [one for one in named if self.desk.objects.has(one)])

    def finished(self) -> RecordingFinished:
        return RecordingFinished("this recording is finished", at=str(self.id), hint="begin another one")

    def _keep(self, tx: Transaction, seq: int, contents: Sequence[Digest]) -> None:
        for n, digest in enumerate(contents):
            size = self.desk.objects.size(digest)
            tx.objects.record(Recorded(digest=digest, kind=BLOB, size=size, traced=True))
            tx.objects.keep(f"{self._stream}/{seq}/{n}", digest)

    def _is_pack(self, view: View | Transaction, digest: Digest) -> bool:
        return next(view.objects.roots(f"{self._stream}/"), None) is None and view.packs.row(digest) is not None

    def _overtaken(self) -> ContextPlaneError:
        with self.desk.catalog.read() as view:
            so_far = self.read(view)
        if so_far.finished is not None:
            return self.finished()
        return RecordingTaken("another process records under this id", at=str(self.id), hint="begin another recording")

    def _event(self, body: bytes) -> RecordingEvent:
        elsewhere = _elsewhere(body)
        try:
            return _decoder.decode(self.desk.objects.get(elsewhere) if elsewhere else body)
        except msgspec.DecodeError as error:
            raise RecordingBroken(str(error), hint=_FOREIGN) from error


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
