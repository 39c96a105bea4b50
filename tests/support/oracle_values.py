"""Values in the second JSONLogic: their kinds, equality, order, truth and spelling, as docs/policy.md has them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

__all__ = [
    "NullMet",
    "Unanswerable",
    "are_equal",
    "exact",
    "kind",
    "needle_in",
    "numbers",
    "ordered",
    "text_of",
    "truth",
]

Unanswerable = ArithmeticError
"""There is no such value."""


class NullMet(Unanswerable):
    """There is no such value, because one of the operands is null."""


LARGEST = 2**53 - 1
SMALLEST_SPELLED = Decimal("0.000001")


def kind(value: Any) -> str:  # noqa: ANN401  any JSON, here and below
    if value is None or isinstance(value, bool):
        return "null" if value is None else "bool"
    return {int: "number", float: "number", str: "text", list: "list", dict: "object"}[type(value)]


def are_equal(a: Any, b: Any, *, may_differ_in_kind: bool) -> bool:  # noqa: ANN401
    kinds = {kind(a), kind(b)}
    if "null" in kinds:
        return kinds == {"null"}
    if kinds & {"list", "object"} or (len(kinds) > 1 and not may_differ_in_kind):
        raise Unanswerable
    return len(kinds) == 1 and bool(a == b)


def ordered(values: Sequence[Any]) -> Sequence[Any]:
    """The values if they have an order: numbers, or texts."""
    kinds = {kind(value) for value in values}
    if kinds - {"null"} not in ({"number"}, {"text"}, set()):
        raise Unanswerable
    if "null" in kinds:
        raise NullMet
    return values


def numbers(values: Sequence[Any]) -> Sequence[float]:
    kinds = {kind(value) for value in values}
    if kinds - {"number", "null"}:
        raise Unanswerable
    if "null" in kinds:
        raise NullMet
    return values


def exact(number: float) -> float:
    if not -LARGEST <= number <= LARGEST:
        raise Unanswerable
    return number


def truth(value: Any) -> bool:  # noqa: ANN401
    if kind(value) not in {"bool", "null", "list"}:
        raise Unanswerable
    return bool(value)


def needle_in(needle: Any, place: Any) -> bool:  # noqa: ANN401
    if place is None:
        return False
    if isinstance(place, str):
        if needle is None:
            raise NullMet
        if not isinstance(needle, str):
            raise Unanswerable
        return place != "" and needle in place
    if not isinstance(place, list) or isinstance(needle, list | dict):
        raise Unanswerable
    return any(kind(element) == kind(needle) and bool(element == needle) for element in place)


def text_of(value: Any) -> str:  # noqa: ANN401
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, list | dict):
        raise Unanswerable
    if isinstance(value, str):
        return value
    if value == int(value):
        return str(int(value))
    spelled = Decimal(repr(value))
    if abs(spelled) < SMALLEST_SPELLED:
        raise Unanswerable
    return f"{spelled:f}"
