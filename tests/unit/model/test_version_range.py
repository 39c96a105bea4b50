"""Ranges of versions, with the reading of npm by semantic-version as the oracle."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_version import NpmSpec  # type: ignore[import-untyped]
from semantic_version import Version as Oracle

from contextplane.model.version_range import RangeInvalid, VersionRange
from tests.spec.manifest import proves
from tests.support.cases import cases

VERSIONS = [(major, minor, patch) for major, minor, patch in itertools.product(range(4), repeat=3)]
NUMBERS = st.sampled_from("0123")
PARTS = st.one_of(
    st.tuples(NUMBERS),
    st.tuples(NUMBERS, st.one_of(NUMBERS, st.sampled_from("xX*"))),
    st.tuples(NUMBERS, NUMBERS, st.one_of(NUMBERS, st.sampled_from("xX*"))),
).map(".".join)
COMPARATORS = st.builds("{}{}".format, st.sampled_from(["", ">=", "<=", ">", "<", "=", "^", "~"]), PARTS)
RANGES = st.lists(st.lists(COMPARATORS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=3).map(" || ".join)


@given(RANGES)
def test_a_range_holds_the_versions_that_npm_says(text: str) -> None:
    spec = NpmSpec(text)
    expected = [version for version in VERSIONS if Oracle("{}.{}.{}".format(*version)) in spec]
    try:
        version_range = VersionRange.parse(text)
    except RangeInvalid:
        assert expected in ([], VERSIONS), "none is in it, or all are"
    else:
        assert [version for version in VERSIONS if version in version_range] == expected


@proves("context-pack:contract-meta:compatibility-fields")
@cases(
    "text",
    [
        *(
            "",
            " ",
            "*",
            "x",
            "latest",
            ">=",
            "1.0.0 ||",
            "|| 1.0.0",
            ">=1.0.0,<2.0.0",
            "1.0.0 - 2.0.0",
            "v1.0.0",
            "01.0.0",
        ),
        *(
            "1.0.0-beta",
            "1.0.0+build",
            ">=1.0.0 <1.0.0",
            "=>1.0.0",
            "1.0.0.0",
            "1..0",
            "1.x.0",
            "1.x.0.",
            ">=1.0.0\n",
            "\u0661.0.0",
        ),
        *(">=0", ">=0.0.0", ">=0.0", "<1.0.0 || >=1.0.0", ">=2 || <3", ">1.0.0 || <=1.0.0", "^1 || >=2 || <1"),
    ],
)
def test_what_says_nothing_or_has_to_be_guessed_is_refused(text: str) -> None:
    with pytest.raises(RangeInvalid):
        VersionRange.parse(text)


def test_blanks_after_an_operator_are_read_as_people_mean_them() -> None:
    assert VersionRange.parse(">= 1.0.0  < 2.0.0") == VersionRange.parse(">=1.0.0 <2.0.0")


@cases("text", [">0.0.0", ">=0.0.1", "<1 || >1.0.0", "<1.0.0 || >=1.0.1", "<=1 || >=3", "^0"])
def test_a_range_that_leaves_out_one_version_says_something(text: str) -> None:
    assert VersionRange.parse(text).intervals
