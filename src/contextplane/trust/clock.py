"""The time of the next event: always after the last time on record. It reads no clock.

Time on record never goes back, and no two events have the same time. So a clock that was some hours ahead once blocks
nothing: until the other clocks have caught up, events follow each other by a microsecond. Expiry and revocation of keys
go by this time as by any other.

A record that is more than `MAX_AHEAD` ahead of the clock is not continued (`is_far_ahead`): otherwise one wrong time
would date everything after it, also its own revocation. Its signer is revoked from a time before it; then it does not
count, and honest acts are dated by their clocks again.

An event at the last representable moment blocks nothing either: all later events have that same time, and a revocation
voids what its key signed there.
"""

from contextplane.model.timestamp import Timestamp

__all__ = ["LAST_MOMENT", "MAX_AHEAD", "is_far_ahead", "next_event_time", "seconds_behind", "tolerated_lag"]

_STEP, _SECOND = 1_000, 1_000_000_000
_SKEW = 60
_PART_OF_AGE = 30

LAST_MOMENT = Timestamp.parse("9999-12-31T23:59:59.999999Z")
"""The latest time that a clock can show."""

MAX_AHEAD = 86_400
"""How many seconds a record may be ahead of the clock, for acts and for new traffic."""


def next_event_time(clock: Timestamp, last: Timestamp) -> Timestamp:
    """Return the clock's time, or one microsecond after the last time on record if that is later."""
    if clock > last:
        return clock
    if last >= LAST_MOMENT:
        return last
    nanos = last.nanos - last.nanos % _STEP + _STEP
    return Timestamp(seconds=last.seconds + nanos // _SECOND, nanos=nanos % _SECOND)


def seconds_behind(clock: Timestamp, last: Timestamp) -> int:
    """How many seconds a clock is behind the last time on record; 0 within a minute of tolerance."""
    behind = last.seconds - clock.seconds
    return behind if behind > _SKEW else 0


def is_far_ahead(clock: Timestamp, last: Timestamp) -> bool:
    """Whether a time on record is so far ahead of a clock that one of the two is wrong."""
    return last.seconds - clock.seconds > MAX_AHEAD


def tolerated_lag(max_age: int) -> int:
    """How many seconds a reader's clock may be behind a record that may be `max_age` seconds old.

    It is a thirtieth of that age, at least a minute and at most a day. A checkpoint of the future lasts longer by that
    part at most.
    """
    return min(MAX_AHEAD, max(_SKEW, max_age // _PART_OF_AGE))
