"""JSONLogic with a fence around it: a closed set of operators, bounded in size, depth and work. Pure.

No operator reads a clock or draws a lot, so the same expression over the same facts always gives the same verdict. An
expression that cannot be evaluated is an error and never a false: who asks decides what an error means.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar

import datalogic_py

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value
from contextplane.policy.logic.strict import COMPARING, INTERNAL_FAMILIES, OPERATORS, PER_ELEMENT, strict

__all__ = [
    "DEEPEST",
    "LARGEST",
    "Expression",
    "LogicFailed",
    "LogicProblem",
    "compiled",
    "computed_names",
    "engine",
    "examined",
    "logic_problems",
    "variables",
]

_JOINING = frozenset({"and", "or"})
_SIMPLE_DEPTH, _SIMPLE_WIDTH = 3, 8
"""So deep and so wide, an expression is within the fence."""

DEEPEST = 32
LARGEST = 2_000
_BUDGET = 100_000
_EXACT = 2**53 - 1
"""No number beyond is told apart from its neighbours, nor written the same way everywhere."""


class LogicFailed(ContextPlaneError):
    """An expression that could not be evaluated over these facts: a wrong type, or more work than is allowed."""

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
        """Whether it is true of these facts, as JSONLogic takes truth; `LogicFailed` where its strict form fails."""
        try:
            result, _ = self._rule.evaluate_metered(facts, budget=_BUDGET)
        except datalogic_py.DataLogicError as error:
            raise LogicFailed(f"cannot be evaluated: {error.error_type}", hint="simplify the expression") from error
        return result == "true"


def compiled(expression: Json) -> Expression:
    """Compile an expression that has no problems; `LogicFailed` names the first that it has."""
    for problem in logic_problems(expression):
        raise LogicFailed(problem.message, at=problem.at)
    return Expression(engine().compile({"!!": [strict(expression)]}))


def examined(expression: Json) -> tuple[bool, tuple[LogicProblem, ...], frozenset[str]]:
    """Whether it only compares facts with constants; its problems, of which it has none then; the facts it reads."""
    reads: set[str] = set()
    if _simple(expression, reads):
        return True, (), frozenset(reads)
    return False, logic_problems(expression), variables(expression)


def logic_problems(expression: Json) -> tuple[LogicProblem, ...]:
    """Everything that keeps an expression from being evaluated the same way everywhere."""
    if _simple(expression, set()):
        return ()
    if _is_within(expression, 1) <= LARGEST:
        return _checked_by_engine(expression)
    problems: list[LogicProblem] = []
    for nodes, (at, value, depth) in enumerate(_walk(expression), start=1):
        if depth > DEEPEST:
            problems.append(LogicProblem(at=at, message=f"is nested more than {DEEPEST} deep"))
        elif isinstance(value, dict) and len(value) != 1:
            problems.append(LogicProblem(at=at, message=f"must have one operator, not {len(value)} keys"))
        elif isinstance(value, dict) and (name := next(iter(value))) not in OPERATORS:
            problems.append(LogicProblem(at=at + pointer([name]), message=f"uses {name[:40]!r}, which is no operator"))
        elif _is_inexact(value):
            problems.append(LogicProblem(at=at, message="holds a number beyond 2^53-1, which is not exact"))
        if nodes > LARGEST:
            problems.append(LogicProblem(at="", message=f"has more than {LARGEST} parts"))
            break
    return tuple(problems) or _checked_by_engine(expression)


def _simple(expression: Json, reads: set[str], depth: int = 1) -> bool:
    """Whether it is of the form that most conditions have, in which nothing can be wrong. Adds the facts that it reads.

    Of that form are facts that are compared with constants, joined by `and` and `or`.
    """
    if type(expression) is not dict or len(expression) != 1:
        return False
    [(operator, operands)] = expression.items()
    if type(operands) is not list or len(operands) < 2:  # noqa: PLR2004  one on either side
        return False
    if operator in _JOINING:
        few = depth < _SIMPLE_DEPTH and len(operands) <= _SIMPLE_WIDTH
        return few and all(_simple(operand, reads, depth + 1) for operand in operands)
    if operator not in COMPARING or len(operands) > 2:  # noqa: PLR2004
        return False
    fact, constant = operands
    if type(fact) is not dict or len(fact) != 1 or type(path := fact.get("var")) is not str:
        return False
    reads.add(path)
    return type(constant) is str or type(constant) is bool or (type(constant) is int and -_EXACT <= constant <= _EXACT)


def _is_within(value: Json, depth: int) -> int:
    """How many parts an expression has that is within the fence; more than are allowed when it is not."""
    if isinstance(value, dict):
        if len(value) != 1 or depth > DEEPEST or next(iter(value)) not in OPERATORS:
            return LARGEST + 1
        return 1 + sum(_is_within(one, depth + 1) for one in value.values())
    if isinstance(value, list):
        return 1 + sum(1 if isinstance(one, str) else _is_within(one, depth) for one in value)
    return 1 if depth <= DEEPEST and not _is_inexact(value) else LARGEST + 1


def _is_inexact(value: Json) -> bool:
    return isinstance(value, int | float) and not -_EXACT <= value <= _EXACT


def variables(expression: Json) -> frozenset[str]:
    """The paths of the facts that it reads; of a computed path, nothing is known and nothing told.

    What `map` and its like do with each element reads that element, and no fact.
    """
    found: set[str] = set()
    if _simple(expression, found):
        return frozenset(found)
    found.clear()
    todo: list[tuple[Json, int]] = [(expression, 1)]
    while todo:
        value, depth = todo.pop()
        if depth > DEEPEST:
            continue
        if isinstance(value, list):
            todo += [(one, depth) for one in value]
        elif isinstance(value, dict):
            for name, given in value.items():
                operands = given if isinstance(given, list) else [given]
                found.update(_named(name, operands))
                if name in PER_ELEMENT:
                    operands = operands[:1] + operands[2:]
                todo += [(operand, depth + 1) for operand in operands]
    return frozenset(found)


def computed_names(expression: Json) -> Iterator[str]:
    """The places where the name of what is read is itself computed: nobody sees when such a fact is missing."""
    return iter(()) if _simple(expression, set()) else _computed_names(expression, "")


def _computed_names(expression: Json, at: str) -> Iterator[str]:
    if isinstance(expression, list):
        for n, one in enumerate(expression):
            yield from _computed_names(one, f"{at}/{n}")
    elif isinstance(expression, dict):
        for operator, given in expression.items():
            place = at + pointer([operator])
            name = given[0] if isinstance(given, list) and given else None if given == [] else given
            if operator == "var" and not (name is None or type(name) in {str, int}):
                yield place
            yield from _computed_names(given, place)


def _named(operator: str, operands: Sequence[Json]) -> Iterator[str]:
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
    """Every part with its place, no deeper than one below what is allowed."""
    todo: list[tuple[str, Json, int]] = [("", expression, 1)]
    while todo:
        at, value, depth = todo.pop()
        yield at, value, depth
        if depth > DEEPEST:
            continue
        if isinstance(value, dict):
            todo += [(at + pointer([key]), one, depth + 1) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(f"{at}/{n}", one, depth) for n, one in reversed(list(enumerate(value)))]


def _checked_by_engine(expression: Json) -> tuple[LogicProblem, ...]:
    found = engine().check(expression)
    return tuple(LogicProblem(at=one["pointer"], message=one["message"]) for one in found if one["severity"] == "error")


@cache
def engine() -> datalogic_py.Engine:
    """The one engine that compiles and evaluates, with the operators of the public suite and those of strict forms."""
    # A text that is no number is not equal to one, as the public suite has it; the engine's default calls it an error.
    # What is divided by nothing has no value; the engine's default is a huge one.
    # A text with nothing in it is no number; the engine's default is 0, and a field left empty would be a small one.
    # True and false are no numbers to reckon with; the engine's defaults are 1 and 0.
    config = {
        "loose_equality_errors": False,
        "division_by_zero": "throw_error",
        "numeric_coercion": {"empty_string_to_zero": False, "bool_to_number": False},
    }
    return datalogic_py.Engine(families=["Core", *INTERNAL_FAMILIES], config=config)
