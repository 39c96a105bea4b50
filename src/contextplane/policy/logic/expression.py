"""JSONLogic with limits: a closed set of operators, bounded in size, depth and work. Pure.

No operator reads a clock or a random number, so the same expression over the same facts always gives the same result.
An expression that cannot be evaluated is an error and never false: the caller decides what an error means.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import ClassVar, TypeGuard

import datalogic_py

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value
from contextplane.policy.logic.strict import (
    ARITY,
    COMPARISONS,
    INTERNAL_FAMILIES,
    OPERATORS,
    PER_ELEMENT,
    literal_names,
    strict_form,
)

__all__ = [
    "MAX_LOGIC_DEPTH",
    "MAX_LOGIC_PARTS",
    "Comparison",
    "Expression",
    "LogicFailed",
    "LogicProblem",
    "compile_expression",
    "computed_names",
    "engine",
    "is_number",
    "logic_problems",
    "simple_comparisons",
    "variables",
]

_JOINING = frozenset({"and", "or"})
_ABSENCES = frozenset({"missing", "missing_some"})
_REDUCE_NAMES = frozenset({"current", "accumulator"})
_SIMPLE_DEPTH, _SIMPLE_WIDTH = 3, 8
"""An expression up to this depth and width is within all limits."""

MAX_LOGIC_DEPTH = 32
MAX_LOGIC_PARTS = 2_000
_BUDGET = 100_000
_EXACT = 2**53 - 1
"""Integers beyond this are not exact in every program."""

_ODD_INDEX = re.compile(r"(?:^|\.)(?:\+[0-9]|0[0-9])")
"""A step like `00` or `+1`: the engine takes it for the number of an element, other programs do not."""


Comparison = tuple[str, str, Json]
"""A fact, an operator, and the constant that the fact is compared with."""


class LogicFailed(ContextPlaneError):
    """An expression that could not be evaluated over these facts.

    A wrong type, or more work than is allowed.
    """

    code: ClassVar[str] = "logic_failed"
    family: ClassVar[Family] = "refused"


class LogicProblem(Value, frozen=True):
    """What is wrong with an expression, and where in it, as a JSON Pointer."""

    at: str
    message: str


class Expression:
    """A compiled expression."""

    def __init__(self, rule: datalogic_py.Rule) -> None:
        self._rule = rule

    def holds(self, facts: Mapping[str, Json]) -> bool:
        """Whether the expression is true for these facts, as an operand of `and` would be.

        `LogicFailed` where it cannot be evaluated.
        """
        try:
            result, _ = self._rule.evaluate_metered(facts, budget=_BUDGET)
        except datalogic_py.DataLogicError as error:
            raise LogicFailed(f"cannot be evaluated: {error.error_type}", hint="simplify the expression") from error
        return result == "true"


def compile_expression(expression: Json) -> Expression:
    """Compile an expression. `LogicFailed` names its first problem, if it has one."""
    for problem in logic_problems(expression):
        raise LogicFailed(problem.message, at=problem.at)
    return Expression(engine().compile(strict_form({"!!": [expression]})))


def is_number(value: Json) -> TypeGuard[float]:
    """Whether a value is a number: true and false are none, although Python takes them for 1 and 0."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def simple_comparisons(expression: Json) -> list[Comparison] | None:
    """The comparisons of a fact with a constant that an expression is made of, joined by `and` and `or`.

    Such an expression has no problems. None: it has another form.
    """
    comparisons: list[Comparison] = []
    return comparisons if _is_simple(expression, comparisons) else None


def logic_problems(expression: Json) -> tuple[LogicProblem, ...]:
    """Everything that keeps an expression from being evaluated the same way everywhere."""
    if _is_simple(expression, []):
        return ()
    if _count_parts(expression, 1) <= MAX_LOGIC_PARTS:
        return tuple(_operand_problems(expression, "")) or _engine_problems(expression)
    problems: list[LogicProblem] = []
    for nodes, (at, value, depth) in enumerate(_walk(expression), start=1):
        if depth > MAX_LOGIC_DEPTH:
            problems.append(LogicProblem(at=at, message=f"is nested more than {MAX_LOGIC_DEPTH} deep"))
        elif isinstance(value, dict) and len(value) != 1:
            problems.append(LogicProblem(at=at, message=f"must have one operator, not {len(value)} keys"))
        elif isinstance(value, dict) and (name := next(iter(value))) not in OPERATORS:
            problems.append(LogicProblem(at=at + pointer([name]), message=f"uses {name[:40]!r}, which is no operator"))
        elif _is_inexact(value):
            problems.append(LogicProblem(at=at, message="holds a number beyond 2^53-1, which is not exact"))
        if nodes > MAX_LOGIC_PARTS:
            problems.append(LogicProblem(at="", message=f"has more than {MAX_LOGIC_PARTS} parts"))
            break
    return tuple(problems) or tuple(_operand_problems(expression, "")) or _engine_problems(expression)


