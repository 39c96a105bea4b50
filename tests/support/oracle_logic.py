"""A second JSONLogic: plain Python, slow, one short function per operator, and no line shared with the first.

It answers as the engine does with strict forms, for texts that spell no date and no duration. What fails there is
`Unanswerable` here.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.oracle_values import (
    Unanswerable,
    as_number,
    kind,
    loosely_equal,
    strictly_equal,
    sure_number,
    text_of,
)

__all__ = ["Unanswerable", "answer_of", "literal_paths", "look_up"]


class _Reading:
    """The facts, or one element of the list of this name; and what was read and not found.

    What folds a list sees the element as `current`, and what it came to so far as `accumulator`.
    """

    def __init__(self, data: Any, not_found: set[str], of: str = "", *, so_far: list[Any] | None = None) -> None:  # noqa: ANN401
        self.data = data
        self.not_found = not_found
        self.of = of
        self.so_far = so_far

    def seen(self, path: str) -> tuple[Any, str]:
        """Where a path begins, and the path from there."""
        first, _, rest = path.partition(".")
        if self.so_far is not None and first in {"current", "accumulator"}:
            return (self.data if first == "current" else self.so_far[0]), rest
        return self.data, path

    def called(self, path: str) -> str:
        """What something at this path is called; nothing where it is no fact and no part of an element."""
        if self.so_far is not None and path.partition(".")[0] == "accumulator":
            return ""
        return ".".join(part for part in (self.of, self.seen(path)[1]) if part)


def answer_of(expression: Any, facts: Mapping[str, Any], not_found: set[str]) -> Any:  # noqa: ANN401  any JSON
    """What an expression comes to. Adds to `not_found` what it reads by a literal path, without default, in vain."""
    return _value(expression, _Reading(facts, not_found))


def _value(expression: Any, at: _Reading) -> Any:  # noqa: ANN401
    if isinstance(expression, list):
        return [_value(one, at) for one in expression]
    if not isinstance(expression, dict):
        return expression
    ((operator, given),) = expression.items()
    return _OPERATORS[operator](given if isinstance(given, list) else [given], at)


def look_up(path: str, data: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Whether a dotted path leads somewhere, and where."""
    if path == "":
        return True, data
    for step in path.split("."):
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and step.isdigit() and int(step) < len(data):
            data = data[int(step)]
        else:
            return False, None
    return True, data


def literal_paths(expression: Any) -> set[str]:  # noqa: ANN401
    """The literal paths without default that stand in an expression, but for what is done with elements of lists."""
    if isinstance(expression, list):
        return set().union(*map(literal_paths, expression))
    if not isinstance(expression, dict):
        return set()
    ((operator, given),) = expression.items()
    operands = given if isinstance(given, list) else [given]
    if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
        return {operands[0]}
    if operator in {"map", "filter", "reduce", "all", "none", "some"}:
        operands = [one for n, one in enumerate(operands) if n != 1]
    return literal_paths(operands)


def _truth(value: Any) -> bool:  # noqa: ANN401
    return bool(value)


