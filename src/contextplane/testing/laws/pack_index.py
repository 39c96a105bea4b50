"""The laws of the list of execution packs and of its full text, for any catalog."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.model.timestamp import Timestamp
from contextplane.ports.pack_index import PackFilter, PackRow, TextPart
from contextplane.ports.text_query import NothingToFind
from contextplane.testing.laws.catalog_maker import CatalogMaker, a_digest

__all__ = ["PackIndexLaw"]

_WORDS = st.sampled_from(["AND", "OR", "NOT", "NEAR", "body", "words", "refund", "DROP", "rowid"])
_AROUND = st.sampled_from(["{}", "({})", "{}:", "-{}", "^{}", "+{}", '"{}"', '"{}', "{}'; --", "{{{}}}", "%{}%", "?{}"])
_PAIR = 2


def a_row(n: int, *, created: int = 0, packed: int = 0, model: str = "m", tools: tuple[str, ...] = ()) -> PackRow:
    return PackRow(
        digest=a_digest(n),
        created=Timestamp(seconds=created, nanos=0),
        packed=Timestamp(seconds=packed, nanos=0),
        model=model,
        tools=tools,
    )


class PackIndexLaw(CatalogMaker):
    """The list and its search."""

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8), st.integers(1, 9))
    def test_packs_are_listed_newest_first_then_by_when_they_were_packed(
        self, times: list[tuple[int, int]], limit: int
    ) -> None:
        catalog = self.make()
        rows = [a_row(n, created=created, packed=packed) for n, (created, packed) in enumerate(times)]
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
            for row in (a_row(1, created=1, tools=("read",)), a_row(2, created=5), child):
                tx.packs.add(row)
        with catalog.read() as view:

            def found(**wanted: object) -> list[int]:
                rows = view.packs.page(PackFilter(**wanted), 10)  # type: ignore[arg-type]
                return [next(n for n in (1, 2, 3) if a_digest(n) == row.digest) for row in rows]

            assert found() == [3, 2, 1]
            assert found(model="m") == [2, 1]
            assert found(tool="read") == [3, 1]
            assert found(tool="none") == []
            assert found(parent=a_digest(1)) == [3]
            assert found(since=Timestamp(seconds=9, nanos=5)) == [3]
            assert found(since=Timestamp(seconds=9, nanos=6)) == []
            assert found(model="m", tool="read") == [1]
            assert view.packs.row(a_digest(3)) == child
            assert view.packs.row(a_digest(4)) is None

    def test_adding_again_replaces_and_removing_takes_the_texts_along(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="prompts/0", text="refund the order")])
            tx.packs.add(a_row(1, model="new"))
            assert tx.texts.search("refund", 5) == ()
            tx.texts.add(a_digest(1), [TextPart(part="prompts/0", text="refund again")])
            tx.packs.add(a_row(2))
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
            tx.packs.add(a_row(1))
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
            tx.packs.add(a_row(1))
            tx.texts.add(a_digest(1), [TextPart(part=f"outputs/{one}", text=f"before {one} zebra") for one in odd])
        with catalog.read() as view:
            assert [hit.part for hit in view.texts.search("zebra", 9)] == [f"outputs/{one}" for one in reversed(odd)]

    def test_words_in_quotes_follow_each_other_and_a_star_is_the_rest_of_a_word(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_row(1))
            parts = [TextPart(part="a", text="refund the order"), TextPart(part="b", text="the order was refunded")]
            tx.texts.add(a_digest(1), parts)
        with catalog.read() as view:

            def found(words: str) -> list[str]:
                return sorted(hit.part for hit in view.texts.search(words, 5))

            assert found('"the order"') == found("refun*") == found('"the ord"*') == ["a", "b"]
            assert found('"refund the"') == found("refund") == found('order "refund the"') == ["a"]
            assert found("refunde*") == found('was "the ord"*') == ["b"]
            assert found('"order the"') == found("re*nd") == found("*fund*ed") == []

    @given(st.text(max_size=40))
    def test_nothing_that_people_type_is_an_error_but_to_ask_for_nothing(self, words: str) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="a", text="nothing special")])
        with catalog.read() as view:
            if any(one.isalnum() or one == "_" for one in words):
                view.texts.search(words, 5)
            else:
                with pytest.raises(NothingToFind):
                    view.texts.search(words, 5)

    @given(st.lists(_WORDS, min_size=1), st.lists(st.tuples(_WORDS, _AROUND), min_size=1, max_size=4))
    def test_words_of_any_query_language_are_words(self, text: list[str], asked: list[tuple[str, str]]) -> None:
        words = " ".join(around.format(word) for word, around in asked)
        # A quote that is left open and one that follows it make a phrase of what stands between.
        assume(words.count('"') < _PAIR or all(around.count('"') % _PAIR == 0 for _, around in asked))
        catalog = self.make()
        with catalog.write() as tx:
            tx.packs.add(a_row(1))
            tx.texts.add(a_digest(1), [TextPart(part="a", text=" ".join(text))])
        with catalog.read() as view:
            assert bool(view.texts.search(words, 5)) == {word for word, _ in asked}.issubset(text)