def _operand_problems(expression: Json, at: str, *, reduced: bool = False) -> Iterator[LogicProblem]:
    """Operands that other programs take for something else, or ignore.

    `reduced`: the expression stands in the body of a `reduce`.
    """
    if isinstance(expression, list):
        for n, part in enumerate(expression):
            yield from _operand_problems(part, f"{at}/{n}", reduced=reduced)
    elif isinstance(expression, dict):
        [(operator, argument)] = expression.items()
        operands: list[Json] = argument if isinstance(argument, list) else [argument]
        message = _operand_problem(operator, operands, reduced=reduced)
        if message:
            yield LogicProblem(at=at, message=message)
        place = at + pointer([operator])
        for n, operand in enumerate(operands):
            below = f"{place}/{n}" if isinstance(argument, list) else place
            inner = operator == "reduce" if operator in PER_ELEMENT and n == 1 else reduced
            yield from _operand_problems(operand, below, reduced=inner)


def _operand_problem(operator: str, operands: list[Json], *, reduced: bool) -> str:
    least, most = ARITY[operator]
    if len(operands) < least or (most is not None and len(operands) > most):
        return f"has {len(operands)} operands of {operator}, which takes {_span(least, most)}"
    if operator == "substr" and not all(type(place) is int for place in operands[1:]):
        return "computes where substr cuts: its start and its length must be whole numbers"
    names: Sequence[Json] = operands[:1] if operator == "var" else ()
    if operator in _ABSENCES:
        names = literal_names(operator, operands) or ()
        if operator == "missing_some" and type(operands[0]) is not int:
            return "computes how many facts missing_some needs"
    for name in names or ([None] if operator == "var" else ()):
        if isinstance(name, str) and _ODD_INDEX.search(name):
            return f"names an element of a list by {name[:40]!r}: write its number without a sign or a leading zero"
        if reduced and not isinstance(name, dict | list) and str(name).partition(".")[0] not in _REDUCE_NAMES:
            return "reads another name than current and accumulator in reduce"
    return ""


