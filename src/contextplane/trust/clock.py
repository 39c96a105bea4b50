"""When an act is: after whatever is on record, whatever the clock of its machine shows. It reads no clock.

Time on record never goes back, and two acts are never at one moment. So a clock that was ahead once stops nobody: until
clocks have caught up, acts follow each other by a microsecond. By that time keys end, and a revocation parts what was
signed before it from what comes after it, as by any other.

Whoever puts the very last moment on record stops nobody either: then all acts are at that one, and a revocation voids
what its key did there.
"""

from contextplane.model.timestamp import Timestamp

__all__ = ["LAST_MOMENT", "moment_of_act", "seconds_behind"]

_STEP, _SECOND = 1_000, 1_000_000_000
_SKEW = 60

LAST_MOMENT = Timestamp.parse("9999-12-31T23:59:59.999999Z")
"""After it there is none that a clock shows."""


def moment_of_act(clock: Timestamp, last: Timestamp) -> Timestamp:
    """The moment of the next act: what the clock shows, or the one after the last that is on record."""
    if clock > last:
        return clock
    if last >= LAST_MOMENT:
        return last
    nanos = last.nanos - last.nanos % _STEP + _STEP
    return Timestamp(seconds=last.seconds + nanos // _SECOND, nanos=nanos % _SECOND)


def seconds_behind(clock: Timestamp, last: Timestamp) -> int:
    """How far a clock is behind what is on record; 0 within a minute, which clocks may differ by."""
    behind = last.seconds - clock.seconds
    return behind if behind > _SKEW else 0
