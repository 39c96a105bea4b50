"""The laws of the `Catalog` port, for any adapter of it. Nothing here knows SQL or files."""

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import MAX_INLINE
from contextplane.model.ids import Digest
from contextplane.ports.catalog import BodyTooLarge
from contextplane.testing.laws.indexes import HandoffIndexLaw, ObjectIndexLaw, PackIndexLaw
from contextplane.testing.laws.streams import StreamsLaw, a_digest, a_record, an_event

__all__ = ["CatalogLaw"]


class CatalogLaw(StreamsLaw, ObjectIndexLaw, PackIndexLaw, HandoffIndexLaw):
    """All laws of a catalog: those of its indexes, of its transactions, and of itself."""

    def test_a_transaction_left_by_an_exception_changes_nothing(self) -> None:
        catalog = self.make()
        with pytest.raises(RuntimeError), catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(1)])
            tx.objects.record(a_record(1))
            tx.objects.keep("packs/x", a_digest(1))
            tx.marks.put("m", "1")
            raise RuntimeError
        with catalog.read() as view:
            assert view.streams.head("s") == 0
            assert view.objects.lookup(a_digest(1)) is None
            assert view.objects.tallies() == ()
            assert view.marks.get("m") is None

    def test_what_one_connection_committed_another_sees(self) -> None:
        catalog = self.make()
        other = self.reopen()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(1)])
        with other.read() as view:
            assert view.streams.head("s") == 1

    def test_a_view_does_not_move_while_it_is_open(self) -> None:
        catalog = self.make()
        other = self.reopen()
        with catalog.read() as view:
            assert view.streams.head("s") == 0
            with other.write() as tx:
                tx.streams.append("s", 0, [an_event(1)])
            assert view.streams.head("s") == 0
        with catalog.read() as view:
            assert view.streams.head("s") == 1

    def test_both_degrees_of_durability_commit(self) -> None:
        catalog = self.make()
        with catalog.write(survives="crash") as tx:
            tx.marks.put("a", "1")
        with catalog.write(survives="power_cut") as tx:
            tx.marks.put("b", "2")
        with self.reopen().read() as view:
            assert (view.marks.get("a"), view.marks.get("b")) == ("1", "2")

    def test_marks_are_listed_and_taken_away_by_how_their_names_begin(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            for name in ("a/2", "b", "a/1", "a", "ab/1"):
                tx.marks.put(name, "1")
            assert list(tx.marks.names("a/")) == ["a/1", "a/2"]
            tx.marks.drop("a/")
        with catalog.read() as view:
            assert (list(view.marks.names("a/")), list(view.marks.names("a"))) == ([], ["a", "ab/1"])

    def test_every_table_is_marked_truth_or_index_and_events_are_truth(self) -> None:
        tables = self.make().tables()
        assert {table.role for table in tables} == {"truth", "index"}
        assert [table.name for table in tables if table.role == "truth"] == ["event", "pending"]
        assert all(table.note for table in tables)

    def test_a_pending_object_is_there_until_it_is_removed(self) -> None:
        catalog = self.make()
        small = [b"", b"two", bytes(MAX_INLINE)]
        with catalog.write() as tx:
            for data in (*small, b"two"):
                tx.pending.put(Digest.of(data), data)
            with pytest.raises(BodyTooLarge):
                tx.pending.put(a_digest(1), bytes(MAX_INLINE + 1))
        expected = sorted((Digest.of(data), data) for data in small)
        with self.reopen().read() as view:
            assert [view.pending.get(Digest.of(data)) for data in small] == small
            assert view.pending.get(a_digest(1)) is None
            assert view.pending.some(9) == tuple(expected)
            assert view.pending.count() == 3
            assert view.pending.some(1) == tuple(expected[:1])
        with catalog.write() as tx:
            for digest, _ in expected[1:] * 2:
                tx.pending.remove(digest)
        with catalog.read() as view:
            assert view.pending.some(9) == tuple(expected[:1])

    def test_a_sound_catalog_has_no_problems(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(n) for n in range(100)])
        assert not list(catalog.problems())

    def test_what_is_opened_to_read_cannot_write(self) -> None:
        catalog = self.make()
        with pytest.raises(ContextPlaneError), catalog.read() as view:
            view.streams.append("s", 0, [an_event(1)])  # type: ignore[attr-defined]
        with catalog.read() as view:
            assert view.streams.head("s") == 0

    def test_nothing_of_a_transaction_works_after_its_end(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.marks.put("m", "1")
        with pytest.raises(ContextPlaneError):
            tx.marks.put("m", "2")
        with catalog.read() as view:
            assert view.marks.get("m") == "1"
        with pytest.raises(ContextPlaneError):
            view.marks.get("m")
