"""Regular expressions in packs: what takes time in proportion to the text, and nothing else."""

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.policy.regex_safety import MAX_PATTERN_LENGTH, pattern_matches, pattern_problem
from tests.support.cases import cases
from tests.support.samples import sample

TAKEN = (
    *(r"^ik_[a-z0-9]{16}$", r"^[A-Z]{3}$", r"INR|USD", r"^(?:INR|USD)$", r"^[0-9]{4}(-[0-9]{2}){2}$", r"\d+\.\d+"),
    *(
        r"^[a-z0-9]+(?:-[a-z0-9]+)*$",
        r"^(?:[a-z0-9]{1,63}\.)+[a-z]{2,}$",
        r"^(\w+,)*\w+$",
        r"^(ab)+$",
        r"^([0-9]{4})+$",
    ),
    *(
        r"^(?:[a-z]|[0-9])+$",
        r'^"(?:[^"\\]|\\.)*"$',
        r"^(?:%[0-9A-F]{2}|[^%])*$",
        r"^(?:INR|USD|IDR)(?:,(?:INR|USD))*$",
    ),
    *(
        r"^(?:ab|ac|b)+$",
        r"^(?:[a-z]|[A-Z]|_)+$",
        r"^(?:a|b){2}$",
        r"^(?:a|a){3}$",
        r"(?i)^(?:[a-z]|-)*$",
        r"^(?:[0-9]{2}|x)*$",
        r"^(?:\.|,)*$",
    ),
    *(r"^(?P<year>[0-9]{4})$", r"(?i)^order_[0-9]+$", r"[)*]+", r"\(a+\)+", r"^(a+){1,3}$", ""),
)
USUAL = (
    r"^[a-z0-9]+([._-][a-z0-9]+)*@[a-z0-9]+([.-][a-z0-9]+)*\.[a-z]{2,}$",
    (
        r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
        r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
    ),
    *(
        r"^[A-Z][a-z]+([ '-][A-Z][a-z]+)*$",
        r"^\p{L}+(?:[ -]\p{L}+)*$",
        r"(?i)^[a-z]+(-[a-z]+)*$",
        r"^(?i:ord)-(\d+-)+x$",
    ),
    *(r"^\w+(\s*,\s*\w+)*$", r"^\s*(\d+\s*,\s*)*\d+\s*$", r"^(\d+(,|$))+", r"^[^,]+(,[^,]+)*$", r"^(\w+=\w+;)*$"),
    *(r"^(\d+[smhd])+$", r"^(\d+(ms|s|m|h))+$", r"^([A-Z][a-z0-9]+)+$", r"^(/[^/ ]*)+/?$", r"^(ab|a)+$"),
    (
        r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
        r"(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
    ),
    r"^[A-Z]{2}[0-9]{2}(?:[ ]?[0-9A-Z]{4})*(?:[ ]?[0-9A-Z]{1,2})?$",
    r"^[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){2,7}( ?[A-Z0-9]{1,3})?$",
    *(
        r"^(\d{4}[- ]?){3}\d{4}$",
        r"^([0-9A-Fa-f]{2}[:-]){5}([0-9A-Fa-f]{2})$",
        r"^(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$",
    ),
    r"^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}$",
    *(r"^((25[0-5]|(2[0-4]|1\d|[1-9]|)\d)\.?\b){4}$", r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$"),
    *(r"^(?:да|нет)+$", r"^\(?x: \d+$", r"^\(?mm\)(\d+(,|$))+"),
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
)
REFUSED = (
    *(r"(a+)+", r"^(a+)+$", r"(a*)*", r"([a-z]+)*x", r"(a|b+)+", r"((a+))+", r"(?:[a-z]+\s?)+", r"(.*)*", r"(a+){2,}"),
    *(
        r"^(a{1,3})+$",
        r"(-?[a-z]+)*",
        r"(-[a-z]*-?)*",
        r"(\w+\w)+",
        r"([a-z]+.)+",
        r"(a+){1,40}",
        r"((?:-|x)[a-z]+)*",
        r"(?i)([a-z]+A)*",
        r"((?i:[a-z])+A)*",
        r"(?P<x>a+)+",
        r"(a+)+?",
    ),
    *(r"(a|a)*b", r"(a|aa)+$", r"(\w|\d)*$", r"(?:[a-z]|[a-c])+", r"((a|a)b)*", r"(a|)*", r"(a?b|b)*", r"(?:a|b|.)*"),
    *(r"(?i)(?:a|A)*", r"(?:^|a)*", r"((?:ab|a.)c|d)+", r"(?:\p{L}|\w)*", r"(a|a){17}", r"(?:a{0}b|b)*"),
    *(r"(?:a{2}b|aab)*", r"(?:(?:x|a)b|ab)*"),
    # Parts that may be left out, turns that may be empty, groups that are repeated some times.
    *(r"^(\w\w?)+$", r"^(aa?)+$", r"^(a?a?)*$", r"^([ab]a?)+$", r"^(a?b?)*$", r"^(a.?)+$", r"(?:\d{1,3}\s?)+"),
    *(
        r"^(a+){10}x$",
        r"^(a+){16}$",
        r"^(a+){4}$",
        r"^(a+){,20}$",
        r"(a?){30}a{30}",
        r"^(a{1,16}){1,16}$",
        r"(\w\w?){5}",
    ),
    *(r"((a+){2})+", r"((?:a|ab)(?:c|bc){2})+", r"((?:ab)?(?:ab)?)+", r"(a(?:|)b)*", r"^(a|b|ab)*c$"),
    # Characters that few patterns hold, however they are written.
    *(
        r"^(яя|[ж-я]я)+$",
        r"^(日本|[^a]本)+$",
        r"^(ßß|\wß)+$",
        r"^(٣٣|\d٣)+$",
        r"(?:\p{Thai}|ก)+",
        r"([\p{Thai}-]|[\p{Thai}_])+",
    ),
    *(r"(a|\x61)*", r"(?:\u0436|ж)+", r"(?:\x{436}|ж)+", r"(?i)(?:Я|я)+", r"(?:[^\x00-\x7f]|\u{17f})+", r"(\pL|é)+"),
    *(r"(?:\p{Ogham}|\p{L})+", r"(?:[éя]|[aя])+", r"(?:[é\u044f]|[a\x{44f}])+", r"((?:|)a)*"),
    *(r"(?:[^\x00-ю]|[^ѐ-\x{10ffff}])+", r"([a-z]{0,200}[a-z]{200}b)*"),
    *(r"(?x)( a + ) +", r"(?x: (a) )", r"\\(?x) a", r"(?m)^(\d+(,|$))+"),
    *(r"(?=a)b", r"(a)\1", r"(?<!x)y", "(", "[a", "a{1000}{1000}", "*", "a" * (MAX_PATTERN_LENGTH + 1)),
)


@cases("pattern", [*TAKEN, *USUAL])
def test_a_pattern_that_takes_time_in_proportion_to_the_text_is_taken(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@cases("pattern", REFUSED)
def test_a_pattern_that_can_take_for_ever_or_that_the_engine_does_not_take_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a+)+", "something that is itself repeated"),
        ("(aa?)+", "something of which a part may be left out"),
        ("(a|a)+", "a choice between branches that begin alike"),
    ],
)
def test_what_is_repeated_is_told(pattern: str, words: str) -> None:
    assert pattern_problem(pattern) == f"repeats {words}, so that one text can be matched in countless ways"


