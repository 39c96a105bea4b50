"""The laws of the list of handoff packs, for any catalog."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.handoff_index import HandoffFilter, HandoffRow
from contextplane.testing.laws.catalog_maker import CatalogMaker, a_digest

__all__ = ["HandoffIndexLaw"]

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_SPAN = 1 << 12
_TEXTS = st.one_of(st.none(), st.text("aAbB \"'*%_.ßẞéİıſ漢\n", max_size=8))
_SECONDS = st.sampled_from([0, 1, _SPAN - 1, _SPAN, _SPAN + 1, 5 * _SPAN])
_MOMENTS = st.builds(lambda seconds, nanos: Timestamp(seconds=seconds, nanos=nanos), _SECONDS, st.integers(0, 2))


def an_id(n: int) -> HandoffId:
    return HandoffId("pk_aaaaaa" + _BASE32[n // 32] + _BASE32[n % 32])


def a_row(n: int, **given: object) -> HandoffRow:
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
    return HandoffRow(**(fields | given))  # type: ignore[arg-type]


def _rows() -> st.SearchStrategy[list[HandoffRow]]:
    parts = st.tuples(
        _TEXTS, _TEXTS, _TEXTS, st.sampled_from(["draft", "finalized"]), st.integers(1, 3), _MOMENTS, _MOMENTS
    )

    def made(several: list[tuple[object, ...]]) -> list[HandoffRow]:
        names = ("name", "title", "brief", "status", "revision", "updated", "expires")
        return [a_row(n, **dict(zip(names, one, strict=True))) for n, one in enumerate(several)]

    return st.lists(parts, max_size=8).map(made)


def _filters() -> st.SearchStrategy[HandoffFilter]:
    bound = st.none() | _MOMENTS
    parts = st.tuples(st.sampled_from([None, "draft", "finalized"]), bound, bound, _TEXTS)
    return parts.map(lambda p: HandoffFilter(status=p[0], after=p[1], until=p[2], query=p[3]))  # type: ignore[arg-type]


def _meant(row: HandoffRow, wanted: HandoffFilter) -> bool:
    text = f"{row.title or ''} {row.name or ''} {row.brief or ''}".casefold()
    return (
        (wanted.status is None or row.status == wanted.status)
        and (wanted.after is None or row.expires > wanted.after)
        and (wanted.until is None or row.expires <= wanted.until)
        and (not wanted.query or wanted.query.casefold() in text)
    )


def _newest_first(row: HandoffRow) -> tuple[int, int, int, HandoffId]:
    return -row.updated.seconds, -row.updated.nanos, -row.revision, row.id


class HandoffIndexLaw(CatalogMaker):
    """The list, its order, its filters, and what is counted."""

    @given(
        rows=_rows(),
        wanted=_filters(),
        limit=st.none() | st.integers(0, 4),
        offset=st.integers(0, 4),
    )
    def test_a_page_is_a_part_of_all_that_is_meant_newest_first(
        self, rows: list[HandoffRow], wanted: HandoffFilter, limit: int | None, offset: int
    ) -> None:
        catalog = self.make()
        with catalog.write(survives="crash") as tx:
            for row in rows:
                tx.handoffs.put(row)
        expected = sorted((row for row in rows if _meant(row, wanted)), key=_newest_first)
        with catalog.read() as view:
            page = view.handoffs.page(wanted, limit=limit, offset=offset)
            assert page.rows == tuple(expected[offset:][:limit])
            assert page.total == len(expected)
            assert list(view.handoffs.ids()) == sorted(row.id for row in rows)
            for row in rows:
                assert view.handoffs.row(row.id) == row

    def test_putting_again_replaces_all_that_was_known_of_a_pack(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_row(1, name="old name", title="old title", expires=Timestamp(seconds=9, nanos=0)))
            newer = a_row(1, name="new name", title="fresh", revision=2, status="finalized")
            tx.handoffs.put(newer)
        with catalog.read() as view:
            assert view.handoffs.named("old name") == ()
            assert view.handoffs.named("new name") == (newer,)
            assert view.handoffs.page(HandoffFilter(query="old")).rows == ()
            assert view.handoffs.page(HandoffFilter(query="FRESH")).rows == (newer,)
            assert [view.handoffs.page(HandoffFilter(status=status)).total for status in ("draft", "finalized")] == [
                0,
                1,
            ]

    def test_a_removed_pack_is_in_no_list_and_removing_it_again_changes_nothing(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_row(1, name="same", brief="one of two"))
            tx.handoffs.put(a_row(2, name="same", brief="one of two"))
            for _ in range(2):
                tx.handoffs.remove(an_id(1))
        with catalog.read() as view:
            assert view.handoffs.row(an_id(1)) is None
            assert [row.id for row in view.handoffs.named("same")] == [an_id(2)]
            for wanted in (HandoffFilter(), HandoffFilter(query="two"), HandoffFilter(query="o")):
                page = view.handoffs.page(wanted)
                assert ([row.id for row in page.rows], page.total) == ([an_id(2)], 1)
        with catalog.write() as tx:
            tx.handoffs.clear()
            assert tx.handoffs.page(HandoffFilter(query="two")).total == tx.handoffs.page(HandoffFilter()).total == 0
            tx.handoffs.put(a_row(3))
            assert tx.handoffs.page(HandoffFilter()).total == 1

    def test_every_pack_of_one_name_is_found_by_id(self) -> None:
        catalog = self.make()
        strange = "a'; --\0\n\"*%_\u202e\U0001f600"
        with catalog.write() as tx:
            for n in (3, 1, 2):
                tx.handoffs.put(a_row(n, name=strange))
            tx.handoffs.put(a_row(4, name=strange.upper()))
        with catalog.read() as view:
            assert [row.id for row in view.handoffs.named(strange)] == [an_id(n) for n in (1, 2, 3)]
            assert view.handoffs.page(HandoffFilter(query=strange)).total == 4

    def test_a_query_may_reach_from_the_title_over_the_name_into_the_brief(self) -> None:
        catalog = self.make()
        with catalog.write() as tx:
            tx.handoffs.put(a_row(1, title="Login bug", name="login-plan", brief="Why it fails"))
            tx.handoffs.put(a_row(2, title="Why it fails", name="login-plan", brief="Login bug"))
        with catalog.read() as view:
            for query, found in (("BUG login-plan why", [1]), ("g l", [1]), ("plan", [2, 1]), ("planwhy", [])):
                assert [row.id for row in view.handoffs.page(HandoffFilter(query=query)).rows] == [
                    an_id(n) for n in found
                ]

    def test_a_long_query_is_found_whole_or_not_at_all(self) -> None:
        catalog = self.make()
        text = "abc" * 1000
        with catalog.write() as tx:
            tx.handoffs.put(a_row(1, brief=f"> {text} <"))
            tx.handoffs.put(a_row(2, title=text[:-1]))
        with catalog.read() as view:
            for query, total in ((text, 1), (text[:-1].upper(), 2), (text + "a", 0), ("z" + text, 0)):
                assert view.handoffs.page(HandoffFilter(query=query)).total == total

    @given(st.text(max_size=40))
    def test_nothing_that_people_type_is_syntax(self, query: str) -> None:
        catalog = self.make()
        with catalog.write(survives="crash") as tx:
            tx.handoffs.put(a_row(1, title=f"before {query} behind"))
        with catalog.read() as view:
            assert view.handoffs.page(HandoffFilter(query=query)).total == 1
            assert view.handoffs.named(query) == ()
