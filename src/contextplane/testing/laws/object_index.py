"""The laws of the object index, for any catalog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.ports.object_index import BLOB, ROOT, KindConflict, Tally
from contextplane.testing.laws.catalog_maker import CatalogMaker, a_digest, a_record, an_event

__all__ = ["ObjectIndexLaw"]


class ObjectIndexLaw(CatalogMaker):
    """Kinds, edges, roots and tallies."""

    def test_recording_twice_is_recording_once(self) -> None:
        catalog = self.make()
        for _ in range(2):
            with catalog.write() as tx:
                tx.objects.record(a_record(1, size=7))
        with catalog.read() as view:
            assert view.objects.recorded(a_digest(1)) == a_record(1, size=7)
            assert view.objects.tallies() == (Tally(kind=BLOB, objects=1, size=7),)

    def test_a_blob_may_turn_out_to_be_more_and_never_less(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, size=3))
            tx.objects.record(a_record(1, size=3, kind="execution_pack", traced=False))
            tx.objects.record(a_record(1, size=3))
            tx.objects.keep("packs/x", a_digest(1))
        with catalog.read() as view:
            assert view.objects.recorded(a_digest(1)) == a_record(1, size=3, kind="execution_pack", traced=False)
            assert view.objects.tallies() == (Tally(kind="execution_pack", objects=1, size=3),)
            assert list(view.objects.untraced()) == [a_record(1, size=3, kind="execution_pack", traced=False)]
            assert list(view.objects.of_kind("execution_pack")) == [a_digest(1)]

    def test_any_other_change_of_kind_is_a_conflict(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, kind="execution_pack"))
        with pytest.raises(KindConflict), catalog.write() as tx:
            tx.objects.record(a_record(1, kind="handoff_revision"))

    def test_what_was_traced_once_stays_traced(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, kind="execution_pack", traced=True))
            tx.objects.record(a_record(1, kind="execution_pack", traced=False))
            tx.objects.keep("packs/x", a_digest(1))
        with catalog.read() as view:
            assert not list(view.objects.untraced())

    def test_edges_keep_their_order_and_stand_once_each(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            for role, n in (("b", 3), ("a", 2), ("b", 3), ("c", 2)):
                tx.objects.link(a_digest(1), role, a_digest(n))
        with catalog.read() as view:
            assert view.objects.targets(a_digest(1)) == (("b", a_digest(3)), ("a", a_digest(2)), ("c", a_digest(2)))
            assert list(view.objects.wanted()) == sorted({a_digest(2), a_digest(3)})

    def test_an_object_is_wanted_in_every_role_and_by_roots(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.link_all(a_digest(1), [("parent", a_digest(3)), ("outputs", a_digest(4))])
            tx.objects.link_all(a_digest(2), [("parent", a_digest(3)), ("inputs", a_digest(4))])
            tx.objects.keep("packs/x", a_digest(4))
        with catalog.read() as view:
            assert view.objects.wanted_as(a_digest(3)) == {"parent"}
            assert view.objects.wanted_as(a_digest(4)) == {"outputs", "inputs", ROOT}
            assert view.objects.wanted_as(a_digest(1)) == frozenset()

    def test_roots_are_found_by_prefix_and_counted(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            for name, n in (("packs/aa", 1), ("packs/ab", 2), ("handoff/pk", 3)):
                tx.objects.keep(name, a_digest(n))
            tx.objects.keep("packs/aa", a_digest(4))
            tx.objects.release("packs/none")
        with catalog.read() as view:
            assert list(view.objects.roots("packs/")) == [("packs/aa", a_digest(4)), ("packs/ab", a_digest(2))]
            assert list(view.objects.roots("packs/ab")) == [("packs/ab", a_digest(2))]
            assert [view.objects.root_count(prefix) for prefix in ("packs/", "handoff/", "none/", "", "packs/a")] == [
                2,
                1,
                0,
                3,
                2,
            ]
            assert view.objects.referrers(a_digest(2)) == ("packs/ab",)
        with catalog.write() as tx:
            tx.objects.release("packs/aa")
        with catalog.read() as view:
            assert view.objects.root_count("packs/") == 1

    @given(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
        st.sets(st.integers(0, 9), max_size=3),
        st.sets(st.integers(0, 9)),
    )
    def test_unreachable_is_what_no_chain_of_edges_from_a_root_reaches(
        self, edges: list[tuple[int, int]], roots: set[int], recorded: set[int]
    ) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            for n in recorded:
                tx.objects.record(a_record(n))
            for source, target in edges:
                tx.objects.link(a_digest(source), "r", a_digest(target))
            for n in roots:
                tx.objects.keep(f"packs/{n}", a_digest(n))
        alive = set(roots)
        while more := {target for source, target in edges if source in alive} - alive:
            alive |= more
        with catalog.read() as view:
            assert [one.digest for one in view.objects.unreachable()] == sorted(a_digest(n) for n in recorded - alive)
            assert list(view.objects.reached()) == sorted(a_digest(n) for n in alive)
            assert list(view.objects.wanted()) == sorted(a_digest(n) for n in roots | {target for _, target in edges})

    def test_forgetting_drops_the_row_its_edges_and_its_part_of_the_tally(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, size=5))
            tx.objects.record(a_record(2, size=6))
            tx.objects.link(a_digest(1), "r", a_digest(2))
            tx.objects.forget(a_digest(1))
        with catalog.read() as view:
            assert view.objects.recorded(a_digest(1)) is None
            assert view.objects.targets(a_digest(1)) == ()
            assert view.objects.tallies() == (Tally(kind=BLOB, objects=1, size=6),)

    def test_unlinking_all_leaves_what_objects_are_and_the_truth(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.streams.append("s", 0, [an_event(1)])
            tx.objects.record(a_record(1, size=5))
            tx.objects.record(a_record(2, size=7, kind="execution_pack"))
            tx.objects.link(a_digest(2), "r", a_digest(1))
            tx.objects.keep("packs/x", a_digest(2))
            tx.objects.keep("other/x", a_digest(1))
            tx.marks.put("m", "1")
            tx.objects.unlink_all("packs/")
            tx.marks.clear()
        with catalog.read() as view:
            assert view.streams.head("s") == 1
            tallies = (Tally(kind=BLOB, objects=1, size=5), Tally(kind="execution_pack", objects=1, size=7))
            assert view.objects.tallies() == view.objects.counted() == tallies
            assert view.objects.recorded(a_digest(1)) == a_record(1, size=5)
            assert view.objects.recorded(a_digest(2)) == a_record(2, size=7, kind="execution_pack", traced=False)
            assert list(view.objects.roots()) == [("other/x", a_digest(1))]
            assert [view.objects.root_count(prefix) for prefix in ("packs/", "other/")] == [0, 1]
            assert view.marks.get("m") is None