def test_a_pattern_is_found_anywhere_unless_it_says_where() -> None:
    assert pattern_matches("[0-9]{3}", "order 123")
    assert not pattern_matches("^[0-9]{3}$", "order 123")
    assert not pattern_matches("^[0-9]{3}$", "123\n")


PARTS = st.sampled_from(["a", "b", "-", r"\.", "[a-c]", r"\w", "."])
COUNTS = st.sampled_from(["", "", "?", "*", "+", "{2}", "{1,3}"])
SEQUENCES = st.lists(st.builds(lambda part, count: part + count, PARTS, COUNTS), min_size=1, max_size=3).map("".join)


def ways(body: str, text: str) -> int:
    """In how many ways a text is one turn after the other."""
    counts = [1, *([0] * len(text))]
    for end in range(1, len(text) + 1):
        counts[end] = sum(counts[start] for start in range(end) if re.fullmatch(body, text[start:end]))
    return counts[-1]


@given(SEQUENCES, st.text(alphabet="ab-.", min_size=1, max_size=7))
@sample(100)
def test_of_what_is_repeated_and_taken_no_text_is_matched_in_two_ways(body: str, text: str) -> None:
    assert pattern_problem(f"({body})+") is not None or ways(body, text) <= 1


FIXED = st.lists(PARTS, min_size=1, max_size=3)
BRANCHES = st.lists(FIXED.map("".join), min_size=2, max_size=3)


