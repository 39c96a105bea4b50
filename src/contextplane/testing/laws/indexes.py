"""The laws of the indexes of a catalog: objects, execution packs, full text, and handoff packs."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.model.catalog import (
    BLOB,
    ROOT,
    HandoffFilter,
    HandoffRow,
    NothingToFind,
    PackFilter,
    PackRow,
    Tally,
    TextPart,
)
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.indexes import KindConflict
from contextplane.testing.laws.streams import CatalogMaker, a_digest, a_record, an_event

__all__ = ["HandoffIndexLaw", "ObjectIndexLaw", "PackIndexLaw"]


class ObjectIndexLaw(CatalogMaker):
    """The laws of the `ObjectIndex` port: kinds, edges, roots and tallies."""

    def test_recording_twice_is_recording_once(self) -> None:
        catalog = self.make()
        for _ in range(2):
            with catalog.write() as tx:
                tx.objects.record(a_record(1, size=7))
        with catalog.read() as view:
            assert view.objects.lookup(a_digest(1)) == a_record(1, size=7)
            assert view.objects.tallies() == (Tally(kind=BLOB, objects=1, size=7),)

    def test_a_blob_may_turn_out_to_be_more_and_never_less(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, size=3))
            tx.objects.record(a_record(1, size=3, kind="execution_pack", traced=False))
            tx.objects.record(a_record(1, size=3))
            tx.objects.keep("packs/x", a_digest(1))
        with catalog.read() as view:
            assert view.objects.lookup(a_digest(1)) == a_record(1, size=3, kind="execution_pack", traced=False)
            assert view.objects.tallies() == (Tally(kind="execution_pack", objects=1, size=3),)
            assert list(view.objects.untraced_objects()) == [a_record(1, size=3, kind="execution_pack", traced=False)]
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
            assert not list(view.objects.untraced_objects())

    def test_edges_keep_their_order_and_stand_once_each(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            for role, n in (("b", 3), ("a", 2), ("b", 3), ("c", 2)):
                tx.objects.link(a_digest(1), role, a_digest(n))
        with catalog.read() as view:
            assert view.objects.targets(a_digest(1)) == (("b", a_digest(3)), ("a", a_digest(2)), ("c", a_digest(2)))
            assert list(view.objects.referenced_digests()) == sorted({a_digest(2), a_digest(3)})

    def test_an_object_is_wanted_in_every_role_and_by_roots(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.link_all(a_digest(1), [("parent", a_digest(3)), ("outputs", a_digest(4))])
            tx.objects.link_all(a_digest(2), [("parent", a_digest(3)), ("inputs", a_digest(4))])
            tx.objects.keep("packs/x", a_digest(4))
        with catalog.read() as view:
            assert view.objects.roles_of(a_digest(3)) == {"parent"}
            assert view.objects.roles_of(a_digest(4)) == {"outputs", "inputs", ROOT}
            assert view.objects.roles_of(a_digest(1)) == frozenset()

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
            assert [entry.digest for entry in view.objects.unreachable()] == sorted(
                a_digest(n) for n in recorded - alive
            )
            assert list(view.objects.reachable()) == sorted(a_digest(n) for n in alive)
            assert list(view.objects.referenced_digests()) == sorted(
                a_digest(n) for n in roots | {target for _, target in edges}
            )

    def test_forgetting_drops_the_row_its_edges_and_its_part_of_the_tally(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.objects.record(a_record(1, size=5))
            tx.objects.record(a_record(2, size=6))
            tx.objects.link(a_digest(1), "r", a_digest(2))
            tx.objects.forget(a_digest(1))
        with catalog.read() as view:
            assert view.objects.lookup(a_digest(1)) is None
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
            assert view.objects.tallies() == view.objects.recount() == tallies
            assert view.objects.lookup(a_digest(1)) == a_record(1, size=5)
            assert view.objects.lookup(a_digest(2)) == a_record(2, size=7, kind="execution_pack", traced=False)
            assert list(view.objects.roots()) == [("other/x", a_digest(1))]
            assert [view.objects.root_count(prefix) for prefix in ("packs/", "other/")] == [0, 1]
            assert view.marks.get("m") is None


_OPERATOR_WORDS = st.sampled_from(["AND", "OR", "NOT", "NEAR", "body", "words", "refund", "DROP", "rowid"])
_AROUND = st.sampled_from(["{}", "({})", "{}:", "-{}", "^{}", "+{}", '"{}"', '"{}', "{}'; --", "{{{}}}", "%{}%", "?{}"])
_PAIR = 2


def a_pack_row(n: int, *, created: int = 0, packed: int = 0, model: str = "m", tools: tuple[str, ...] = ()) -> PackRow:
    return PackRow(
        digest=a_digest(n),
        created=Timestamp(seconds=created, nanos=0),
        packed=Timestamp(seconds=packed, nanos=0),
        model=model,
        tools=tools,
    )


class PackIndexLaw(CatalogMaker):
    """The laws of the `PackIndex` and `TextIndex` ports."""

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8), st.integers(1, 9))
    def test_packs_are_listed_newest_first_then_by_when_they_were_packed(
        self, times: list[tuple[int, int]], limit: int
    ) -> None:
        catalog = self.make()
        rows = [a_pack_row(n, created=created, packed=packed) for n, (created, packed) in enumerate(times)]
        with catalog.write() as tx:
            for row in rows:
                tx.packs.add(row)
        expected = sorted(rows, key=lambda row: (-row.created.seconds, -row.packed.seconds, row.digest))
        with catalog.read() as view:
            assert view.packs.page(PackFilter(), limit) == tuple(expected[:limit])
            assert list(view.packs.digests()) == sorted(row.digest for row in rows)

    def test_each_filter_narrows_the_list(self) -> None:
        catalog = self.make()
        child = PackRow(
            digest=a_digest(3),
            created=Timestamp(seconds=9, nanos=5),
            packed=Timestamp(seconds=1, nanos=0),
            model="other",
            steps=2,
            parent=a_digest(1),
            tools=("read", "write"),
        )
        with catalog.write() as tx:
            for row in (a_pack_row(1, created=1, tools=("read",)), a_pack_row(2, created=5), child):
                tx.packs.add(row)
        with catalog.read() as view:

            def numbers_in_page(**conditions: object) -> list[int]:
                rows = view.packs.page(PackFilter(**conditions), 10)  # type: ignore[arg-type]
                return [next(n for n in (1, 2, 3) if a_digest(n) == row.digest) for row in rows]

            assert numbers_in_page() == [3, 2, 1]
            assert numbers_in_page(model="m") == [2, 1]
            assert numbers_in_page(tool="read") == [3, 1]
            assert numbers_in_page(tool="none") == []
            assert numbers_in_page(parent=a_digest(1)) == [3]
            assert numbers_in_page(since=Timestamp(seconds=9, nanos=5)) == [3]
            assert numbers_in_page(since=Timestamp(seconds=9, nanos=6)) == []
            assert numbers_in_page(model="m", tool="read") == [1]
            assert view.packs.row(a_digest(3)) == child
            assert view.packs.row(a_digest(4)) is None

    def test_adding_again_replaces_and_removing_takes_the_texts_along(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="prompts/0", text="refund the order")])
            tx.packs.add(a_pack_row(1, model="new"))
            assert tx.texts.search("refund", 5) == ()
            tx.texts.add(a_digest(1), [TextPart(part="prompts/0", text="refund again")])
            tx.packs.add(a_pack_row(2))
            tx.texts.add(a_digest(2), [TextPart(part="steps/1", text="a refund")])
        with catalog.read() as view:
            row = view.packs.row(a_digest(1))
            assert row is not None
            assert row.model == "new"
            assert [(hit.pack, hit.part) for hit in view.texts.search("refund", 5)] == [
                (a_digest(2), "steps/1"),
                (a_digest(1), "prompts/0"),
            ]
            assert len(view.texts.search("refund", 1)) == 1
        with catalog.write() as tx:
            tx.packs.remove(a_digest(2))
        with catalog.read() as view:
            assert [hit.pack for hit in view.texts.search("refund", 5)] == [a_digest(1)]
        with catalog.write() as tx:
            tx.packs.clear()
        with catalog.read() as view:
            assert view.texts.search("refund", 5) == ()
            assert view.packs.page(PackFilter(), 5) == ()

    def test_all_words_must_stand_in_one_place_and_the_snippet_shows_them(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            parts = [TextPart(part="a", text="refund the order"), TextPart(part="b", text="the caf\u00e9 order")]
            tx.texts.add(a_digest(1), parts)
        with catalog.read() as view:
            assert [hit.part for hit in view.texts.search("order refund", 5)] == ["a"]
            assert [hit.part for hit in view.texts.search("Cafe", 5)] == ["b"]
            assert view.texts.search("refund", 5)[0].snippet == "\x02refund\x03 the order"

    def test_parts_and_texts_are_kept_whatever_characters_they_are_of(self) -> None:
        catalog = self.make()
        odd = ["a\0b", "\1\2", '"\\', "\u2028", "\U0001f98a", "\x7f", "'", "[1]"]
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            tx.texts.add(a_digest(1), [TextPart(part=f"outputs/{text}", text=f"before {text} zebra") for text in odd])
        with catalog.read() as view:
            assert [hit.part for hit in view.texts.search("zebra", 9)] == [f"outputs/{text}" for text in reversed(odd)]

    def test_words_in_quotes_follow_each_other_and_a_star_is_the_rest_of_a_word(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            parts = [TextPart(part="a", text="refund the order"), TextPart(part="b", text="the order was refunded")]
            tx.texts.add(a_digest(1), parts)
        with catalog.read() as view:

            def parts_with(words: str) -> list[str]:
                return sorted(hit.part for hit in view.texts.search(words, 5))

            assert parts_with('"the order"') == parts_with("refun*") == parts_with('"the ord"*') == ["a", "b"]
            assert parts_with('"refund the"') == parts_with("refund") == parts_with('order "refund the"') == ["a"]
            assert parts_with("refunde*") == parts_with('was "the ord"*') == ["b"]
            assert parts_with('"order the"') == parts_with("re*nd") == parts_with("*fund*ed") == []

    @given(st.text(max_size=40))
    def test_nothing_that_people_type_is_an_error_but_to_ask_for_nothing(self, words: str) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="a", text="nothing special")])
        with catalog.read() as view:
            if any(word.isalnum() or word == "_" for word in words):
                view.texts.search(words, 5)
            else:
                with pytest.raises(NothingToFind):
                    view.texts.search(words, 5)

    @given(st.lists(_OPERATOR_WORDS, min_size=1), st.lists(st.tuples(_OPERATOR_WORDS, _AROUND), min_size=1, max_size=4))
    def test_words_of_any_query_language_are_words(self, text: list[str], query: list[tuple[str, str]]) -> None:
        words = " ".join(around.format(word) for word, around in query)
        # A quote that is left open and one that follows it make a phrase of what stands between.
        assume(words.count('"') < _PAIR or all(around.count('"') % _PAIR == 0 for _, around in query))
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_pack_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="a", text=" ".join(text))])
        with catalog.read() as view:
            assert bool(view.texts.search(words, 5)) == {word for word, _ in query}.issubset(text)


_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_SPAN = 1 << 12
_TEXTS = st.one_of(st.none(), st.text("aAbB \"'*%_.ßẞéİıſ漢\n", max_size=8))
_SECONDS = st.sampled_from([0, 1, _SPAN - 1, _SPAN, _SPAN + 1, 5 * _SPAN])
_MOMENTS = st.builds(lambda seconds, nanos: Timestamp(seconds=seconds, nanos=nanos), _SECONDS, st.integers(0, 2))


def an_id(n: int) -> HandoffId:
    return HandoffId("pk_aaaaaa" + _BASE32[n // 32] + _BASE32[n % 32])


def a_handoff_row(n: int, **changes: object) -> HandoffRow:
    fields: dict[str, object] = {
        "id": an_id(n),
        "name": None,
        "title": None,
        "brief": None,
        "status": "draft",
        "revision": 1,
        "digest": a_digest(n),
        "updated": Timestamp(seconds=n, nanos=0),
        "expires": Timestamp(seconds=100, nanos=0),
    }
    return HandoffRow(**(fields | changes))  # type: ignore[arg-type]


def _rows() -> st.SearchStrategy[list[HandoffRow]]:
    parts = st.tuples(
        _TEXTS, _TEXTS, _TEXTS, st.sampled_from(["draft", "finalized"]), st.integers(1, 3), _MOMENTS, _MOMENTS
    )

    def make_rows(drawn: list[tuple[object, ...]]) -> list[HandoffRow]:
        names = ("name", "title", "brief", "status", "revision", "updated", "expires")
        return [a_handoff_row(n, **dict(zip(names, values, strict=True))) for n, values in enumerate(drawn)]

    return st.lists(parts, max_size=8).map(make_rows)


def _filters() -> st.SearchStrategy[HandoffFilter]:
    bound = st.none() | _MOMENTS
    parts = st.tuples(st.sampled_from([None, "draft", "finalized"]), bound, bound, _TEXTS)
    return parts.map(lambda p: HandoffFilter(status=p[0], after=p[1], until=p[2], query=p[3]))  # type: ignore[arg-type]


def _matches(row: HandoffRow, handoff_filter: HandoffFilter) -> bool:
    text = f"{row.title or ''} {row.name or ''} {row.brief or ''}".casefold()
    return (
        (handoff_filter.status is None or row.status == handoff_filter.status)
        and (handoff_filter.after is None or row.expires > handoff_filter.after)
        and (handoff_filter.until is None or row.expires <= handoff_filter.until)
        and (not handoff_filter.query or handoff_filter.query.casefold() in text)
    )


def _newest_first(row: HandoffRow) -> tuple[int, int, int, HandoffId]:
    return -row.updated.seconds, -row.updated.nanos, -row.revision, row.id


class HandoffIndexLaw(CatalogMaker):
    """The laws of the `HandoffIndex` port: order, filters and counts."""

    @given(
        rows=_rows(),
        handoff_filter=_filters(),
        limit=st.none() | st.integers(0, 4),
        offset=st.integers(0, 4),
    )
    def test_a_page_is_a_part_of_all_that_is_meant_newest_first(
        self, rows: list[HandoffRow], handoff_filter: HandoffFilter, limit: int | None, offset: int
    ) -> None:
        catalog = self.make()
        with catalog.write(survives="crash") as tx:
            for row in rows:
                tx.handoffs.put(row)
        expected = sorted((row for row in rows if _matches(row, handoff_filter)), key=_newest_first)
        with catalog.read() as view:
            page = view.handoffs.page(handoff_filter, limit=limit, offset=offset)
            assert page.rows == tuple(expected[offset:][:limit])
            assert page.total == len(expected)
            assert list(view.handoffs.ids()) == sorted(row.id for row in rows)
            for row in rows:
                assert view.handoffs.row(row.id) == row

    def test_putting_again_replaces_all_that_was_known_of_a_pack(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_handoff_row(1, name="old name", title="old title", expires=Timestamp(seconds=9, nanos=0)))
            newer = a_handoff_row(1, name="new name", title="fresh", revision=2, status="finalized")
            tx.handoffs.put(newer)
        with catalog.read() as view:
            assert view.handoffs.find_by_name("old name") == ()
            assert view.handoffs.find_by_name("new name") == (newer,)
            assert view.handoffs.page(HandoffFilter(query="old")).rows == ()
            assert view.handoffs.page(HandoffFilter(query="FRESH")).rows == (newer,)
            assert [view.handoffs.page(HandoffFilter(status=status)).total for status in ("draft", "finalized")] == [
                0,
                1,
            ]

    def test_a_query_finds_tags_as_it_finds_the_other_texts(self) -> None:
        catalog = self.make()
        rows = [a_handoff_row(n, title="Login bug") for n in range(3)]
        with catalog.write() as tx:
            tx.handoffs.put(rows[0], tags=("Auth", "token expiry"))
            tx.handoffs.put(rows[1], tags=("old",))
            tx.handoffs.put(rows[1], tags=("auth",))
            tx.handoffs.put(rows[2])
        with catalog.read() as view:
            for query, expected in (("AUTH", [1, 0]), ("n ex", [0]), ("x", [0]), ("auth token", [0]), ("old", [])):
                page = view.handoffs.page(HandoffFilter(query=query))
                assert (page.rows, page.total) == (tuple(rows[n] for n in expected), len(expected))

    def test_a_removed_pack_is_in_no_list_and_removing_it_again_changes_nothing(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_handoff_row(1, name="same", brief="one of two"))
            tx.handoffs.put(a_handoff_row(2, name="same", brief="one of two"))
            for _ in range(2):
                tx.handoffs.remove(an_id(1))
        with catalog.read() as view:
            assert view.handoffs.row(an_id(1)) is None
            assert [row.id for row in view.handoffs.find_by_name("same")] == [an_id(2)]
            for handoff_filter in (HandoffFilter(), HandoffFilter(query="two"), HandoffFilter(query="o")):
                page = view.handoffs.page(handoff_filter)
                assert ([row.id for row in page.rows], page.total) == ([an_id(2)], 1)
        with catalog.write() as tx:
            tx.handoffs.clear()
            assert tx.handoffs.page(HandoffFilter(query="two")).total == tx.handoffs.page(HandoffFilter()).total == 0
            tx.handoffs.put(a_handoff_row(3))
            assert tx.handoffs.page(HandoffFilter()).total == 1

    def test_every_pack_of_one_name_is_found_by_id(self) -> None:
        catalog = self.make()
        strange = "a'; --\0\n\"*%_\u202e\U0001f600"
        with catalog.write() as tx:
            for n in (3, 1, 2):
                tx.handoffs.put(a_handoff_row(n, name=strange))
            tx.handoffs.put(a_handoff_row(4, name=strange.upper()))
        with catalog.read() as view:
            assert [row.id for row in view.handoffs.find_by_name(strange)] == [an_id(n) for n in (1, 2, 3)]
            assert view.handoffs.page(HandoffFilter(query=strange)).total == 4

    def test_a_query_may_reach_from_the_title_over_the_name_into_the_brief(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_handoff_row(1, title="Login bug", name="login-plan", brief="Why it fails"))
            tx.handoffs.put(a_handoff_row(2, title="Why it fails", name="login-plan", brief="Login bug"))
        with catalog.read() as view:
            for query, numbers in (("BUG login-plan why", [1]), ("g l", [1]), ("plan", [2, 1]), ("planwhy", [])):
                assert [row.id for row in view.handoffs.page(HandoffFilter(query=query)).rows] == [
                    an_id(n) for n in numbers
                ]

    def test_a_long_query_is_found_whole_or_not_at_all(self) -> None:
        catalog = self.make()
        text = "abc" * 1000
        with catalog.write() as tx:
            tx.handoffs.put(a_handoff_row(1, brief=f"> {text} <"))
            tx.handoffs.put(a_handoff_row(2, title=text[:-1]))
        with catalog.read() as view:
            for query, total in ((text, 1), (text[:-1].upper(), 2), (text + "a", 0), ("z" + text, 0)):
                assert view.handoffs.page(HandoffFilter(query=query)).total == total

    @given(st.text(max_size=40))
    def test_nothing_that_people_type_is_syntax(self, query: str) -> None:
        catalog = self.make()
        with catalog.write(survives="crash") as tx:
            tx.handoffs.put(a_handoff_row(1, title=f"before {query} behind"))
        with catalog.read() as view:
            assert view.handoffs.page(HandoffFilter(query=query)).total == 1
            assert view.handoffs.find_by_name(query) == ()
