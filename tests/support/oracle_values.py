"""Values in the second JSONLogic: their kinds, equality, and conversions to number and text."""

import math
from typing import Any

__all__ = ["Unanswerable", "as_number", "kind", "loosely_equal", "require_number", "strictly_equal", "text_of"]

Unanswerable = ArithmeticError
"""There is no such value."""


def kind(value: Any) -> str:  # noqa: ANN401  any JSON, here and below
    if value is None or isinstance(value, bool):
        return "null" if value is None else "bool"
    return {int: "number", float: "number", str: "text", list: "list", dict: "object"}[type(value)]


def strictly_equal(a: Any, b: Any) -> bool:  # noqa: ANN401
    if kind(a) != kind(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(strictly_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(strictly_equal(a[key], b[key]) for key in a)
    return bool(a == b)


def loosely_equal(a: Any, b: Any) -> bool:  # noqa: ANN401, PLR0911  one line per pair of kinds
    pair = {kind(a), kind(b)}
    if pair == {"object"}:
        return False
    if len(pair) == 1:
        return strictly_equal(a, b)
    if pair & {"list", "object"}:
        return False
    if pair == {"null", "text"}:
        return "" in (a, b)
    if pair == {"bool", "text"}:
        text, truth = (a, b) if isinstance(a, str) else (b, a)
        return bool(text == ("true" if truth else "false"))
    if pair == {"number", "text"}:
        text, number = (a, b) if isinstance(a, str) else (b, a)
        return bool(_parse_number(text) == number)
    return bool((a or 0) == (b or 0))


def _parse_number(text: str) -> float:
    """The number that a text spells; NaN where it spells none."""
    if text != text.strip() or "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def as_number(value: Any) -> float:  # noqa: ANN401
    """The number of a value. Booleans, lists and objects have none; null is 0."""
    if isinstance(value, bool | list | dict):
        raise Unanswerable
    if isinstance(value, str):
        return _parse_number(value)
    return value or 0


def require_number(value: Any) -> float:  # noqa: ANN401
    number = as_number(value)
    if math.isnan(number):
        raise Unanswerable
    return number


def text_of(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return "".join(map(text_of, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