def _span(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _is_simple(expression: Json, comparisons: list[Comparison], depth: int = 1) -> bool:
    """Whether an expression has the common form that cannot have a problem. Adds its comparisons.

    That form: comparisons of a fact with a constant, joined by `and` and `or`.
    """
    if type(expression) is not dict or len(expression) != 1:
        return False
    [(operator, operands)] = expression.items()
    if type(operands) is not list or len(operands) < 2:  # noqa: PLR2004  one on either side
        return False
    if operator in _JOINING:
        few = depth < _SIMPLE_DEPTH and len(operands) <= _SIMPLE_WIDTH
        return few and all([_is_simple(operand, comparisons, depth + 1) for operand in operands])  # noqa: C419  a list is faster
    if operator not in COMPARISONS or len(operands) > 2:  # noqa: PLR2004
        return False
    fact, constant = operands
    if type(fact) is not dict or len(fact) != 1 or type(path := fact.get("var")) is not str:
        return False
    comparisons.append((path, operator, constant))
    is_constant = (
        type(constant) is str or type(constant) is bool or (type(constant) is int and -_EXACT <= constant <= _EXACT)
    )
    return is_constant and not (("0" in path or "+" in path) and _ODD_INDEX.search(path))


def _count_parts(value: Json, depth: int) -> int:
    """The number of parts of an expression; more than allowed when it breaks another limit."""
    if isinstance(value, dict):
        if len(value) != 1 or depth > MAX_LOGIC_DEPTH or next(iter(value)) not in OPERATORS:
            return MAX_LOGIC_PARTS + 1
        return 1 + sum(_count_parts(part, depth + 1) for part in value.values())
    if isinstance(value, list):
        return 1 + sum(1 if isinstance(part, str) else _count_parts(part, depth) for part in value)
    return 1 if depth <= MAX_LOGIC_DEPTH and not _is_inexact(value) else MAX_LOGIC_PARTS + 1


def _is_inexact(value: Json) -> bool:
    return isinstance(value, int | float) and not -_EXACT <= value <= _EXACT


def variables(expression: Json) -> frozenset[str]:
    """The paths of the facts that an expression reads. Computed paths are not included.

    The body of `map` and its like reads elements, and no facts.
    """
    comparisons = simple_comparisons(expression)
    if comparisons is not None:
        return frozenset([path for path, _, _ in comparisons])
    paths: set[str] = set()
    todo: list[tuple[Json, int]] = [(expression, 1)]
    while todo:
        value, depth = todo.pop()
        if depth > MAX_LOGIC_DEPTH:
            continue
        if isinstance(value, list):
            todo += [(part, depth) for part in value]
        elif isinstance(value, dict):
            for name, argument in value.items():
                operands = argument if isinstance(argument, list) else [argument]
                paths.update(_named_paths(name, operands))
                if name in PER_ELEMENT:
                    operands = operands[:1] + operands[2:]
                todo += [(operand, depth + 1) for operand in operands]
    return frozenset(paths)


def computed_names(expression: Json) -> Iterator[str]:
    """The places where the name of a fact is itself computed: a missing fact could not be noticed there."""
    return iter(()) if _is_simple(expression, []) else _computed_names(expression, "")


def _computed_names(expression: Json, at: str) -> Iterator[str]:
    if isinstance(expression, list):
        for n, part in enumerate(expression):
            yield from _computed_names(part, f"{at}/{n}")
    elif isinstance(expression, dict):
        for operator, argument in expression.items():
            place = at + pointer([operator])
            operands = argument if isinstance(argument, list) else [argument]
            is_computed = operator == "var" and any(type(name) not in {str, int, NoneType} for name in operands[:1])
            if is_computed or (operator in _ABSENCES and literal_names(operator, operands) is None):
                yield place
            yield from _computed_names(argument, place)


def _named_paths(operator: str, operands: Sequence[Json]) -> Iterator[str]:
    """The paths that the operands of one operator name themselves."""
    if operator == "var":
        operands = operands[:1] if operands and operands[0] is not None else [""]
    elif operator == "missing_some":
        operands = operands[1:]
    elif operator != "missing":
        return
    for operand in operands:
        yield from (path for path in (operand if isinstance(operand, list) else [operand]) if isinstance(path, str))


def _walk(expression: Json) -> Iterator[tuple[str, Json, int]]:
    """Every part with its place, down to one level below the allowed depth."""
    todo: list[tuple[str, Json, int]] = [("", expression, 1)]
    while todo:
        at, value, depth = todo.pop()
        yield at, value, depth
        if depth > MAX_LOGIC_DEPTH:
            continue
        if isinstance(value, dict):
            todo += [(at + pointer([key]), part, depth + 1) for key, part in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(f"{at}/{n}", part, depth) for n, part in reversed(list(enumerate(value)))]


def _engine_problems(expression: Json) -> tuple[LogicProblem, ...]:
    diagnostics = engine().check(expression)
    return tuple(
        LogicProblem(at=diagnostic["pointer"], message=diagnostic["message"])
        for diagnostic in diagnostics
        if diagnostic["severity"] == "error"
    )


@cache
def engine() -> datalogic_py.Engine:
    """The one engine, with the operators of the public suite and those of strict forms."""
    # A text that is no number is not equal to one, as the public suite has it; the engine's default calls it an error.
    # Division by zero has no value; the engine's default is a huge number.
    # An empty text is no number; the engine's default is 0, and an empty field would be a small amount.
    # True and false are no numbers; the engine's defaults are 1 and 0.
    config = {
        "loose_equality_errors": False,
        "division_by_zero": "throw_error",
        "numeric_coercion": {"empty_string_to_zero": False, "bool_to_number": False},
    }
    return datalogic_py.Engine(families=["Core", *INTERNAL_FAMILIES], config=config)
