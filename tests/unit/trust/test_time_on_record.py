"""Time on record never goes back, whatever the clocks of those who write show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.timestamp import Timestamp
from contextplane.trust.checkpoint import Checkpoint, signed_checkpoint
from contextplane.trust.clock import LAST_MOMENT, is_far_ahead, next_event_time, seconds_behind, tolerated_lag
from contextplane.trust.merkle_log import believed_checkpoint
from tests.support.cases import cases
from tests.unit.trust.world import CHECK, day, key_of, keyring, revoke, trust

NOON = Timestamp.parse("2030-01-01T12:00:00Z")
moments = st.builds(
    Timestamp, seconds=st.integers(0, 300_000_000_000), nanos=st.integers(0, 999_999_999)
)  # of the first nine thousand years


@given(st.lists(moments, min_size=1), moments)
def test_acts_follow_each_other_whatever_clocks_show(clocks: list[Timestamp], last: Timestamp) -> None:
    for clock in clocks:
        moment = next_event_time(clock, last)
        assert moment > last
        assert moment == clock or clock <= last
        assert Timestamp.parse(str(moment)) == moment
        last = moment


def test_by_a_clock_that_is_behind_an_act_is_a_microsecond_later() -> None:
    assert str(next_event_time(NOON, Timestamp.parse("2031-06-01T00:00:00.999999Z"))) == "2031-06-01T00:00:01Z"
    assert (
        str(next_event_time(NOON, Timestamp.parse("2031-06-01T00:00:00.000000123Z"))) == "2031-06-01T00:00:00.000001Z"
    )
    assert str(next_event_time(NOON, NOON)) == "2030-01-01T12:00:00.000001Z"


@pytest.mark.parametrize("last", [str(LAST_MOMENT), "9999-12-31T23:59:59.999999999Z"])
def test_after_the_last_moment_that_can_be_written_acts_share_it(last: str) -> None:
    assert str(next_event_time(NOON, Timestamp.parse(last))) == last


@cases(("seconds", "expected"), [(-5, 0), (0, 0), (60, 0), (61, 61), (86_400, 86_400)])
def test_clocks_may_differ_by_a_minute_before_anybody_is_told(seconds: int, expected: int) -> None:
    assert seconds_behind(NOON, Timestamp(seconds=NOON.seconds + seconds, nanos=0)) == expected


@cases(("seconds", "expected"), [(-(10**9), False), (0, False), (86_400, False), (86_401, True), (10**9, True)])
def test_a_record_may_be_a_day_ahead_of_a_clock_and_not_more(seconds: int, expected: bool) -> None:  # noqa: FBT001
    assert is_far_ahead(NOON, Timestamp(seconds=NOON.seconds + seconds, nanos=0)) is expected


@cases(("age", "expected"), [(0, 60), (1800, 60), (3600, 120), (30 * 86_400, 86_400), (10**9, 86_400)])
def test_a_clock_may_be_behind_by_a_part_of_the_age_that_is_allowed(age: int, expected: int) -> None:
    assert tolerated_lag(age) == expected


SEEN = Checkpoint(origin="log.example", size=0, root=bytes(32), time=day(5))
BOB, CAROL = key_of("bob"), key_of("carol")


@cases(("since", "expected"), [(4, None), (5, None), (6, day(5))])
def test_the_time_of_what_was_seen_is_believed_unless_its_signer_is_revoked_from_before(
    since: int, expected: Timestamp | None
) -> None:
    note = signed_checkpoint(SEEN, BOB)
    keys = keyring(trust(BOB, "acme", "log"))
    assert believed_checkpoint(note, keys, CHECK) == SEEN
    seen = believed_checkpoint(note, keyring(revoke(BOB, day(since)), keys=keys), CHECK)
    assert (seen.time, seen.root, seen.size) == (expected, SEEN.root, SEEN.size)


def test_a_revoked_key_takes_no_time_away_that_another_key_signed() -> None:
    keys = keyring(trust(BOB, "acme", "log"), trust(CAROL, "acme", "log"), revoke(BOB, day(2)))
    added = signed_checkpoint(SEEN, BOB).rpartition(b"\n\n")[2]
    assert believed_checkpoint(signed_checkpoint(SEEN, CAROL) + added, keys, CHECK) == SEEN
