"""A second JSONLogic: plain Python, slow, one function per operator, no code shared with the first.

It is written from docs/policy.md. What is an error there is `Unanswerable` here, and `NullMet` where null is the cause.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.oracle_values import (
    NullMet,
    Unanswerable,
    are_equal,
    exact,
    needle_in,
    numbers,
    ordered,
    text_of,
    truth,
)

__all__ = ["NullMet", "Unanswerable", "evaluate", "literal_paths", "look_up"]


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
    ((name, argument),) = expression.items()
    return _OPERATORS[name](argument if isinstance(argument, list) else [argument], at)


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
    ((name, argument),) = expression.items()
    operands = argument if isinstance(argument, list) else [argument]
    if name == "var" and operands and isinstance(operands[0], str) and not _has_default(operands):
        return {operands[0]} - {""}
    if name in {"map", "filter", "reduce", "all", "none", "some"}:
        operands = [operand for n, operand in enumerate(operands) if n != 1]
    return literal_paths(operands)


def _has_default(operands: list[Any]) -> bool:
    return len(operands) > 1 and operands[1] is not None


def _var(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    name = _value(operands[0], at) if operands else ""
    path = "" if name is None else str(name)
    start, way = at.resolve(path)
    is_present, value = look_up(way, start)
    if _has_default(operands):
        return value if is_present else _value(operands[1], at)
    if value is None and at.name_of(path) and (at.of or isinstance(operands[0], str)):
        at.not_found.add(at.name_of(path))
    return value


def _absent(names: list[Any], at: _Scope) -> list[str]:
    """The names of what is absent, null or an empty text."""
    if not all(isinstance(name, str) for name in names):
        raise Unanswerable
    return [name for name in names if _seen(name, at) in (None, "")]


def _seen(name: str, at: _Scope) -> Any:  # noqa: ANN401
    start, way = at.resolve(name)
    return look_up(way, start)[1]


def _missing(operands: list[Any], at: _Scope) -> list[str]:
    return _absent(operands[0] if len(operands) == 1 and isinstance(operands[0], list) else operands, at)


def _missing_some(operands: list[Any], at: _Scope) -> list[str]:
    needed, names = operands
    missing = _absent(names, at)
    return [] if len(names) - len(missing) >= needed else missing


def _if(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    while len(operands) > 1:
        if truth(_value(operands[0], at)):
            return _value(operands[1], at)
        operands = operands[2:]
    return _value(operands[0], at) if operands else None


def _and(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    value = None
    for operand in operands:
        value = _value(operand, at)
        if not truth(value):
            break
    return value


def _or(operands: list[Any], at: _Scope) -> Any:  # noqa: ANN401
    value = None
    for operand in operands:
        value = _value(operand, at)
        if truth(value):
            break
    return value


def _values(operands: list[Any], at: _Scope) -> list[Any]:
    return [_value(operand, at) for operand in operands]


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[list[Any], _Scope], bool]:
    def compare(operands: list[Any], at: _Scope) -> bool:
        return all(itertools.starmap(holds, itertools.pairwise(ordered(_values(operands, at)))))

    return compare


def _equal(*, may_differ_in_kind: bool, negated: bool) -> Callable[[list[Any], _Scope], bool]:
    def compare(operands: list[Any], at: _Scope) -> bool:
        a, b = _values(operands, at)
        return are_equal(a, b, may_differ_in_kind=may_differ_in_kind) is not negated

    return compare


def _compute(step: Callable[[float, float], float]) -> Callable[[list[Any], _Scope], float]:
    """Fold numbers from the left. Each result is exact, and nothing is divided by 0."""

    def compute(operands: list[Any], at: _Scope) -> float:
        return functools.reduce(lambda total, number: exact(step(total, number)), numbers(_values(operands, at)))

    return compute


def _minus(operands: list[Any], at: _Scope) -> float:
    values = numbers(_values(operands, at))
    return -values[0] if len(values) == 1 else exact(values[0] - values[1])


def _choose(best: Callable[[Any], Any]) -> Callable[[list[Any], _Scope], Any]:
    return lambda operands, at: best(numbers(_values(operands, at)))


def _modulo(number: float, by: float) -> float:
    if by == 0:
        raise Unanswerable
    return math.fmod(number, by)


def _in(operands: list[Any], at: _Scope) -> bool:
    needle, place = _values(operands, at)
    return needle_in(needle, place)


def _cat(operands: list[Any], at: _Scope) -> str:
    return "".join(text_of(_value(operand, at)) for operand in operands)


def _substr(operands: list[Any], at: _Scope) -> str:
    text, start, *length = _values(operands, at)
    if not isinstance(text, str):
        raise NullMet if text is None else Unanswerable
    rest = text[max(0, start + len(text)) if start < 0 else start :]
    if not length:
        return rest
    return rest[: length[0]] if length[0] >= 0 else rest[: max(0, len(rest) + length[0])]


def _merge(operands: list[Any], at: _Scope) -> list[Any]:
    merged: list[Any] = []
    for value in _values(operands, at):
        merged += value if isinstance(value, list) else [value]
    return merged


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
    ((name, operands),) = expression.items()
    first = (operands or [None])[0] if isinstance(operands, list) else operands
    if name == "filter":
        return _list_name(first, at)
    return at.name_of("" if first is None else str(first)) if name == "var" else ""


def _each(operands: list[Any], at: _Scope) -> Iterator[tuple[Any, Any]]:
    """Each element and the value of the body for it, lazily, so that the caller can stop."""
    name, values = _elements(operands[0], at)
    for value in values:
        yield value, _value(operands[1], _Scope(value, at.not_found, name))


def _map(operands: list[Any], at: _Scope) -> list[Any]:
    return [made for _, made in _each(operands, at)]


def _filter(operands: list[Any], at: _Scope) -> list[Any]:
    return [element for element, made in _each(operands, at) if truth(made)]


def _some(operands: list[Any], at: _Scope) -> bool:
    return any(truth(made) for _, made in _each(operands, at))


def _all(operands: list[Any], at: _Scope) -> bool:
    seen = [True]
    for _, made in _each(operands, at):
        seen.append(truth(made))
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
    "!": lambda operands, at: not truth(_value(operands[0], at)),
    "!!": lambda operands, at: truth(_value(operands[0], at)),
    "==": _equal(may_differ_in_kind=False, negated=False),
    "===": _equal(may_differ_in_kind=True, negated=False),
    "!=": _equal(may_differ_in_kind=False, negated=True),
    "!==": _equal(may_differ_in_kind=True, negated=True),
    "<": _compare(operator.lt),
    "<=": _compare(operator.le),
    ">": _compare(operator.gt),
    ">=": _compare(operator.ge),
    "max": _choose(max),
    "min": _choose(min),
    "+": _compute(operator.add),
    "*": _compute(operator.mul),
    "-": _minus,
    "/": _compute(operator.truediv),
    "%": _compute(_modulo),
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