def _var(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
    asked = _value(given[0], at) if given else ""
    path = "" if asked is None else str(asked)
    start, way = at.seen(path)
    found, value = look_up(way, start)
    if value is None and len(given) < 2 and at.called(path) and (at.of or isinstance(given[0], str)):
        at.not_found.add(at.called(path))
    return value if found or len(given) < 2 else _value(given[1], at)


def _missing(given: list[Any], at: _Reading) -> list[str]:
    names: list[Any] = []
    for one in (_value(part, at) for part in given):
        names += one if isinstance(one, list) else [one]
    return [name for name in names if isinstance(name, str) and not look_up(name, at.data)[0]]


def _missing_some(given: list[Any], at: _Reading) -> list[str]:
    needed, names = _value(given[0], at), _value(given[1], at)
    missing = [name for name in names if not look_up(name, at.data)[0]]
    return [] if len(names) - len(missing) >= needed else missing


def _if(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
    while len(given) > 1:
        if _truth(_value(given[0], at)):
            return _value(given[1], at)
        given = given[2:]
    return _value(given[0], at) if given else None


def _and(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
    value = None
    for one in given:
        value = _value(one, at)
        if not _truth(value):
            break
    return value


def _or(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
    value = None
    for one in given:
        value = _value(one, at)
        if _truth(value):
            break
    return value


def _compared(holds: Callable[[Any, Any], bool]) -> Callable[[list[Any], _Reading], bool]:
    def two(a: Any, b: Any) -> bool:  # noqa: ANN401
        if isinstance(a, str) and isinstance(b, str):
            return holds(a, b)
        left, right = as_number(a), as_number(b)
        if "number" in (kind(a), kind(b)) and (math.isnan(left) or math.isnan(right)):
            raise Unanswerable
        return holds(left, right)

    return _chained(two)


def _chained(two: Callable[[Any, Any], bool]) -> Callable[[list[Any], _Reading], bool]:
    def chain(given: list[Any], at: _Reading) -> bool:
        before = _value(given[0], at)
        for one in given[1:]:
            after = _value(one, at)
            if not two(before, after):
                return False
            before = after
        return True

    return chain


def _computed(step: Callable[[float, float], float], start: float) -> Callable[[list[Any], _Reading], float]:
    def compute(given: list[Any], at: _Reading) -> float:
        values = [_value(one, at) for one in given]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        total = start
        for value in values:
            total = step(total, sure_number(value))
        return total

    return compute


def _minus(given: list[Any], at: _Reading) -> float:
    values = [_value(one, at) for one in given]
    if len(values) == 1 and not isinstance(values[0], list):
        return -sure_number(values[0])
    numbers = [sure_number(value) for value in (values[0] if len(values) == 1 else values)]
    if not numbers:
        raise Unanswerable
    return numbers[0] - sum(numbers[1:])


def _divided(given: list[Any], at: _Reading) -> float:
    one, by = (sure_number(_value(part, at)) for part in given)
    if by == 0:
        raise Unanswerable
    return one / by


def _rest(given: list[Any], at: _Reading) -> float:
    one, by = (sure_number(_value(part, at)) for part in given)
    if by == 0:
        raise Unanswerable
    return math.fmod(one, by)


def _chosen(best: Callable[[list[Any]], Any]) -> Callable[[list[Any], _Reading], Any]:
    def choose(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
        values = [_value(one, at) for one in given]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        if not values or any(kind(value) != "number" for value in values):
            raise Unanswerable
        return best(values)

    return choose


def _in(given: list[Any], at: _Reading) -> bool:
    needle, hay = (_value(one, at) for one in given)
    if isinstance(hay, str):
        return isinstance(needle, str) and needle in hay
    if not isinstance(hay, list | None):
        raise Unanswerable
    return any(strictly_equal(needle, one) for one in hay or ())


def _cat(given: list[Any], at: _Reading) -> str:
    return "".join(text_of(_value(one, at)) for one in given)


def _substr(given: list[Any], at: _Reading) -> str:
    text, start, *length = (_value(one, at) for one in given)
    text = text_of(text)
    start = max(0, start + len(text)) if start < 0 else start
    if not length:
        return text[start:]
    return text[start : start + length[0]] if length[0] >= 0 else text[start : len(text) + length[0]]


def _merge(given: list[Any], at: _Reading) -> list[Any]:
    merged: list[Any] = []
    for value in (_value(one, at) for one in given):
        merged += value if isinstance(value, list) else [value]
    return [one for one in merged if one is not None]


def _elements(given: Any, at: _Reading) -> tuple[str, list[Any]]:  # noqa: ANN401
    """The list to go through, and what one of its elements is called. Nothing has no elements; only a list has some."""
    value = _value(given, at)
    if value is not None and not isinstance(value, list):
        raise Unanswerable
    return f"{_list_name(given, at)}[]", value or []


def _list_name(given: Any, at: _Reading) -> str:  # noqa: ANN401
    """What is filtered keeps its name; what is computed has none."""
    if not isinstance(given, dict):
        return ""
    ((operator, operands),) = given.items()
    first = (operands or [None])[0] if isinstance(operands, list) else operands
    if operator == "filter":
        return _list_name(first, at)
    return at.called("" if first is None else str(first)) if operator == "var" else ""


def _each(given: list[Any], at: _Reading) -> Iterator[tuple[Any, Any]]:
    """Each element and what is made of it, one after the other, so that whoever asks can stop."""
    name, values = _elements(given[0], at)
    for value in values:
        yield value, _value(given[1], _Reading(value, at.not_found, name))


def _map(given: list[Any], at: _Reading) -> list[Any]:
    return [made for _, made in _each(given, at)]


def _filter(given: list[Any], at: _Reading) -> list[Any]:
    return [one for one, made in _each(given, at) if _truth(made)]


def _some(given: list[Any], at: _Reading) -> bool:
    return any(_truth(made) for _, made in _each(given, at))


def _all(given: list[Any], at: _Reading) -> bool:
    seen = [True]
    for _, made in _each(given, at):
        seen.append(_truth(made))
        if not seen[-1]:
            break
    return len(seen) > 1 and seen[-1]


def _reduce(given: list[Any], at: _Reading) -> Any:  # noqa: ANN401
    (name, values), total = _elements(given[0], at), _value(given[2] if len(given) > 2 else None, at)
    for value in values:
        total = _value(given[1], _Reading(value, at.not_found, name, so_far=[total]))
    return total


_OPERATORS: dict[str, Callable[[list[Any], _Reading], Any]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    "!": lambda given, at: not _truth(_value(given[0], at)),
    "!!": lambda given, at: _truth(_value(given[0], at)),
    "==": _chained(loosely_equal),
    "===": _chained(strictly_equal),
    "!=": lambda given, at: not _chained(loosely_equal)(given, at),
    "!==": lambda given, at: not _chained(strictly_equal)(given, at),
    "<": _compared(lambda a, b: a < b),
    "<=": _compared(lambda a, b: a <= b),
    ">": _compared(lambda a, b: a > b),
    ">=": _compared(lambda a, b: a >= b),
    "max": _chosen(max),
    "min": _chosen(min),
    "+": _computed(lambda a, b: a + b, 0),
    "*": _computed(lambda a, b: a * b, 1),
    "-": _minus,
    "/": _divided,
    "%": _rest,
    "map": _map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _all,
    "some": _some,
    "none": lambda given, at: not _some(given, at),
    "merge": _merge,
    "in": _in,
    "cat": _cat,
    "substr": _substr,
}
