"""How long a pack is good for, by whole seconds, and which deadlines a filter means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import (
    MAX_TTL_MINUTES,
    FreshnessState,
    deadline,
    deadline_range,
    freshness,
    is_available,
)
from contextplane.model.timestamp import Timestamp
from tests.support.cases import cases

NOW = Timestamp.parse("2026-05-04T09:30:00.5Z")
STATES: tuple[FreshnessState | None, ...] = (None, "fresh", "expiring_soon", "expired")
NANOS = 10**9


def after(nanos: int) -> Timestamp:
    total = NOW.seconds * NANOS + NOW.nanos + nanos
    return Timestamp(seconds=total // NANOS, nanos=total % NANOS)


@cases(
    ("seconds", "state", "human"),
    [
        (-5, "expired", "expired"),
        (0, "expired", "expired"),
        (0.999, "expired", "expired"),
        (1, "expiring_soon", "<1m"),
        (59.9, "expiring_soon", "<1m"),
        (60, "expiring_soon", "1m"),
        (900.999, "expiring_soon", "15m"),
        (901, "fresh", "15m"),
        (3599, "fresh", "59m"),
        (3600, "fresh", "1h"),
        (86_399, "fresh", "23h"),
        (86_400 * 400, "fresh", "400d"),
    ],
)
def test_a_state_goes_by_the_whole_seconds_that_are_left(seconds: float, state: str, human: str) -> None:
    result = freshness(after(int(seconds * NANOS)), NOW)
    assert (result.state, result.seconds, result.human) == (state, max(0, int(seconds)), human)


def test_only_what_ends_soon_or_has_ended_is_warned_of() -> None:
    warnings = [freshness(after(seconds * NANOS), NOW).warning for seconds in (5000, 5, -5)]
    assert warnings == [None, "expiring soon \u2014 refresh or extend ttl", "expired \u2014 treat as stale evidence"]


@given(st.integers(-2_000 * NANOS, 2_000 * NANOS), st.integers(0, 1_500), st.sampled_from(STATES))
def test_the_bounds_of_a_filter_mean_exactly_the_packs_in_that_state(
    nanos: int, grace: int, expected: FreshnessState | None
) -> None:
    expires = after(nanos)
    low, high = deadline_range(expected, NOW, grace)
    meant = (low is None or low < expires) and (high is None or expires <= high)
    state = freshness(expires, NOW).state
    if expected is None:
        assert meant == (state != "expired")
    else:
        assert meant == (state == expected and is_available(expires, NOW, grace))


def test_the_last_moment_of_the_grace_time_counts_and_no_grace_time_is_too_long() -> None:
    assert is_available(after(-900 * NANOS), NOW, 900)
    assert not is_available(after(-900 * NANOS - 1), NOW, 900)
    for grace in (10**12, 10**20):
        assert is_available(after(-(10**15)), NOW, grace)
        assert deadline_range("expired", NOW, grace)[0] is None


@cases("minutes", [-1, 0, MAX_TTL_MINUTES + 1])
def test_a_deadline_out_of_bounds_is_refused(minutes: int) -> None:
    with pytest.raises(HandoffInvalid) as error:
        deadline(NOW, minutes, field="ttl_minutes")
    assert error.value.details == {
        "field": "ttl_minutes",
        "minimum": 1,
        "maximum": MAX_TTL_MINUTES,
        "provided": minutes,
    }


def test_the_least_and_the_most_minutes_are_a_deadline() -> None:
    assert deadline(NOW, 1, field="ttl_minutes") == after(60 * NANOS)
    assert deadline(NOW, MAX_TTL_MINUTES, field="ttl_minutes") == after(60 * MAX_TTL_MINUTES * NANOS)
