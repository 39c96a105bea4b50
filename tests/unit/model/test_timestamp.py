"""Moments are read as RFC 3339 has them, and written in one form."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.timestamp import NO_TIME, InvalidTimestamp, Timestamp
from tests.support.cases import cases

GOOD = [
    ("2026-05-04T09:31:42Z", "2026-05-04T09:31:42Z"),
    ("2026-05-04T09:31:42.500Z", "2026-05-04T09:31:42.5Z"),
    ("2026-05-04T09:31:42.1234567899Z", "2026-05-04T09:31:42.123456789Z"),
    ("2026-05-04T09:31:42.000Z", "2026-05-04T09:31:42Z"),
    ("2026-01-01T00:30:00+02:00", "2025-12-31T22:30:00Z"),
    ("2026-01-01T00:30:00-00:00", "2026-01-01T00:30:00Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ("0123-01-01T00:00:00.25Z", "0123-01-01T00:00:00.25Z"),
]


@cases(("text", "written"), GOOD)
def test_a_moment_is_written_in_utc_without_trailing_zeros(text: str, written: str) -> None:
    assert str(Timestamp.parse(text)) == written


BAD = [
    "",
    "2026-05-04",
    "2026-05-04T09:31:42",
    "2026-05-04t09:31:42z",
    "2026-05-04 09:31:42Z",
    "2026-02-30T10:30:00Z",
    "2026-05-04T24:00:00Z",
    "2026-05-04T09:31:60Z",
    "2026-05-04T9:31:42Z",
    "2026-05-04T09:31:42,5Z",
    "2026-05-04T09:31:42+0200",
    "2026-05-04T09:31:42+25:00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "2026-05-04T09:31:42Z\n",
    "\u0662026-05-04T09:31:42Z",
]


@cases("text", BAD)
def test_anything_else_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        Timestamp.parse(text)
    assert refused.value.hint


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_moments_sort_by_time_and_come_back_from_their_text(datetime: datetime, two: datetime) -> None:
    first, second = Timestamp.of(datetime), Timestamp.of(two)
    assert (first < second) == (datetime < two)
    assert Timestamp.parse(str(first)) == first
    assert first.date == datetime.replace(microsecond=0)


def test_the_moment_of_no_time_is_that_of_the_reference_program() -> None:
    assert str(NO_TIME) == "0001-01-01T00:00:00Z"
