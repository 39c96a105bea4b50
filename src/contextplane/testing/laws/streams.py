"""The laws of event streams, for any catalog, and what all suites of a catalog share.

Shared are the base class that makes catalogs, and functions that make values to put into them.
"""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.catalog import BLOB, MAX_INLINE, Event, IndexedObject
from contextplane.model.ids import Digest
from contextplane.ports.catalog import BodyTooLarge, Catalog, StreamConflict
from contextplane.testing.proofs import proves

__all__ = ["CatalogMaker", "StreamsLaw", "a_digest", "a_record", "an_event", "run_in_threads"]


class CatalogMaker:
    """Makes catalogs for the laws. Subclasses implement it for their adapter."""

    def make(self) -> Catalog:
        """Make an empty catalog."""
        raise NotImplementedError

    def reopen(self) -> Catalog:
        """Open the catalog of the last `make` a second time, as another process would."""
        raise NotImplementedError


def a_digest(n: int) -> Digest:
    return Digest.of(n.to_bytes(4))


def an_event(n: int) -> Event:
    return Event(kind="counted", body=b"%d" % n)


def a_record(n: int, *, size: int = 1, kind: str = BLOB, traced: bool = True) -> IndexedObject:
    return IndexedObject(digest=a_digest(n), kind=kind, size=size, traced=traced)


def run_in_threads(work: Callable[[int], None], count: int) -> None:
    """Run `work` in `count` threads, and raise the first error of any of them."""
    errors: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the test
            errors.append(error)

    threads = [Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class StreamsLaw(CatalogMaker):
    """Streams are append-only and gapless, and of two writers at one place one wins."""

    @given(st.lists(st.lists(st.binary(max_size=40), max_size=4), max_size=5))
    def test_a_stream_gives_back_what_was_appended_in_order_and_without_gaps(self, appends: list[list[bytes]]) -> None:
        catalog = self.make()
        head = 0
        for bodies in appends:
            with catalog.write() as tx:
                head = tx.streams.append("s", head, [Event(kind="k", body=body) for body in bodies])
        flat = [body for bodies in appends for body in bodies]
        with catalog.read() as view:
            events = list(view.streams.read("s"))
            assert [event.body for event in events] == flat
            assert [event.seq for event in events] == list(range(1, len(flat) + 1))
            assert view.streams.head("s") == head == len(flat)

    def test_a_stream_that_does_not_exist_is_empty(self) -> None:
        with self.make().read() as view:
            assert view.streams.head("none") == 0
            assert not list(view.streams.read("none"))
            assert not list(view.streams.names())

    def test_reading_may_begin_after_a_sequence_number(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(n) for n in range(5)])
        with catalog.read() as view:
            assert [event.seq for event in view.streams.read("s", after=3)] == [4, 5]

    @pytest.mark.parametrize("expected", [0, 1, 3, 99])
    def test_appending_at_the_wrong_place_is_a_conflict_and_writes_nothing(self, expected: int) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(1), an_event(2)])
        with pytest.raises(StreamConflict), catalog.write() as tx:
            tx.streams.append("s", expected, [an_event(3)])
        with catalog.read() as view:
            assert view.streams.head("s") == 2

    def test_streams_are_named_in_code_point_order_and_by_prefix(self) -> None:
        catalog = self.make()
        names = ["run/a", "run/b", "run/\U0001f600", "run/\ue000", "runner", "handoff/x", "run"]
        with catalog.write() as tx:
            for name in names:
                tx.streams.append(name, 0, [an_event(1), an_event(2)])
        with catalog.read() as view:
            assert list(view.streams.names()) == sorted(names)
            assert list(view.streams.names("run/")) == sorted(name for name in names if name.startswith("run/"))
            assert list(view.streams.names("none")) == []

    @proves("observability:verify:no-blob-over-64kb-in-database", "observability:verify:database-stores-pointers")
    def test_a_body_of_64_kib_is_kept_and_a_larger_one_is_refused(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [Event(kind="k", body=b"x" * MAX_INLINE)])
        with pytest.raises(BodyTooLarge), catalog.write() as tx:
            tx.streams.append("s", 1, [Event(kind="k", body=b"x" * (MAX_INLINE + 1))])
        with catalog.read() as view:
            assert view.streams.head("s") == 1

    def test_of_many_writers_at_one_place_exactly_one_wins(self) -> None:
        self.make()
        writers = 8
        start = Barrier(writers)
        outcomes: list[str] = []

        def write(n: int) -> None:
            catalog = self.reopen()
            start.wait()
            try:
                with catalog.write() as tx:
                    tx.streams.append("s", 0, [an_event(n)])
                outcomes.append("won")
            except StreamConflict:
                outcomes.append("lost")
            finally:
                catalog.close()

        run_in_threads(write, writers)
        assert sorted(outcomes) == ["lost"] * (writers - 1) + ["won"]

    def test_many_writers_that_try_again_lose_nothing(self) -> None:
        self.make()
        writers, each = 4, 10

        def write(n: int) -> None:
            catalog = self.reopen()
            for k in range(each):
                done = False
                while not done:
                    with catalog.read() as view:
                        head = view.streams.head("s")
                    try:
                        with catalog.write() as tx:
                            tx.streams.append("s", head, [an_event(n * each + k)])
                        done = True
                    except StreamConflict:
                        continue
            catalog.close()

        run_in_threads(write, writers)
        with self.reopen().read() as view:
            bodies = [int(event.body) for event in view.streams.read("s")]
        assert sorted(bodies) == list(range(writers * each))
