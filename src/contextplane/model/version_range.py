"""Ranges of versions as people write them for npm: the part of that language in which nothing has to be guessed.

Comparators (`>=1.0.0`, `<2`), `^`, `~`, `=`, `1.2.x`, several of them with blanks between, alternatives with `||`.
What says nothing (an empty text, `*`, `>=0`), pre-releases and hyphens are refused.
"""

from functools import lru_cache
from typing import ClassVar, Self

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["RangeInvalid", "VersionRange"]

Version = tuple[int, int, int]
Interval = tuple[Version, Version | None]
"""From a version on, up to but without another; None: no end."""
_FIRST: Version = (0, 0, 0)
_OPERATORS = (">=", "<=", ">", "<", "=", "^", "~")
_ANY = frozenset("xX*")
_PARTS = 3
_MOST_DIGITS = 9


class RangeInvalid(ContextPlaneError):
    """A text that is no range of versions, or one that no version or every version is in."""

    code: ClassVar[str] = "version_range_invalid"
    family: ClassVar[Family] = "refused"


class VersionRange(Value, frozen=True):
    """The versions X.Y.Z of some intervals."""

    intervals: tuple[Interval, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one. `RangeInvalid` says what is wrong."""
        return cls(intervals=_intervals(text))

    def __contains__(self, version: Version) -> bool:
        return any(low <= version and (high is None or version < high) for low, high in self.intervals)


@lru_cache(maxsize=256)
def _intervals(text: str) -> tuple[Interval, ...]:
    intervals = tuple(_interval(one.strip(" "), text) for one in text.split("||"))
    left = tuple((low, high) for low, high in intervals if high is None or low < high)
    if not left:
        raise RangeInvalid(f"no version is in {text!r}", hint="write >=1.0.0, or >=1.0.0 <2.0.0")
    if _is_everything(left):
        raise RangeInvalid(f"every version is in {text!r}, so it says nothing", hint="write the least that works")
    return left


def _is_everything(intervals: tuple[Interval, ...]) -> bool:
    """Whether no version is left out."""
    end: Version | None = _FIRST
    for low, high in sorted(intervals, key=lambda interval: interval[0]):
        if end is None or low > end:
            break
        end = None if high is None else max(end, high)
    return end is None


def _interval(text: str, whole: str) -> tuple[Version, Version | None]:
    """What all comparators of one alternative leave."""
    low: Version = _FIRST
    high: Version | None = None
    comparators = [one for one in _closed_up(text).split(" ") if one]
    for comparator in comparators:
        operator = next((one for one in _OPERATORS if comparator.startswith(one)), "")
        numbers = _numbers(comparator.removeprefix(operator).split("."))
        if not numbers:
            break
        least, limit = _bounds(operator or "=", numbers)
        low = max(low, least)
        high = limit if high is None or (limit is not None and limit < high) else high
    else:
        if comparators:
            return low, high
    raise RangeInvalid(f"{whole[:60]!r} is no range of versions", hint="write >=1.0.0, ^1.2.0 or >=1.0.0 <2.0.0")


def _closed_up(text: str) -> str:
    """Without the blanks after operators: people write `>= 1.0.0`."""
    if " " not in text:
        return text
    for operator in _OPERATORS:
        while f"{operator} " in text:
            text = text.replace(f"{operator} ", operator)
    return text


def _numbers(parts: list[str]) -> list[int]:
    """The numbers of a version that may be cut short, or end in `x`; none when it is no version."""
    said = parts[: next((n for n, one in enumerate(parts) if one in _ANY), len(parts))]
    whole = all(one.isascii() and one.isdigit() and len(one) <= _MOST_DIGITS and str(int(one)) == one for one in said)
    return [int(one) for one in said] if whole and len(parts) <= _PARTS and set(parts[len(said) :]) <= _ANY else []


def _bounds(operator: str, given: list[int]) -> tuple[Version, Version | None]:
    """The interval of one comparator. `1.2` stands for all of 1.2.0, 1.2.1, ..., and is compared as such."""
    first = _filled(given)
    after = _filled([*given[:-1], given[-1] + 1])
    if operator == "^":
        # Up to the first number that is not zero; of 0.0 and 0 up to the last that was said.
        fixed = next((n for n, one in enumerate(given) if one), len(given) - 1)
        return first, _filled([*given[:fixed], given[fixed] + 1])
    if operator == "~":
        return first, _filled([*given[:1], given[1] + 1] if len(given) > 1 else [given[0] + 1])
    bounds: dict[str, tuple[Version, Version | None]] = {
        "=": (first, after),
        ">=": (first, None),
        ">": (after, None),
        "<": (_FIRST, first),
        "<=": (_FIRST, after),
    }
    return bounds[operator]


def _filled(numbers: list[int]) -> Version:
    major, minor, patch = (*numbers, 0, 0)[:3]
    return major, minor, patch
