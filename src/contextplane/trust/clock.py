"""The time of the next event: always after the last time on record. It reads no clock.

Time on record never goes back, and no two events have the same time. So a clock that was ahead once blocks nothing:
until the other clocks have caught up, events follow each other by a microsecond. Expiry and revocation of keys go by
this time as by any other.

An event at the last representable moment blocks nothing either: all later events have that same time, and a revocation
voids what its key signed there.
"""

from contextplane.model.timestamp import Timestamp

__all__ = ["LAST_MOMENT", "next_event_time", "seconds_behind"]

_STEP, _SECOND = 1_000, 1_000_000_000
_SKEW = 60

LAST_MOMENT = Timestamp.parse("9999-12-31T23:59:59.999999Z")
"""The latest time that a clock can show."""


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
