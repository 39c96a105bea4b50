"""A second JSONLogic: plain Python, slow, one function per operator, no code shared with the first.

It evaluates as the engine does with strict forms, for texts that spell no date and no duration. What fails there is
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
    require_number,
    strictly_equal,
    text_of,
)

__all__ = ["Unanswerable", "evaluate", "literal_paths", "look_up"]


class _Scope:
    """The facts, or one element of the list of this name; and the paths that were read and missing.

    `reduce` sees the element as `current`, and its result so far as `accumulator`.
    """

    def __init__(self, data: Any, not_found: set[str], of: str = "", *, so_far: list[Any] | None = None) -> None:  # noqa: ANN401
        self.data = data
        self.not_found = not_found
        self.of = of
        self.so_far = so_far

    def resolve(self, path: str) -> tuple[Any, str]:
        """The value at which a path begins, and the path from there."""
        first, _, rest = path.partition(".")
        if self.so_far is not None and first in {"current", "accumulator"}:
            return (self.data if first == "current" else self.so_far[0]), rest
        return self.data, path

    def name_of(self, path: str) -> str:
        """The name of what is at this path; empty where it is no fact and no part of an element."""
        if self.so_far is not None and path.partition(".")[0] == "accumulator":
            return ""
        return ".".join(part for part in (self.of, self.resolve(path)[1]) if part)


def evaluate(expression: Any, facts: Mapping[str, Any], not_found: set[str]) -> Any:  # noqa: ANN401  any JSON
    """The value of an expression.

    Adds to `not_found` the missing facts that it reads by a literal path without a default.
    """
    return _value(expression, _Scope(facts, not_found))


def _value(expression: Any, at: _Scope) -> Any:  # noqa: ANN401
    if isinstance(expression, list):
        return [_value(part, at) for part in expression]
    if not isinstance(expression, dict):
        return expression
    ((operator, argument),) = expression.items()
    return _OPERATORS[operator](argument if isinstance(argument, list) else [argument], at)


def look_up(path: str, data: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """Whether a dotted path leads to a value, and the value."""
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
    """The literal paths without a default in an expression, except in the bodies of loops."""
    if isinstance(expression, list):
        return set().union(*map(literal_paths, expression))
    if not isinstance(expression, dict):
        return set()
    ((operator, argument),) = expression.items()
    operands = argument if isinstance(argument, list) else [argument]
    if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
        return {operands[0]}
    if operator in {"map", "filter", "reduce", "all", "none", "some"}:
        operands = [operand for n, operand in enumerate(operands) if n != 1]
    return literal_paths(operands)


def _truth(value: Any) -> bool:  # noqa: ANN401
    return bool(value)


def _var(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    name = _value(operands[0], at) if operands else ""
    path = "" if name is None else str(name)
    start, way = at.resolve(path)
    is_present, value = look_up(way, start)
    if value is None and len(operands) < 2 and at.name_of(path) and (at.of or isinstance(operands[0], str)):
        at.not_found.add(at.name_of(path))
    return value if is_present or len(operands) < 2 else _value(operands[1], at)


def _missing(operands: list[Any], at: _Scope) -> list[str]:
    names: list[Any] = []
    for path in (_value(part, at) for part in operands):
        names += path if isinstance(path, list) else [path]
    return [name for name in names if isinstance(name, str) and not look_up(name, at.data)[0]]


def _missing_some(operands: list[Any], at: _Scope) -> list[str]:
    needed, names = _value(operands[0], at), _value(operands[1], at)
    missing = [name for name in names if not look_up(name, at.data)[0]]
    return [] if len(names) - len(missing) >= needed else missing


def _if(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    while len(operands) > 1:
        if _truth(_value(operands[0], at)):
            return _value(operands[1], at)
        operands = operands[2:]
    return _value(operands[0], at) if operands else None


def _and(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    value = None
    for operand in operands:
        value = _value(operand, at)
        if not _truth(value):
            break
    return value


def _or(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    value = None
    for operand in operands:
        value = _value(operand, at)
        if _truth(value):
            break
    return value


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[list[Any], _Scope], bool]:
    def two(a: Any, b: Any) -> bool:  # noqa: ANN401
        if isinstance(a, str) and isinstance(b, str):
            return holds(a, b)
        left, right = as_number(a), as_number(b)
        if "number" in (kind(a), kind(b)) and (math.isnan(left) or math.isnan(right)):
            raise Unanswerable
        return holds(left, right)

    return _chain(two)


def _chain(two: Callable[[Any, Any], bool]) -> Callable[[list[Any], _Scope], bool]:
    def chain(operands: list[Any], at: _Scope) -> bool:
        before = _value(operands[0], at)
        for operand in operands[1:]:
            after = _value(operand, at)
            if not two(before, after):
                return False
            before = after
        return True

    return chain


def _fold_numbers(step: Callable[[float, float], float], start: float) -> Callable[[list[Any], _Scope], float]:
    def compute(operands: list[Any], at: _Scope) -> float:
        values = [_value(operand, at) for operand in operands]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        total = start
        for value in values:
            total = step(total, require_number(value))
        return total

    return compute


def _minus(operands: list[Any], at: _Scope) -> float:
    values = [_value(operand, at) for operand in operands]
    if len(values) == 1 and not isinstance(values[0], list):
        return -require_number(values[0])
    numbers = [require_number(value) for value in (values[0] if len(values) == 1 else values)]
    if not numbers:
        raise Unanswerable
    return numbers[0] - sum(numbers[1:])


def _divide(operands: list[Any], at: _Scope) -> float:
    number, by = (require_number(_value(part, at)) for part in operands)
    if by == 0:
        raise Unanswerable
    return number / by


def _modulo(operands: list[Any], at: _Scope) -> float:
    number, by = (require_number(_value(part, at)) for part in operands)
    if by == 0:
        raise Unanswerable
    return math.fmod(number, by)


def _choose(best: Callable[[list[Any]], Any]) -> Callable[[list[Any], _Scope], Any]:
    def choose(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
        values = [_value(operand, at) for operand in operands]
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        if not values or any(kind(value) != "number" for value in values):
            raise Unanswerable
        return best(values)

    return choose


def _in(operands: list[Any], at: _Scope) -> bool:
    needle, hay = (_value(operand, at) for operand in operands)
    if isinstance(hay, str):
        return isinstance(needle, str) and needle in hay
    if not isinstance(hay, list | None):
        raise Unanswerable
    return any(strictly_equal(needle, element) for element in hay or ())


def _cat(operands: list[Any], at: _Scope) -> str:
    return "".join(text_of(_value(operand, at)) for operand in operands)


def _substr(operands: list[Any], at: _Scope) -> str:
    text, start, *length = (_value(operand, at) for operand in operands)
    text = text_of(text)
    start = max(0, start + len(text)) if start < 0 else start
    if not length:
        return text[start:]
    return text[start : start + length[0]] if length[0] >= 0 else text[start : len(text) + length[0]]


def _merge(operands: list[Any], at: _Scope) -> list[Any]:
    merged: list[Any] = []
    for value in (_value(operand, at) for operand in operands):
        merged += value if isinstance(value, list) else [value]
    return [part for part in merged if part is not None]


def _elements(operands: Any, at: _Scope) -> tuple[str, list[Any]]:  # noqa: ANN401
    """The name of an element of the list of a loop, and the elements. Null has none."""
    value = _value(operands, at)
    if value is not None and not isinstance(value, list):
        raise Unanswerable
    return f"{_list_name(operands, at)}[]", value or []


def _list_name(expression: Any, at: _Scope) -> str:  # noqa: ANN401
    """The name of a list: a filtered list keeps its name, a computed one has none."""
    if not isinstance(expression, dict):
        return ""
    ((operator, operands),) = expression.items()
    first = (operands or [None])[0] if isinstance(operands, list) else operands
    if operator == "filter":
        return _list_name(first, at)
    return at.name_of("" if first is None else str(first)) if operator == "var" else ""


def _each(operands: list[Any], at: _Scope) -> Iterator[tuple[Any, Any]]:
    """Each element and the value of the body for it, lazily, so that the caller can stop."""
    name, values = _elements(operands[0], at)
    for value in values:
        yield value, _value(operands[1], _Scope(value, at.not_found, name))


def _map(operands: list[Any], at: _Scope) -> list[Any]:
    return [made for _, made in _each(operands, at)]


def _filter(operands: list[Any], at: _Scope) -> list[Any]:
    return [element for element, made in _each(operands, at) if _truth(made)]


def _some(operands: list[Any], at: _Scope) -> bool:
    return any(_truth(made) for _, made in _each(operands, at))


def _all(operands: list[Any], at: _Scope) -> bool:
    seen = [True]
    for _, made in _each(operands, at):
        seen.append(_truth(made))
        if not seen[-1]:
            break
    return len(seen) > 1 and seen[-1]


def _reduce(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    (name, values), total = _elements(operands[0], at), _value(operands[2] if len(operands) > 2 else None, at)
    for value in values:
        total = _value(operands[1], _Scope(value, at.not_found, name, so_far=[total]))
    return total


_OPERATORS: dict[str, Callable[[list[Any], _Scope], Any]] = {
    "var": _var,
    "missing": _missing,
    "missing_some": _missing_some,
    "if": _if,
    "?:": _if,
    "and": _and,
    "or": _or,
    "!": lambda operands, at: not _truth(_value(operands[0], at)),
    "!!": lambda operands, at: _truth(_value(operands[0], at)),
    "==": _chain(loosely_equal),
    "===": _chain(strictly_equal),
    "!=": lambda operands, at: not _chain(loosely_equal)(operands, at),
    "!==": lambda operands, at: not _chain(strictly_equal)(operands, at),
    "<": _compare(lambda a, b: a < b),
    "<=": _compare(lambda a, b: a <= b),
    ">": _compare(lambda a, b: a > b),
    ">=": _compare(lambda a, b: a >= b),
    "max": _choose(max),
    "min": _choose(min),
    "+": _fold_numbers(lambda a, b: a + b, 0),
    "*": _fold_numbers(lambda a, b: a * b, 1),
    "-": _minus,
    "/": _divide,
    "%": _modulo,
    "map": _map,
    "filter": _filter,
    "reduce": _reduce,
    "all": _all,
    "some": _some,
    "none": lambda operands, at: not _some(operands, at),
    "merge": _merge,
    "in": _in,
    "cat": _cat,
    "substr": _substr,
}
