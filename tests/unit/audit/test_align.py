"""The alignment is complete, never crosses, pairs as much as can be paired, and keeps one change one change."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from contextplane.audit.align import PositionPair, align

FEW = st.lists(st.sampled_from("abc"), max_size=14)
MANY = st.lists(st.integers(0, 40), max_size=14)


def equal(pairs: Sequence[PositionPair], a: Sequence[object], b: Sequence[object]) -> int:
    return sum(n is not None and m is not None and a[n] == b[m] for n, m in pairs)


def longest(a: Sequence[object], b: Sequence[object]) -> int:
    """The length of a longest common subsequence, as the textbook has it."""
    above = [0] * (len(b) + 1)
    for key in a:
        row = [0]
        for m, other in enumerate(b):
            row.append(above[m] + 1 if key == other else max(above[m + 1], row[m]))
        above = row
    return above[-1]


@given(FEW | MANY, FEW | MANY)
def test_every_position_occurs_once_and_no_two_pairs_cross(a: list[object], b: list[object]) -> None:
    pairs = align((a, b), ([str(key) for key in a], [str(key) for key in b]))
    assert [n for n, _ in pairs if n is not None] == list(range(len(a)))
    assert [m for _, m in pairs if m is not None] == list(range(len(b)))
    assert (None, None) not in pairs


@given(FEW, FEW)
def test_no_other_alignment_pairs_more_equal_keys(a: list[str], b: list[str]) -> None:
    assert equal(align((a, b)), a, b) == longest(a, b)


@given(MANY, MANY)
def test_nor_does_one_of_keys_that_are_mostly_different(a: list[int], b: list[int]) -> None:
    assert equal(align((a, b)), a, b) == longest(a, b)


@given(FEW, st.data())
def test_one_step_put_in_anywhere_is_one_difference(a: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(a)))
    b = [*a[:at], data.draw(st.sampled_from("abcd")), *a[at:]]
    assert [n is None for n, _ in align((a, b))].count(True) == 1
    assert equal(align((a, b)), a, b) == len(a)
    assert [m is None for _, m in align((b, a))].count(True) == 1


def test_what_is_longer_than_the_rows_that_are_kept_is_paired_as_well() -> None:
    # Neither begins nor ends alike, so that nothing can be left aside, and every third step of A is missing in B.
    a = ["x", *(str(n * n % 11) for n in range(9000)), "y"]
    b = ["v", *(key for n, key in enumerate(a[1:-1]) if n % 3), "w"]
    pairs = align((a, b))
    assert len(b) > 4096
    assert equal(pairs, a, b) == len(b) - 2
    assert [m for _, m in pairs if m is not None] == list(range(len(b)))


def test_a_later_level_pairs_only_what_lies_between_the_pairs_of_an_earlier_one() -> None:
    a, b = ["r1", "s1", "r2"], ["r3", "s1", "w1", "r2"]
    pairs = align((a, b), ([key[0] for key in a], [key[0] for key in b]))
    assert pairs == ((0, 0), (1, 1), (None, 2), (2, 3))


def test_what_has_no_equal_stands_in_place_of_the_other_as_far_as_it_reaches() -> None:
    assert align(("axb", "ayzb")) == ((0, 0), (1, 1), (None, 2), (2, 3))
    assert align(("axyb", "azb")) == ((0, 0), (1, 1), (2, None), (3, 2))


def test_nothing_aligns_with_nothing() -> None:
    assert align(("", "")) == ()
    assert align(("ab", "")) == ((0, None), (1, None))
    assert align(("", "ab")) == ((None, 0), (None, 1))
