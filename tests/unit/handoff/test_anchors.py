"""Lines are found again after an edit, and what was lost is never said to be there."""

import hashlib
from collections.abc import Sequence
from typing import SupportsIndex

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.handoff.anchors import BlockLocation, locate_block, make_anchor
from contextplane.model.handoff import Anchor, LineRange, Ref
from tests.support.cases import cases

Span = tuple[int, int]


def ref_to(lines: Sequence[str], start: int, end: int) -> Ref:
    span = LineRange(start=start, end=end)
    return Ref(key="ref", path="code.py", lines=span, anchor=make_anchor(lines, span))


def span_of(location: BlockLocation) -> Span | None:
    return (location.lines.start, location.lines.end) if location.lines else None


@st.composite
def files_with_spans(draw: st.DrawFn) -> tuple[list[str], Span]:
    """A file of distinct lines, and some of them."""
    size = draw(st.integers(1, 30))
    start = draw(st.integers(1, size))
    end = draw(st.integers(start, size))
    texts = draw(st.lists(st.text("abc é\u2028\f\t", max_size=6), min_size=size, max_size=size))
    return [f"{number} {text}" for number, text in enumerate(texts)], (start, end)


new_lines = st.lists(st.text("xyz {}", max_size=5).map(lambda text: f"new {text}"), min_size=1, max_size=50)


@given(files_with_spans())
def test_in_an_unchanged_file_every_block_is_current(drawn: tuple[list[str], Span]) -> None:
    lines, (start, end) = drawn
    location = locate_block(lines, ref_to(lines, start, end))
    assert (location.state, span_of(location), location.why) == ("current", (start, end), "")


@given(files_with_spans(), new_lines, st.data())
def test_lines_inserted_before_move_a_block_by_exactly_that_many(
    drawn: tuple[list[str], Span], new: list[str], data: st.DataObject
) -> None:
    lines, (start, end) = drawn
    at = data.draw(st.integers(0, start - 1))
    location = locate_block(lines[:at] + new + lines[at:], ref_to(lines, start, end))
    assert (location.state, span_of(location)) == ("moved", (start + len(new), end + len(new)))


@given(files_with_spans(), new_lines, st.data())
def test_lines_inserted_behind_leave_a_block_where_it_is(
    drawn: tuple[list[str], Span], new: list[str], data: st.DataObject
) -> None:
    lines, (start, end) = drawn
    at = data.draw(st.integers(end, len(lines)))
    location = locate_block(lines[:at] + new + lines[at:], ref_to(lines, start, end))
    assert (location.state, span_of(location)) == ("current", (start, end))


@given(files_with_spans(), new_lines, st.data())
def test_an_edit_inside_is_a_change_and_tells_what_stands_there_now(
    drawn: tuple[list[str], Span], new: list[str], data: st.DataObject
) -> None:
    lines, (start, end) = drawn
    assume(end - start + 1 < len(lines))
    first = data.draw(st.integers(start, end))
    last = data.draw(st.integers(first, end))
    # Nobody can tell what is put before the first line of a file from what is put into its first block.
    shift = data.draw(new_lines) if start > 1 else []
    edited = shift + lines[: first - 1] + new + lines[last:]
    location = locate_block(edited, ref_to(lines, start, end))
    assert location.state == "changed"
    assert span_of(location) == (start + len(shift), end + len(shift) + len(new) - (last - first + 1))
    assert location.why


@given(files_with_spans())
def test_a_block_that_was_removed_is_never_current_or_moved(drawn: tuple[list[str], Span]) -> None:
    lines, (start, end) = drawn
    left = lines[: start - 1] + lines[end:]
    location = locate_block(left, ref_to(lines, start, end))
    assert location.state == "gone"
    assert location.lines is None
    assert location.why


@given(files_with_spans(), st.lists(st.text("xyz", max_size=4).map(lambda text: f"other {text}"), max_size=40))
def test_in_a_file_that_was_written_anew_a_block_is_gone(drawn: tuple[list[str], Span], anew: list[str]) -> None:
    lines, (start, end) = drawn
    assert locate_block(anew, ref_to(lines, start, end)).state == "gone"


@given(
    st.lists(st.sampled_from("ab"), min_size=1, max_size=12), st.lists(st.sampled_from("ab"), max_size=12), st.data()
)
def test_whatever_is_called_current_or_moved_is_the_same_text(
    lines: list[str], later: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start, len(lines)))
    location = locate_block(later, ref_to(lines, start, end))
    if location.state in ("current", "moved"):
        assert location.lines is not None
        assert later[location.lines.start - 1 : location.lines.end] == lines[start - 1 : end]
    elif location.lines is not None:
        assert 1 <= location.lines.start <= location.lines.end <= len(later)


