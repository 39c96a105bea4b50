"""The laws of `store.event_stream`, for any catalog: the fold, appending, large bodies, and the objects of events."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextplane.adapters.files.objects import FileObjects
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import BLOB, MAX_INLINE, Event, StoredEvent
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import canonical
from contextplane.model.value import Document
from contextplane.ports.catalog import Catalog, StreamConflict
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, Objects
from contextplane.store.event_stream import (
    MAX_PENDING,
    Chain,
    EventStream,
    Folded,
    StreamHead,
    commit_recorded,
    external_digest,
    flush_pending,
    last_event,
    put_large_body,
    read_body,
    read_object,
    stream_head,
    write_with_objects,
)
from contextplane.testing.laws.streams import CatalogMaker, run_in_threads

NAME = "s"


class Added(Document, frozen=True):
    """An event of the test: a number is added. `previous` is the digest of the event before it."""

    number: int
    previous: str


class Refused(ContextPlaneError):
    """The error of the stream of the test."""

    code = "test_refused"


class Misplaced(Refused):
    """An event that does not follow the one before it."""

    code = "test_misplaced"


def decode(stored: StoredEvent) -> Added:
    try:
        return msgspec.json.decode(stored.body, type=Added)
    except msgspec.DecodeError as error:
        raise Refused(str(error)) from error


def evolve(numbers: tuple[int, ...], more: Iterable[Added]) -> tuple[int, ...]:
    state = list(numbers)
    for event in more:
        if event.number < 0:
            raise Refused("a number is not negative")
        state.append(event.number)
    return tuple(state)


CHAINED: EventStream[Added, tuple[int, ...]] = EventStream(
    name=NAME,
    initial=(),
    decode=decode,
    evolve=evolve,
    chain=Chain(previous=lambda event: event.previous, misplaced=lambda stored, why: Misplaced(why, at=stored.stream)),
)
UNCHAINED: EventStream[Added, tuple[int, ...]] = EventStream(name=NAME, initial=(), decode=decode, evolve=evolve)


def added(previous: str, *numbers: int) -> list[Event]:
    """Events that follow one another, the first of them after the digest `previous`."""
    events = []
    for number in numbers:
        events.append(Event(kind="added", body=canonical({"number": number, "previous": previous})))
        previous = Digest.of(events[-1].body).hex
    return events


def fold(catalog: Catalog) -> Folded[tuple[int, ...]]:
    with catalog.read() as view:
        return CHAINED.fold(view.streams)


@contextmanager
def objects_in_a_folder() -> Iterator[tuple[Objects, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "objects").mkdir()
        yield FileObjects(str(Path(folder, "objects"))), Path(folder, "objects")


def append_large(catalog: Catalog, objects: Objects, body: bytes) -> bytes:
    """Append an event as a writer does, and return the body that the catalog has."""
    with objects.batch() as batch:
        stored_body, external = put_large_body(body, batch)
        if external is not None:
            commit_recorded(batch, catalog, lambda tx: tx.objects.record_blobs([(external.digest, external.size)]))
        with catalog.write() as tx:
            tx.streams.append(NAME, tx.streams.head(NAME), [Event(kind="added", body=stored_body)])
    with catalog.read() as view:
        last = last_event(view.streams, NAME)
    assert last is not None
    return last.body


steps = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["fold", "append"]), st.integers(0, 9)), max_size=12)


class EventStreamLaw(CatalogMaker):
    """A stream is what was accepted, whoever wrote it, and nothing that a reader refuses is ever in it."""

    @given(steps)
    def test_any_interleaving_of_appends_equals_the_fold_of_those_that_were_accepted(
        self, actions: list[tuple[int, str, int]]
    ) -> None:
        catalog = self.make()
        ends = [Folded[tuple[int, ...]](state=()) for _ in range(3)]
        accepted: list[int] = []
        for writer, action, number in actions:
            before = ends[writer]
            if action == "fold":
                with catalog.read() as view:
                    ends[writer] = CHAINED.fold(view.streams, before)
                assert ends[writer].state == tuple(accepted)
                continue
            is_current = before.seq == len(accepted)
            try:
                with catalog.write() as tx:
                    ends[writer] = CHAINED.append(tx.streams, before, added(before.digest, number)).end
                accepted.append(number)
            except StreamConflict:
                assert not is_current
                assert ends[writer] is before
            else:
                assert is_current
                assert ends[writer] == fold(catalog)
        assert fold(catalog).state == tuple(accepted)

    @given(st.lists(st.integers(0, 9), max_size=6), st.integers(0, 6))
    def test_a_fold_goes_on_where_another_one_ended(self, numbers: list[int], cut: int) -> None:
        catalog = self.make()
        first, rest = numbers[:cut], numbers[cut:]
        end = Folded[tuple[int, ...]](state=())
        for part in (first, rest):
            if part:
                with catalog.write() as tx:
                    appended = CHAINED.append(tx.streams, end, added(end.digest, *part))
                assert [event.number for event in appended.events] == part
                end = appended.end
        with catalog.read() as view:
            middle = CHAINED.advance(Folded(state=()), list(view.streams.read(NAME))[: len(first)])
            assert middle.state == tuple(first)
            assert CHAINED.fold(view.streams, middle) == CHAINED.fold(view.streams) == end
            assert stream_head(view.streams, NAME) == (StreamHead(seq=end.seq, digest=end.digest) if numbers else None)
            last = last_event(view.streams, NAME)
            assert (last.seq if last else 0) == len(numbers)

    @given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.lists(st.integers(0, 9), max_size=5))
    def test_a_fold_of_a_stream_that_was_replaced_does_not_go_on_from_the_old_one(
        self, before: list[int], after: list[int]
    ) -> None:
        old = self.make()
        with old.write() as tx:
            end = UNCHAINED.append(tx.streams, Folded(state=()), added("", *before)).end
        new = self.make()
        if after:
            with new.write() as tx:
                UNCHAINED.append(tx.streams, Folded(state=()), added("", *after))
        with new.read() as view:
            assert UNCHAINED.fold(view.streams, end).state == tuple(after)

    @pytest.mark.parametrize("number", [-1, 1.5])
    def test_an_event_that_a_reader_refuses_is_not_written(self, number: float) -> None:
        catalog = self.make()
        bad = Event(kind="added", body=canonical({"number": number, "previous": ""}))
        for stream in (CHAINED, UNCHAINED):
            with catalog.write() as tx, pytest.raises(Refused):
                stream.append(tx.streams, Folded(state=()), [bad])
        assert fold(catalog).seq == 0

    def test_an_event_that_names_another_one_than_that_before_it_is_misplaced(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            end = CHAINED.append(tx.streams, Folded(state=()), added("", 1, 2)).end
        with catalog.write() as tx, pytest.raises(Misplaced):
            CHAINED.append(tx.streams, end, added("0" * 64, 3))
        assert fold(catalog) == end
        with catalog.write() as tx:
            tx.streams.append(NAME, 2, added("0" * 64, 3))
        with catalog.read() as view:
            with pytest.raises(Misplaced, match="does not follow event 2"):
                CHAINED.fold(view.streams)
            assert UNCHAINED.fold(view.streams).state == (1, 2, 3)

    def test_a_hole_in_a_chained_stream_is_found(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            CHAINED.append(tx.streams, Folded(state=()), added("", 1, 2, 3))
        with catalog.read() as view:
            first, _, third = view.streams.read(NAME)
        with pytest.raises(Misplaced, match="does not follow event 1"):
            CHAINED.advance(Folded(state=()), [first, third])

    def test_a_number_that_does_not_follow_is_found_although_the_event_names_the_one_before_it(self) -> None:
        begun, next_event = added("", 1, 2)
        first = StoredEvent(stream=NAME, seq=1, kind=begun.kind, body=begun.body)
        for stored, last in (([replace(first, seq=2)], 0), ([first, replace(first, seq=3, body=next_event.body)], 1)):
            with pytest.raises(Misplaced, match=f"does not follow event {last}"):
                CHAINED.advance(Folded(state=()), stored)

    def test_what_is_decided_by_the_state_is_decided_again_after_a_conflict(self) -> None:
        self.make()
        writers, each = 3, 4

        def write(_: int) -> None:
            catalog = self.reopen()
            for _ in range(each):
                UNCHAINED.update(catalog, lambda numbers: added("", len(numbers)))
            catalog.close()

        run_in_threads(write, writers)
        with self.reopen().read() as view:
            assert UNCHAINED.fold(view.streams).state == tuple(range(writers * each))

    def test_deciding_to_write_nothing_writes_nothing(self) -> None:
        catalog = self.make()
        assert UNCHAINED.update(catalog, lambda _: []) == Folded(state=())
        assert fold(catalog).seq == 0

    def test_whoever_is_always_overtaken_gets_the_conflict_and_has_written_nothing(self) -> None:
        catalog, other = self.make(), self.reopen()

        def decide(numbers: tuple[int, ...]) -> Sequence[Event]:
            with other.write() as tx:
                tx.streams.append(NAME, len(numbers), added("", 1))
            return added("", 2)

        with pytest.raises(StreamConflict):
            UNCHAINED.update(catalog, decide)
        with catalog.read() as view:
            assert set(UNCHAINED.fold(view.streams).state) == {1}

    def test_a_body_above_the_limit_is_an_object_and_comes_back_verified(self) -> None:
        catalog = self.make()
        with objects_in_a_folder() as (objects, folder):
            at_limit, above = b'"' + b"x" * (MAX_INLINE - 2) + b'"', b'"' + b"y" * (MAX_INLINE - 1) + b'"'
            assert append_large(catalog, objects, at_limit) == at_limit
            assert external_digest(at_limit) is None
            body = append_large(catalog, objects, above)
            digest = Digest.of(above)
            assert body == canonical({"ref": str(digest)})
            assert external_digest(body) == digest
            assert read_body(at_limit, objects) == at_limit
            assert read_body(body, objects) == above
            with catalog.read() as view:
                assert view.objects.lookup(digest) is not None
            path = folder / digest.hex[:2] / digest.hex[2:]
            path.chmod(0o600)
            path.write_bytes(above.replace(b"y", b"z", 1))
            with pytest.raises(ObjectCorrupt):
                read_body(body, objects)
            path.unlink()
            with pytest.raises(ObjectNotFound):
                read_body(body, objects)

    @pytest.mark.parametrize("body", [b'{"ref":"sha256:00"}', b'{"ref":"', b'{"ref":"x","more":1}'])
    def test_a_damaged_reference_to_a_body_is_refused(self, body: bytes) -> None:
        with pytest.raises((msgspec.DecodeError, InvalidId)):
            external_digest(body)

    def test_objects_become_durable_with_the_event_and_are_settled_later(self) -> None:
        catalog = self.make()
        small, large = b"small", b"l" * (MAX_INLINE + 1)
        with objects_in_a_folder() as (objects, _):
            with write_with_objects(catalog, objects, [small, large], kind=BLOB) as tx:
                tx.streams.append(NAME, 0, added("", 1))
            with catalog.read() as view:
                assert view.streams.head(NAME) == 1
                assert [digest for digest, _ in view.pending.some(9)] == [Digest.of(small)]
                assert [read_object(view, objects, Digest.of(data)) for data in (small, large)] == [small, large]
                indexed = [view.objects.lookup(Digest.of(data)) for data in (small, large)]
                assert [(item.kind, item.size, item.traced) for item in indexed if item] == [
                    (BLOB, len(small), True),
                    (BLOB, len(large), True),
                ]
            assert list(objects.names()) == [Digest.of(large)]
            flush_pending(catalog, objects)
            assert objects.get(Digest.of(small)) == small
            with catalog.read() as view:
                assert view.pending.count() == 0

    def test_a_transaction_that_fails_leaves_no_event_and_nothing_that_waits(self) -> None:
        catalog = self.make()
        with objects_in_a_folder() as (objects, _):
            with (
                pytest.raises(StreamConflict),
                write_with_objects(catalog, objects, [b"small"], kind=BLOB) as tx,
            ):
                tx.streams.append(NAME, 7, added("", 1))
            with catalog.read() as view:
                assert (view.streams.head(NAME), view.pending.count()) == (0, 0)
                assert view.objects.lookup(Digest.of(b"small")) is None

    def test_when_very_many_small_objects_wait_the_writer_settles_them(self) -> None:
        catalog = self.make()
        few, last = [b"%d" % n for n in range(MAX_PENDING - 1)], b"last"
        with objects_in_a_folder() as (objects, _):
            for contents, waiting in ((few, len(few)), ([last], 0)):
                with write_with_objects(catalog, objects, contents, kind=BLOB):
                    pass
                with catalog.read() as view:
                    assert view.pending.count() == waiting
            assert sum(1 for _ in objects.names()) == MAX_PENDING

    def test_a_pending_object_that_is_not_what_its_name_says_is_neither_read_nor_settled(self) -> None:
        catalog = self.make()
        digest = Digest.of(b"true")
        with objects_in_a_folder() as (objects, _):
            with catalog.write() as tx:
                tx.pending.put(digest, b"false")
            with catalog.read() as view, pytest.raises(ObjectNotFound):
                read_object(view, objects, digest)
            flush_pending(catalog, objects)
            assert list(objects.names()) == []
            with catalog.read() as view:
                assert view.pending.count() == 1
