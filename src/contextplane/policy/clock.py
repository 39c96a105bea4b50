"""The clock facts of a run: the moment of its compile, and the clock of the pack's timezone.

The rules of timezones come from the package `tzdata`, pinned to one release, and never from the machine: machines
differ, and the same moment would be another hour on one of them. Reads no clock.
"""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import lru_cache
from io import BytesIO

from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp

__all__ = [
    "CLOCK_FACTS",
    "CLOCK_NUMBERS",
    "CLOCK_TEXTS",
    "LOCAL_CLOCK",
    "clock_facts",
    "describe_missing",
    "is_timezone",
]

CLOCK_NUMBERS: Mapping[str, Sequence[int]] = {"run.weekday": range(1, 8), "run.hour": range(24)}
"""The clock facts that are a whole number, and every value that they can have. Monday is 1."""

CLOCK_TEXTS: Mapping[str, str] = {
    "run.as_of": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
    "run.date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
"""The clock facts that are a text, and its form: the order of the texts is that of time."""

CLOCK_FACTS = frozenset({*CLOCK_NUMBERS, *CLOCK_TEXTS})
LOCAL_CLOCK = CLOCK_FACTS - {"run.as_of"}
"""The clock facts that depend on the pack's timezone."""


def clock_facts(as_of: Timestamp, timezone: str) -> dict[str, Json]:
    """The clock facts, by their names in `run`. Those of an unknown timezone are missing.

    `as_of` is in UTC and in whole seconds, so that two of them, compared as texts, are ordered by time.
    """
    facts: dict[str, Json] = {"as_of": str(Timestamp(seconds=as_of.seconds, nanos=0))}
    zone = _zone(timezone)
    try:
        local = None if zone is None else as_of.date.astimezone(zone)
    except OverflowError:
        local = None  # the first or the last day of the calendar
    if local is not None:
        facts |= {"weekday": local.isoweekday(), "hour": local.hour, "date": local.date().isoformat()}
    return facts


def describe_missing(paths: Sequence[str]) -> str:
    """Describe facts that are missing. Those of the clock are no facts that a caller sends: `as_of` is."""
    return f"{', '.join(paths)} is missing{'' if CLOCK_FACTS.isdisjoint(paths) else ' (send as_of)'}"


def is_timezone(name: str) -> bool:
    """Whether the rules of a timezone are known."""
    return _zone(name) is not None


@lru_cache(64)
def _zone(name: str) -> tzinfo | None:
    # By the list and not by the file: some file systems find `asia/kolkata` as well.
    if name not in _zone_names():
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415  most packs read no clock

    return ZoneInfo.from_file(BytesIO(_zone_file(f"zoneinfo/{name}")), key=name)


@lru_cache(1)
def _zone_names() -> frozenset[str]:
    return frozenset(_zone_file("zones").decode().split())


def _zone_file(name: str) -> bytes:
    from pkgutil import get_data  # noqa: PLC0415  as above

    data = get_data("tzdata", name)
    if data is None:
        raise ModuleNotFoundError("tzdata is not installed", name="tzdata")
    return data
