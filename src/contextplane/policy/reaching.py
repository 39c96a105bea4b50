"""Whether the evaluation of a condition comes to read a fact, as a condition itself. Pure.

`and`, `or` and `if` stop when their answer is clear, so what stands after is not always read. All other operators read
all of their operands.
"""

from collections.abc import Iterator, Sequence

from contextplane.model.canonical import Json
from contextplane.policy.operators import PER_ELEMENT, operation

__all__ = ["nothing_missed", "plain_paths", "reach"]

_MANY = 64
"""Of an `and`, an `or` or an `if` with more parts than this, every part is taken to be read."""


def plain_paths(expression: Json) -> Iterator[str]:
    """The paths of variables without a default. What a loop does with an element reads that element, and no fact."""
    if isinstance(expression, list):
        for one in expression:
            yield from plain_paths(one)
    elif isinstance(expression, dict):
        operator, operands = operation(expression)
        if operator == "var" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            yield operands[0]
        else:
            yield from plain_paths(_outside_loops(operator, operands))


def reach(expression: Json, path: str) -> Json:
    """An expression that holds exactly when evaluating this one reads the fact at this path; or true, or false.

    It evaluates nothing that this one does not evaluate, and in the same order: where this one has a value, so has it.
    """
    if isinstance(expression, list):
        return _either([reach(one, path) for one in expression])
    if not isinstance(expression, dict):
        return False
    operator, operands = operation(expression)
    if operator == "var":
        return _of_variable(operands, path)
    if operator in {"and", "or"} and len(operands) <= _MANY:
        return _until_clear(operator, operands, path)
    if operator in {"if", "?:"} and len(operands) <= _MANY:
        return _of_choice(operands, path)
    return _either([reach(one, path) for one in _outside_loops(operator, operands)])


def nothing_missed(expression: Json) -> Iterator[Json]:
    """Expressions that all hold exactly where this one comes to read no fact that is missing."""
    for path in sorted(set(plain_paths(expression))):
        yield {"!": [_both([reach(expression, path), {"===": [{"var": path}, None]}])]}


def _outside_loops(operator: str, operands: list[Json]) -> list[Json]:
    return [one for n, one in enumerate(operands) if n != 1 or operator not in PER_ELEMENT]


def _of_variable(operands: list[Json], path: str) -> Json:
    """A default is evaluated when there is nothing at the path."""
    if operands == [path]:
        return True
    asked = reach(operands[:1], path)
    default = reach(operands[1:], path)
    return _either([asked, _both([{"!!": [{"missing": operands[:1]}]}, default])])


def _until_clear(operator: str, operands: list[Json], path: str) -> Json:
    ways: list[Json] = []
    passed: list[Json] = []
    for one in operands:
        here = reach(one, path)
        ways.append(_both([*passed, here]))
        if here is True:
            break  # whoever comes further came past here
        passed.append({"!!": [one]} if operator == "and" else {"!": [one]})
    return _either(ways)


def _of_choice(operands: list[Json], path: str) -> Json:
    if len(operands) < 2:  # noqa: PLR2004
        return reach(operands, path)
    asked, then, *others = operands
    first, chosen, other = reach(asked, path), reach(then, path), _of_choice(others, path)
    if first is True or (chosen is False and other is False):
        return first
    return _either([first, {"if": [asked, chosen, other]}])


def _either(parts: Sequence[Json]) -> Json:
    told = [one for one in parts if one is not False]
    if not told or any(one is True for one in told):
        return bool(told)
    return told[0] if len(told) == 1 else {"or": told}


def _both(parts: Sequence[Json]) -> Json:
    told = [one for one in parts if one is not True]
    if not told or any(one is False for one in told):
        return not told
    return told[0] if len(told) == 1 else {"and": told}
