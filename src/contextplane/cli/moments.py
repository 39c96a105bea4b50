"""When a run was, told to people."""

from contextplane.cli.screen import clean
from contextplane.model.timestamp import NO_TIME, Timestamp

__all__ = ["second", "tells_time", "told_time"]

_SECOND = len("2026-05-04 09:31:42")
_NONE = "no time"


def tells_time(created: str) -> bool:
    """Whether a manifest says when its run was; the year 1 stands for that it does not."""
    return created != str(NO_TIME)


def told_time(created: str) -> str:
    """The time in a manifest, as it stands there."""
    return clean(created) if tells_time(created) else _NONE


def second(moment: Timestamp) -> str:
    """A moment to the second, in UTC and marked so, always as wide as any other."""
    return str(moment)[:_SECOND].replace("T", " ") + "Z" if moment != NO_TIME else _NONE.ljust(_SECOND + 1)
