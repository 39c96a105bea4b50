"""Whether expressions can hold together: by diagrams of all cases, and by trying facts. Pure.

"no" is a proof: the diagram of the expressions covers every request. "yes" comes with facts that show it. Where an
expression computes, goes through a list or compares two facts, a diagram may leave open what cannot happen. Then the
facts that its constants suggest are tried, and if none will do, the answer is "unknown". An expression that cannot be
evaluated, or has no answer, neither holds nor does not hold.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.clock import CLOCK_FACTS, CLOCK_NUMBERS
from contextplane.policy.logic.diagram import Diagrams, DiagramTooLarge, truth_of
from contextplane.policy.logic.expression import (
    Comparison,
    Expression,
    LogicFailed,
    compile_expression,
    is_number,
    variables,
)
from contextplane.policy.logic.strict import COMPARISONS, ORDERINGS, operation, reads_without_default
from contextplane.policy.logic.value_classes import HUGE, facts_of, numbers_around

__all__ = [
    "Answer",
    "Outcome",
    "Solution",
    "VariableUses",
    "are_clearly_contingent",
    "can_be",
    "implies",
    "is_clearly_contingent",
    "path_of",
    "solve",
    "solve_outcomes",
]

# --- The values worth trying for a variable ---

_EQUAL = frozenset({"==", "===", "!=", "!=="})
_OTHER_TEXT = "\u0001other"
_NEXT = "\0"
"""Appended to a text it gives its direct successor in order."""

_DECIDING = frozenset({"and", "or", "!", "!!", "if", "?:"})


class VariableUses:
    """The variables of some expressions, and the constants that each of them is compared with."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self._constants: dict[str, list[Json]] = {}

    def add(self, expression: Json) -> None:
        """Add an expression in a place where only its truth counts."""
        operator, operands = operation(expression)
        if not operator:
            if isinstance(expression, dict | list):
                self._give_up([expression])
        elif operator == "var":
            self._meet(expression, (True, False))
        elif operator in _DECIDING:
            for operand in operands:
                self.add(operand)
        elif operator in COMPARISONS:
            self._compare(operands)
        elif operator == "in" and len(operands) == 2:  # noqa: PLR2004
            self._within(operands[0], operands[1])
        elif operator == "missing" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            self._meet({"var": operands[0]}, ())
        else:
            self._give_up([expression])

    def candidates(self, path: str) -> list[Json]:
        """The values most likely to make a difference, where not everything can be tried."""
        if path in CLOCK_NUMBERS:
            return [None, *CLOCK_NUMBERS[path]]
        constants = self._constants[path]
        values = [*self._near_constants(path), None, ""]
        if any(isinstance(constant, str) for constant in constants) or not values[:-2]:
            values.append(_OTHER_TEXT)
        if any(isinstance(constant, bool) for constant in constants) or not values[:-2]:
            values += [True, False]
        return values

    def _near_constants(self, path: str) -> list[Json]:
        """The constants that a variable meets, and what lies beside and between them."""
        constants = self._constants[path]
        numbers = sorted({float(constant) for constant in constants if is_number(constant) and abs(constant) < HUGE})
        texts = sorted({constant for constant in constants if isinstance(constant, str) and constant})
        return [*numbers_around(numbers), *(text for constant in texts for text in (constant, constant + _NEXT))]

    def _compare(self, operands: list[Json]) -> None:
        constants = [operand for operand in operands if not isinstance(operand, dict | list)]
        for operand in operands:
            if path_of(operand) is not None:
                self._meet(operand, constants)
            elif isinstance(operand, dict | list):
                # The constants it is compared with are still worth trying.
                self._give_up([operand, *constants])

    def _within(self, needle: Json, haystack: Json) -> None:
        if (
            path_of(needle) is not None
            and isinstance(haystack, list)
            and not any(isinstance(element, dict | list) for element in haystack)
        ):
            self._meet(needle, haystack)
        else:
            self._give_up([needle, haystack])

    def _meet(self, variable: Json, constants: Sequence[Json]) -> None:
        path = path_of(variable)
        if path is None:
            self._give_up([variable])
            return
        self.paths.add(path)
        self._constants.setdefault(path, []).extend(constants)

    def _give_up(self, operands: Sequence[Json]) -> None:
        """Note variables whose values are used in a way that is not analysed."""
        todo = list(operands)
        constants: list[Json] = [0]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                todo += node.values()
            elif isinstance(node, list):
                todo += node
            else:
                constants.append(node)
        for path in sorted(path for part in operands for path in variables(part) if path):
            self._meet({"var": path}, constants)


def path_of(value: Json) -> str | None:
    """The path of `{"var": "a.b"}`, else None: a default or a computed path is not analysed."""
    if type(value) is dict and len(value) == 1 and type(path := value.get("var")) is str:
        return path or None  # the common form, without further ado
    operator, operands = operation(value)
    if operator != "var" or not operands or not reads_without_default(operands):
        return None
    return operands[0] if isinstance(operands[0], str) and operands[0] else None


# --- Solving ---

MAX_TRIES = 500
"""The most facts that are tried for one question, where its diagram is not exact."""