@given(BRANCHES, st.text(alphabet="abc-.", min_size=1, max_size=7))
@sample(100)
def test_of_branches_that_are_repeated_and_taken_no_text_is_matched_in_two_ways(branches: list[str], text: str) -> None:
    counts = [1, *([0] * len(text))]
    for end in range(1, len(text) + 1):
        counts[end] = sum(
            counts[start] for start in range(end) for branch in branches if re.fullmatch(branch, text[start:end])
        )
    assert counts[-1] <= 1 or pattern_problem(f"(?:{'|'.join(branches)})*") is not None


class Tree(NamedTuple):
    """A pattern, and where it can end in a text, once for every way."""

    pattern: str
    ends: Callable[[str, int], list[int]]


def atom(pattern: str) -> Tree:
    return Tree(pattern, lambda text, at: [at + 1] if re.fullmatch(pattern, text[at : at + 1]) else [])


def sequence(tree: Tree, other: Tree) -> Tree:
    both = tree.pattern + other.pattern
    return Tree(both, lambda text, at: [end for mid in tree.ends(text, at) for end in other.ends(text, mid)])


def choice(tree: Tree, other: Tree) -> Tree:
    return Tree(f"(?:{tree.pattern}|{other.pattern})", lambda text, at: [*tree.ends(text, at), *other.ends(text, at)])


def repeated(body: Tree, count: str) -> Tree:
    least, most = {"?": (0, 1), "*": (0, 9), "+": (1, 9), "{2}": (2, 2), "{1,3}": (1, 3), "{5}": (5, 5)}[count]

    def ends(text: str, at: int) -> list[int]:
        places, here = [at] * (not least), [at]
        for turn in range(1, most + 1):
            # As engines do: what need not be there is not repeated for nothing.
            here = [end for start in here for end in body.ends(text, start) if end > start or turn <= least]
            places += here if turn >= least else []
        return places

    return Tree(f"(?:{body.pattern}){count}", ends)


TREES = st.recursive(
    st.sampled_from([atom(piece) for piece in ("a", "b", "[ab]", "[^a]")]),
    lambda inner: st.one_of(
        st.builds(sequence, inner, inner),
        st.builds(choice, inner, inner),
        st.builds(repeated, inner, st.sampled_from(["?", "*", "+", "{2}", "{1,3}", "{5}"])),
    ),
    max_leaves=5,
)


@given(TREES, st.text(alphabet="ab", min_size=1, max_size=6))
@sample(100)
def test_whatever_is_repeated_and_taken_there_is_one_way_at_most_to_match_a_text(tree: Tree, text: str) -> None:
    assume(pattern_problem(f"(?:{tree.pattern})+") is None)
    assert repeated(tree, "+").ends(text, 0).count(len(text)) <= 1


@cases("pattern", [r"([[a]+-)*", r"([a&&b]+-)*", r"(\p{L}+-)*", r"([^-]+-)*", r"(\S+\n)*"])
def test_whatever_stands_in_brackets_is_read_as_the_engine_reads_it(pattern: str) -> None:
    # Python would warn of some of them, which is an error here.
    pattern_problem(pattern)
    assert pattern_problem(r"([^a]+-)*") is not None
    assert pattern_problem(r"([^-]+-)*") is None