@pytest.mark.parametrize("shift", [1, 3, 100])
def test_the_neighbours_decide_among_equal_blocks(shift: int) -> None:
    block = ["def run(self):", "    return self.go()"]
    lines = ["class A:", *block, "", "class B:", *block, "", "class C:", *block]
    ref = ref_to(lines, 6, 7)
    location = locate_block(["import os"] * shift + lines, ref)
    assert (location.state, span_of(location)) == ("moved", (6 + shift, 7 + shift))


def test_a_block_at_its_place_that_lost_its_neighbours_is_sought_where_they_are() -> None:
    lines = ["a1", "a2", "}", "a3", "a4", "x", "x", "x"]
    later = ["b1", "b2", "}", "b3", "b4", "a1", "a2", "}", "a3", "a4"]
    location = locate_block(later, ref_to(lines, 3, 3))
    assert (location.state, span_of(location)) == ("moved", (8, 8))


def test_among_equal_blocks_with_equal_neighbours_the_nearest_is_meant() -> None:
    part = ["{", "the block that is meant here", "}", "", ""]
    lines = part * 5
    location = locate_block(["new", *lines], ref_to(lines, 12, 12))
    assert (location.state, span_of(location)) == ("moved", (13, 13))


def test_a_bracket_that_stands_elsewhere_is_not_the_one_that_was_removed() -> None:
    lines = ["if a:", "{", "one", "}", "end"]
    assert locate_block(["while b", "two", "}", "more"], ref_to(lines, 4, 4)).state == "gone"


def test_a_function_that_moved_away_from_all_its_neighbours_is_found() -> None:
    function = ["def refund(order: Order) -> Receipt:", "    return pay(order.customer, order.total)"]
    lines = ["one", "two", *function, "three", "four"]
    later = ["two", "one", "four", "three", "", *function, "five"]
    location = locate_block(later, ref_to(lines, 3, 4))
    assert (location.state, span_of(location)) == ("moved", (6, 7))


def test_when_one_neighbour_changed_too_the_place_is_still_known() -> None:
    lines = [str(number) for number in range(10)]
    later = [*lines[:4], "new", "new", *lines[6:8], "other", "other"]
    location = locate_block(later, ref_to(lines, 5, 7))
    assert (location.state, span_of(location)) == ("changed", (5, 7))


def test_without_an_anchor_only_the_numbers_count() -> None:
    ref = Ref(key="ref", path="code.py", lines=LineRange(start=2, end=3))
    assert locate_block(["a", "b", "c"], ref).state == "unanchored"
    past = locate_block(["a", "b"], ref)
    assert past.state == "gone"
    assert "past the end" in past.why


def test_there_is_no_anchor_past_the_end() -> None:
    assert make_anchor(["a"], LineRange(start=1, end=2)) is None
    assert make_anchor([], LineRange(start=1, end=1)) is None


def test_in_an_empty_file_everything_is_gone() -> None:
    assert locate_block([], ref_to(["a", "b"], 1, 1)).state == "gone"
    assert locate_block([], ref_to(["a"], 1, 1)).state == "gone"


def test_the_digest_is_what_sha256sum_says_of_the_lines() -> None:
    anchor = make_anchor(["a", "é", "c"], LineRange(start=2, end=3))
    assert anchor is not None
    assert anchor.digest == "sha256:" + hashlib.sha256("é\nc\n".encode()).hexdigest()


@cases("broken", [{"probe": ""}, {"probe": "no hex"}, {"before": "?"}, {"probe_at": -99}])
def test_an_anchor_that_makes_no_sense_finds_nothing_and_breaks_nothing(broken: dict[str, str | int]) -> None:
    lines = ["a", "b", "c", "d"]
    whole: dict[str, str | int] = {"digest": "none", "before": "", "after": "", "probe": "00000000", "probe_at": 0}
    anchor = Anchor(**{**whole, **broken})  # type: ignore[arg-type]
    ref = Ref(key="ref", path="code.py", lines=LineRange(start=2, end=3), anchor=anchor)
    assert locate_block(lines, ref).state == "gone"


class CountedLines(tuple[str, ...]):
    """A file that knows how many of its lines were cut out of it."""

    __slots__ = ()
    cut = 0

    def __getitem__(self, at: SupportsIndex | slice) -> str | tuple[str, ...]:  # type: ignore[override]
        location = super().__getitem__(at)
        CountedLines.cut += len(location) if isinstance(at, slice) else 1
        return location


def test_the_cost_grows_with_the_file_and_not_with_the_file_times_the_block() -> None:
    size, block = 200_000, 2000
    ref = ref_to([""] * size, 100_001, 100_000 + block)
    CountedLines.cut = 0
    later = CountedLines(([""] * (block - 1) + ["x"]) * (size // block))
    assert locate_block(later, ref).state != "moved"
    assert CountedLines.cut < 5 * size
