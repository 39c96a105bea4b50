"""Code repeats itself: lines that only look like those of a ref are never said to be them."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.handoff.anchors import AROUND, BlockLocation, locate_block, make_anchor
from contextplane.model.handoff import LineRange, Ref
from tests.support.cases import cases

RETURN = "    return make_session(user, permanent=True)"
DISTINCTIVE = "    token = load_token(user.identifier_value)"
COMMON = ["    x = compute(a, b, c, some_long_argument)", "    if not ok:", "        return None", "    }", ""]

File = tuple[str, ...]


def function(name: str) -> File:
    return (f"def {name}(user):", f"    check_{name}(user)", RETURN, "")


def functions(*names: str) -> File:
    return tuple(line for name in names for line in function(name))


TEN = [f"f{number}" for number in range(10)]


def ref_to(lines: Sequence[str], start: int, end: int) -> Ref:
    span = LineRange(start=start, end=end)
    return Ref(key="ref", path="code.py", lines=span, anchor=make_anchor(lines, span))


def state_and_line(location: BlockLocation) -> tuple[str, int | None]:
    return location.state, location.lines.start if location.lines else None


THE_RETURN_OF_F5 = ref_to(functions(*TEN), 23, 23)
WITHOUT_ITS_CHECK = tuple(line for line in functions(*TEN) if line != "    check_f5(user)")


@cases(
    ("later", "expected"),
    [
        (functions("new", *TEN), ("moved", 27)),
        (functions(*(name for name in TEN if name != "f2")), ("moved", 19)),
        (functions(*(name for name in TEN if name != "f5")), ("gone", None)),
        (functions(*TEN[:5]), ("gone", None)),
        (functions(*TEN[:5], "g5", *TEN[6:]), ("current", 23)),
        (functions(*(name for name in TEN if name not in ("f4", "f5", "f6"))), ("gone", None)),
        (WITHOUT_ITS_CHECK, ("moved", 22)),
    ],
    ids=["insert", "remove-another", "remove", "cut-off", "rename", "remove-more", "remove-neighbour"],
)
def test_a_line_that_every_function_has_is_known_by_its_neighbours(
    later: File, expected: tuple[str, int | None]
) -> None:
    assert state_and_line(locate_block(later, THE_RETURN_OF_F5)) == expected


PAIR = (
    "import os",
    "",
    "# AAA start",
    DISTINCTIVE,
    "# AAA end",
    *(f"f{n}()" for n in range(30)),
    "# BBB",
    DISTINCTIVE,
    "# CCC",
)


@pytest.mark.parametrize("above", [(), ("new",) * 5])
def test_the_line_that_is_like_it_elsewhere_is_not_the_one_that_was_edited_or_removed(above: File) -> None:
    ref = ref_to(PAIR, 4, 4)
    edited = locate_block((*above, *PAIR[:3], "    token = None  # fixed", *PAIR[4:]), ref)
    assert state_and_line(edited) == ("changed", 4 + len(above))
    assert state_and_line(locate_block((*above, *PAIR[:3], *PAIR[4:]), ref)) == ("gone", None)


def test_where_neighbours_stand_as_they_did_the_block_between_them_is_the_one_that_is_meant() -> None:
    part = ("{", "the block that is meant here, and often", "}", "", "")
    lines, ref = part * 5, ref_to(part * 5, 12, 12)
    assert state_and_line(locate_block((*lines[:11], *lines[12:]), ref)) == ("gone", None)
    assert state_and_line(locate_block((*lines[:11], "another", *lines[12:]), ref)) == ("changed", 12)


def test_edited_together_with_lines_beside_it_a_block_has_not_moved_to_its_like() -> None:
    edited = (*PAIR[:2], "# A start", "    token = None  # fixed", "# A end", *PAIR[5:])
    assert locate_block(edited, ref_to(PAIR, 4, 4)).state == "gone"


def test_removed_together_with_lines_above_it_a_block_has_not_moved_to_its_like() -> None:
    lines = tuple(f"line {number}" for number in range(20))
    pair = (*lines[:8], DISTINCTIVE, *lines[8:16], DISTINCTIVE, *lines[16:])
    assert locate_block((*pair[:5], *pair[9:]), ref_to(pair, 9, 9)).state == "gone"


def test_lines_that_lost_all_neighbours_are_known_by_themselves_when_there_are_no_others() -> None:
    lines = tuple(f"line {number}" for number in range(20))
    ref = ref_to((*lines[:8], DISTINCTIVE, *lines[8:]), 9, 9)
    assert state_and_line(locate_block(("other", "lines", DISTINCTIVE, "and more"), ref)) == ("moved", 3)
    assert state_and_line(locate_block(("other", DISTINCTIVE, "lines", DISTINCTIVE, "and more"), ref)) == ("gone", None)


def test_equal_lines_that_are_left_are_spoken_of() -> None:
    location = locate_block(functions(*TEN[:5], *TEN[6:]), THE_RETURN_OF_F5)
    assert "equal ones" in location.why


def test_one_edited_neighbour_does_not_make_a_line_stale() -> None:
    lines = list(functions(*TEN))
    for at in (20, 21, 23, 24):
        later = [*lines[:at], "# edited", *lines[at + 1 :]]
        assert state_and_line(locate_block(later, THE_RETURN_OF_F5)) == ("current", 23)


def test_a_neighbour_that_is_the_only_one_of_its_kind_and_at_its_place_keeps_a_line_at_its_own() -> None:
    lines = list(functions(*TEN))
    lines[20] = lines[21] = lines[24] = "# edited"
    assert state_and_line(locate_block(lines, THE_RETURN_OF_F5)) == ("current", 23)


def test_an_edited_bracket_is_not_the_next_one() -> None:
    lines = ("def f1():", "    call()", "", "def f3():", "    }", "    }", "    }", "", "def f4():", "    call()")
    later = (*lines[:4], "    } # more", "    } # edited", *lines[6:])
    assert locate_block(later, ref_to(lines, 6, 6)).state in ("changed", "gone")


@st.composite
def repetitive(draw: st.DrawFn) -> tuple[File, int, int]:
    """Functions made of few different lines, and a block of them, counted from 0, its end not included."""
    lines: list[str] = []
    for number in range(draw(st.integers(3, 8))):
        own = [f"    call_{number}_{at}()" for at in range(2)]
        body = draw(st.lists(st.sampled_from([*COMMON, *own]), min_size=1, max_size=6))
        lines += [f"def f{number}():", *body, ""]
    start = draw(st.integers(0, len(lines) - 1))
    return tuple(lines), start, min(len(lines), start + draw(st.integers(1, 5)))


shifts = st.integers(0, 9).map(lambda count: tuple(f"new line {number}" for number in range(count)))


@given(repetitive(), shifts, st.data())
def test_an_edited_block_is_changed_and_a_removed_one_gone(
    drawn: tuple[File, int, int], above: File, data: st.DataObject
) -> None:
    lines, start, end = drawn
    assume(start >= AROUND and end + AROUND <= len(lines))  # beside the edge of a file its neighbours are fewer
    # Among all six neighbours elsewhere it is not told from one that moved, once it is not at its old place either.
    assume(not above or _standing(lines, lines[start - AROUND : end + AROUND]) == 1)
    ref = ref_to(lines, start + 1, end)
    at = data.draw(st.integers(start, end - 1))
    edited = locate_block((*above, *lines[:at], lines[at] + "  # edited", *lines[at + 1 :]), ref)
    assert (edited.state, edited.lines) == ("changed", LineRange(start=start + 1 + len(above), end=end + len(above)))
    removed = (*lines[:start], *lines[end:])
    around = slice(start - AROUND, end + AROUND)
    assume(removed[around] != lines[around])  # of many equal lines in a row nobody can tell which one was removed
    assert locate_block((*above, *removed), ref).state in ("gone", "changed")


@given(repetitive(), shifts)
def test_lines_put_above_the_neighbours_never_make_another_block_current_or_moved(
    drawn: tuple[File, int, int], above: File
) -> None:
    lines, start, end = drawn
    assume(_standing(lines, lines[max(0, start - AROUND) : end + AROUND]) == 1)
    location = locate_block((*above, *lines), ref_to(lines, start + 1, end))
    if location.state in ("current", "moved"):
        assert location.lines == LineRange(start=start + 1 + len(above), end=end + len(above))


def _standing(lines: File, run: File) -> int:
    return sum(lines[at : at + len(run)] == run for at in range(len(lines)))
