"""Ranges of versions in the notation of npm, restricted to what is unambiguous.

Comparators (`>=1.0.0`, `<2`), `^`, `~`, `=`, `1.2.x`, several of them separated by blanks, alternatives with `||`. A
range that constrains nothing (an empty text, `*`, `>=0`), pre-releases and hyphen ranges are refused.
"""

from functools import lru_cache
from typing import ClassVar, Self

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["RangeInvalid", "VersionRange"]

Version = tuple[int, int, int]
Interval = tuple[Version, Version | None]
"""From a version, up to and excluding another; None: no end."""
_FIRST: Version = (0, 0, 0)
_OPERATORS = (">=", "<=", ">", "<", "=", "^", "~")
_ANY = frozenset("xX*")
_PARTS = 3
_MOST_DIGITS = 9


class RangeInvalid(ContextPlaneError):
    """A text that is not a range of versions, or a range of no version or every version."""

    code: ClassVar[str] = "version_range_invalid"
    family: ClassVar[Family] = "refused"


class VersionRange(Value, frozen=True):
    """The versions X.Y.Z within some intervals."""

    intervals: tuple[Interval, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a range. `RangeInvalid` says what is wrong."""
        return cls(intervals=_intervals(text))

    def __contains__(self, version: Version) -> bool:
        return any(low <= version and (high is None or version < high) for low, high in self.intervals)


@lru_cache(maxsize=256)
def _intervals(text: str) -> tuple[Interval, ...]:
    intervals = tuple(_interval(alternative.strip(" "), text) for alternative in text.split("||"))
    nonempty = tuple((low, high) for low, high in intervals if high is None or low < high)
    if not nonempty:
        raise RangeInvalid(f"no version is in {text!r}", hint="write >=1.0.0, or >=1.0.0 <2.0.0")
    if _is_everything(nonempty):
        raise RangeInvalid(f"every version is in {text!r}, so it says nothing", hint="write the least that works")
    return nonempty


def _is_everything(intervals: tuple[Interval, ...]) -> bool:
    """Whether the intervals leave no version out."""
    end: Version | None = _FIRST
    for low, high in sorted(intervals, key=lambda interval: interval[0]):
        if end is None or low > end:
            break
        end = None if high is None else max(end, high)
    return end is None


def _interval(text: str, whole: str) -> tuple[Version, Version | None]:
    """The intersection of all comparators of one alternative."""
    low: Version = _FIRST
    high: Version | None = None
    comparators = [part for part in _strip_operator_blanks(text).split(" ") if part]
    for comparator in comparators:
        operator = next((symbol for symbol in _OPERATORS if comparator.startswith(symbol)), "")
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


def _strip_operator_blanks(text: str) -> str:
    """The text without blanks after operators: people write `>= 1.0.0`."""
    if " " not in text:
        return text
    for operator in _OPERATORS:
        while f"{operator} " in text:
            text = text.replace(f"{operator} ", operator)
    return text


def _numbers(parts: list[str]) -> list[int]:
    """The numbers of a version that may be shortened or end in `x`; none when it is no version."""
    numbers = parts[: next((n for n, part in enumerate(parts) if part in _ANY), len(parts))]
    whole = all(
        part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS and str(int(part)) == part for part in numbers
    )
    return (
        [int(part) for part in numbers] if whole and len(parts) <= _PARTS and set(parts[len(numbers) :]) <= _ANY else []
    )


def _bounds(operator: str, numbers: list[int]) -> tuple[Version, Version | None]:
    """The interval of one comparator. `1.2` stands for all of 1.2.0, 1.2.1, ..."""
    first = _pad_version(numbers)
    after = _pad_version([*numbers[:-1], numbers[-1] + 1])
    if operator == "^":
        # Up to the first number that is not zero; for 0.0 and 0, up to the last one given.
        fixed = next((n for n, number in enumerate(numbers) if number), len(numbers) - 1)
        return first, _pad_version([*numbers[:fixed], numbers[fixed] + 1])
    if operator == "~":
        return first, _pad_version([*numbers[:1], numbers[1] + 1] if len(numbers) > 1 else [numbers[0] + 1])
    bounds: dict[str, tuple[Version, Version | None]] = {
        "=": (first, after),
        ">=": (first, None),
        ">": (after, None),
        "<": (_FIRST, first),
        "<=": (_FIRST, after),
    }
    return bounds[operator]


def _pad_version(numbers: list[int]) -> Version:
    major, minor, patch = (*numbers, 0, 0)[:3]
    return major, minor, patch
