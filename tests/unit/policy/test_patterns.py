"""Regular expressions in packs: what takes time in proportion to the text, and nothing else."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.policy.patterns import LONGEST, pattern_matches, pattern_problem

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
    *(r"(?i)(?:a|A)*", r"(?:^|a)*", r"((?:ab|a.)c|d)+", r"(?:\p{L}|\w)*", r"(a|a){17}", r"(?:a{0}b|b)*", r"(ab|a)+"),
    *(r"(?:a{2}b|aab)*", r"(?:(?:x|a)b|ab)*"),
    *(r"(?=a)b", r"(a)\1", r"(?<!x)y", "(", "[a", "a{1000}{1000}", "*", "a" * (LONGEST + 1)),
)


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_pattern_that_takes_time_in_proportion_to_the_text_is_taken(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_can_take_for_ever_or_that_the_engine_does_not_take_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("(a+)+", "something that is itself repeated"), ("(a|a)+", "a choice between branches that begin alike")],
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
    found = [1, *([0] * len(text))]
    for end in range(1, len(text) + 1):
        found[end] = sum(found[start] for start in range(end) if re.fullmatch(body, text[start:end]))
    return found[-1]


@given(SEQUENCES, st.text(alphabet="ab-.", min_size=1, max_size=7))
@settings(max_examples=500)
def test_of_what_is_repeated_and_taken_no_text_is_matched_in_two_ways(body: str, text: str) -> None:
    open_ended = re.search(r"[*+]|,", body)
    assert not open_ended or pattern_problem(f"({body})+") is not None or ways(body, text) <= 1


FIXED = st.lists(PARTS, min_size=1, max_size=3)
BRANCHES = st.lists(FIXED.map("".join), min_size=2, max_size=3)


@given(BRANCHES, st.text(alphabet="abc-.", min_size=1, max_size=7))
@settings(max_examples=500)
def test_of_branches_that_are_repeated_and_taken_no_text_is_matched_in_two_ways(branches: list[str], text: str) -> None:
    found = [1, *([0] * len(text))]
    for end in range(1, len(text) + 1):
        found[end] = sum(found[start] for start in range(end) for one in branches if re.fullmatch(one, text[start:end]))
    assert found[-1] <= 1 or pattern_problem(f"(?:{'|'.join(branches)})*") is not None


@pytest.mark.parametrize("pattern", [r"([[a]+-)*", r"([a&&b]+-)*", r"(\p{L}+-)*", r"([^-]+-)*", r"(\S+\n)*"])
def test_whatever_stands_in_brackets_is_read_as_the_engine_reads_it(pattern: str) -> None:
    # Python would warn of some of them, which is an error here.
    pattern_problem(pattern)
    assert pattern_problem(r"([^a]+-)*") is not None
    assert pattern_problem(r"([^-]+-)*") is None