Answer = Literal["yes", "no", "unknown"]

Goal = tuple[Json, bool]
"""An expression, and whether it should hold."""

Outcome = bool | None
"""It holds, it does not, or it cannot be evaluated."""

Demand = tuple[Json, frozenset[Outcome]]
"""An expression, and its acceptable outcomes."""


class Solution(Value, frozen=True):
    """`yes` with facts that show it, `no` as a proof, or `unknown`."""

    answer: Answer
    facts: dict[str, Json] = {}  # noqa: RUF012  msgspec copies it


def can_be(expression: Json, holds: bool) -> Answer:  # noqa: FBT001  it reads as a sentence
    """Whether an expression can be true, or false, as `holds` says."""
    return "yes" if is_clearly_contingent(expression) else solve([(expression, holds)]).answer


def is_clearly_contingent(expression: Json) -> bool:
    """Whether the form alone shows that an expression can be true and can be false.

    False proves nothing: most forms show nothing.
    """
    return _is_contingent(expression, set())


def _is_contingent(expression: Json, seen: set[str]) -> bool:
    """Whether each variable stands in one comparison that can be either."""
    operator, operands = operation(expression)
    if operator in {"and", "or", "!", "!!"} and operands:
        return all([_is_contingent(operand, seen) for operand in operands])  # noqa: C419  a list is faster
    if operator == "var":
        return _can_be_either(path_of(expression), operator, constant=True, seen=seen)
    if operator in COMPARISONS and len(operands) == 2:  # noqa: PLR2004
        return _can_be_either(path_of(operands[0]), operator, operands[1], seen)
    return False


def are_clearly_contingent(comparisons: Sequence[Comparison]) -> bool:
    """Whether comparisons that `and` and `or` join are an expression that is clearly contingent."""
    seen: set[str] = set()
    return all([_can_be_either(path, operator, constant, seen) for path, operator, constant in comparisons])  # noqa: C419  a list is faster


def _can_be_either(path: str | None, operator: str, constant: Json, seen: set[str]) -> bool:
    """Whether a comparison can be true and can be false. Adds the fact to those seen in other comparisons."""
    if not path or path in CLOCK_FACTS or (seen and _overlaps(path, seen)):
        return False
    seen.add(path)
    if isinstance(constant, str):
        return operator in _EQUAL or bool(constant)  # no text is before the empty one
    if isinstance(constant, bool):
        return operator not in ORDERINGS
    return isinstance(constant, int | float) and abs(constant) < HUGE


def _overlaps(path: str, seen: set[str]) -> bool:
    return path in seen or any([path.startswith(f"{other}.") or other.startswith(f"{path}.") for other in seen])  # noqa: C419  a list is faster


def solve(goals: Sequence[Goal]) -> Solution:
    """Search for facts for which every expression holds, or does not, as its goal says."""
    return solve_outcomes([(expression, frozenset[Outcome]({holds})) for expression, holds in goals])


def implies(premise: Goal, conclusion: Goal) -> bool:
    """Whether it is proven that the conclusion is met wherever the premise is.

    A conclusion that cannot be evaluated there is not met.
    """
    expression, holds = conclusion
    refuting = frozenset[Outcome]({not holds, None})
    return solve_outcomes([(premise[0], frozenset[Outcome]({premise[1]})), (expression, refuting)]).answer == "no"


def solve_outcomes(demands: Sequence[Demand]) -> Solution:
    """Search for facts for which every expression has one of its demanded outcomes."""
    try:
        diagrams = Diagrams([expression for expression, _ in demands])
        values = diagrams.find(
            [(root, _is_in(outcomes)) for root, (_, outcomes) in zip(diagrams.roots, demands, strict=True)]
        )
    except DiagramTooLarge:
        return _try_facts(demands, {})
    if values is None:
        return Solution(answer="no")
    return Solution(answer="yes", facts=facts_of(values)) if diagrams.exact else _try_facts(demands, values)


def _is_in(outcomes: frozenset[Outcome]) -> Callable[[int], bool]:
    return lambda result: truth_of(result) in outcomes


def _try_facts(demands: Sequence[Demand], first: dict[str, Json]) -> Solution:
    """Try the facts that the constants of these expressions suggest; of some facts, these values first."""
    try:
        rules = [(compile_expression(expression), outcomes) for expression, outcomes in demands]
    except LogicFailed:
        return Solution(answer="unknown")
    uses = VariableUses()
    for expression, _ in demands:
        uses.add(expression)
    paths = sorted(uses.paths, key=lambda path: (path not in first, path))
    values = [[*([first[path]] if path in first else []), *uses.candidates(path)] for path in paths]
    for chosen in itertools.islice(itertools.product(*values), MAX_TRIES):
        facts = facts_of(dict(zip(paths, chosen, strict=True)))
        if all(_outcome(rule, facts) in outcomes for rule, outcomes in rules):
            return Solution(answer="yes", facts=facts)
    return Solution(answer="unknown")


def _outcome(rule: Expression, facts: dict[str, Json]) -> Outcome:
    try:
        return rule.holds(facts)
    except LogicFailed:
        return None
