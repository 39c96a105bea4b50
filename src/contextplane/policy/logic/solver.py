"""Whether expressions can hold together: by trying the values that their constants tell apart. Pure.

An expression can only distinguish values at the constants it compares with. So for every variable one value is tried
for each of them, one between each two, one on either side, and one of every other kind: a missing one, true, false, an
empty and a full list, an object. When variables meet only constants, that is exhaustive, and "no" is a proof. Otherwise
only "yes" is. An expression that cannot be evaluated, or has no answer, neither holds nor does not hold.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal, TypeGuard

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.clock import CLOCK_FACTS, CLOCK_NUMBERS
from contextplane.policy.facts import TEXT_FACTS
from contextplane.policy.logic.expression import Expression, LogicFailed, compile_expression, variables
from contextplane.policy.logic.strict import COMPARISONS, ORDERINGS, operation, reads_without_default

__all__ = [
    "HUGE",
    "Answer",
    "Outcome",
    "Solution",
    "TryBudget",
    "VariableUses",
    "can_be",
    "implies",
    "is_clearly_contingent",
    "path_of",
    "solve",
    "solve_outcomes",
]

# --- The values worth trying for a variable ---

HUGE = 2.0**50
"""From here on, neighbouring numbers are not distinguished."""

_EQUAL = frozenset({"==", "===", "!=", "!=="})
_OTHER_TEXT = "\u0001other"
_NEXT = "\0"
"""Appended to a text it gives its direct successor in order."""

_EVERY_KIND: tuple[Json, ...] = (None, "", _NEXT, _OTHER_TEXT, 0, True, False, [], [0], {"k": 0})
"""One value of each kind that an expression treats differently. Only the truth of a list depends on its elements."""

_DECIDING = frozenset({"and", "or", "!", "!!", "if", "?:"})


class VariableUses:
    """The variables of some expressions, and the constants that each of them is compared with."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.complete = True
        self.tests: dict[str, list[Json]] = {}
        """For each variable the parts that read only it; when complete, their results determine all else."""
        self._constants: dict[str, list[Json]] = {}

    def add(self, expression: Json) -> None:
        """Add an expression in a place where only its truth counts."""
        operator, operands = operation(expression)
        if not operator:
            if isinstance(expression, dict | list):
                self._give_up([expression])
        elif operator == "var":
            self._meet(expression, expression, (True, False))
        elif operator in _DECIDING:
            for operand in operands:
                self.add(operand)
        elif operator in COMPARISONS:
            self._compare(expression, operands)
        elif operator == "in" and len(operands) == 2:  # noqa: PLR2004
            self._within(expression, operands[0], operands[1])
        elif operator == "missing" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            self._meet(expression, {"var": operands[0]}, ())
        else:
            self._give_up([expression])

    def every_kind(self, path: str) -> list[Json]:
        """Values that cover every way in which this variable can turn out, of every kind."""
        if path in CLOCK_NUMBERS:
            return [None, *CLOCK_NUMBERS[path]]
        values = [*self._near_constants(path), *_EVERY_KIND]
        return [value for value in values if value is None or isinstance(value, str)] if path in TEXT_FACTS else values

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
        numbers = sorted({float(constant) for constant in constants if _is_number(constant) and abs(constant) < HUGE})
        texts = sorted({constant for constant in constants if isinstance(constant, str) and constant})
        return [*_around(numbers), *(text for constant in texts for text in (constant, constant + _NEXT))]

    def complete_with(self, paths: Sequence[str]) -> bool:
        """Whether the values tried are exhaustive. Of a path within another, not every state is tried."""
        nested = any(longer.startswith(f"{path}.") for path, longer in itertools.permutations(paths, 2))
        return self.complete and not nested

    def _compare(self, whole: Json, operands: list[Json]) -> None:
        constants = [operand for operand in operands if not isinstance(operand, dict | list)]
        for operand in operands:
            if path_of(operand) is not None:
                self._meet(whole, operand, constants)
            elif isinstance(operand, dict | list):
                # The constants it is compared with are still worth trying.
                self._give_up([operand, *constants])
        if sum(isinstance(operand, dict) for operand in operands) > 1:
            self.complete = False  # two variables are compared: values between them are not tried

    def _within(self, whole: Json, needle: Json, haystack: Json) -> None:
        if (
            path_of(needle) is not None
            and isinstance(haystack, list)
            and not any(isinstance(element, dict | list) for element in haystack)
        ):
            self._meet(whole, needle, haystack)
        else:
            self._give_up([needle, haystack])

    def _meet(self, whole: Json, variable: Json, constants: Sequence[Json]) -> None:
        path = path_of(variable)
        if path is None:
            self._give_up([variable])
            return
        if any(_is_number(constant) and abs(constant) >= HUGE for constant in constants):
            self.complete = False
        self.paths.add(path)
        self.tests.setdefault(path, []).append(whole)
        self._constants.setdefault(path, []).extend(constants)

    def _give_up(self, operands: Sequence[Json]) -> None:
        """Note variables whose values are used in a way that is not analysed."""
        self.complete = False
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
            self._meet(operands[0], {"var": path}, constants)


def path_of(value: Json) -> str | None:
    """The path of `{"var": "a.b"}`, else None: a default or a computed path is not analysed."""
    operator, operands = operation(value)
    if operator != "var" or not operands or not reads_without_default(operands):
        return None
    return operands[0] if isinstance(operands[0], str) and operands[0] else None


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _around(numbers: Sequence[float]) -> Iterator[float]:
    """Each number, one between each two, and one beyond either end."""
    if not numbers:
        return
    yield numbers[0] - 1
    for low, high in itertools.pairwise(numbers):
        yield low
        yield (low + high) / 2
    yield numbers[-1]
    yield numbers[-1] + 1


# --- Solving ---

MAX_TRIES = 20_000
"""The most facts that are tried for one question."""


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


class TryBudget:
    """The number of facts that may still be tried, for all questions that share it."""

    def __init__(self, left: int) -> None:
        self._left = left

    @property
    def spent(self) -> bool:
        return self._left <= 0

    def take(self) -> bool:
        """Take one try; False when none was left."""
        self._left -= 1
        return self._left >= 0


def can_be(expression: Json, holds: bool, tries: TryBudget | None = None) -> Answer:  # noqa: FBT001  it reads as a sentence
    """Whether an expression can be true, or false, as `holds` says."""
    return "yes" if is_clearly_contingent(expression) else solve([(expression, holds)], tries).answer


def is_clearly_contingent(expression: Json) -> bool:
    """Whether the form alone shows that an expression can be true and can be false.

    False proves nothing: most forms show nothing.
    """
    return _is_contingent(expression, set())


def _is_contingent(expression: Json, seen: set[str]) -> bool:
    """Whether each variable stands in one comparison that can be either."""
    operator, operands = operation(expression)
    if operator in {"and", "or", "!", "!!"} and operands:
        return all(_is_contingent(operand, seen) for operand in operands)
    constant: Json = True
    if operator == "var":
        path = path_of(expression)
    elif operator in COMPARISONS and len(operands) == 2:  # noqa: PLR2004
        path, constant = path_of(operands[0]), operands[1]
    else:
        return False
    if path is None or path in CLOCK_FACTS or (seen and _overlaps(path, seen)):
        return False
    seen.add(path)
    if isinstance(constant, str):
        return operator in _EQUAL or bool(constant)  # no text is before the empty one
    if isinstance(constant, bool):
        return operator not in ORDERINGS
    return isinstance(constant, int | float) and abs(constant) < HUGE


def _overlaps(path: str, seen: set[str]) -> bool:
    return any(path.startswith(f"{other}.") or other.startswith(f"{path}.") or other == path for other in seen)


def solve(goals: Sequence[Goal], tries: TryBudget | None = None) -> Solution:
    """Search for facts for which every expression holds, or does not, as its goal says."""
    return solve_outcomes([(expression, frozenset[Outcome]({holds})) for expression, holds in goals], tries)


def implies(premise: Goal, conclusion: Goal, tries: TryBudget | None = None) -> bool:
    """Whether it is proven that the conclusion is met wherever the premise is.

    A conclusion that cannot be evaluated there is not met.
    """
    expression, holds = conclusion
    refuting = frozenset[Outcome]({not holds, None})
    return (
        solve_outcomes([(premise[0], frozenset[Outcome]({premise[1]})), (expression, refuting)], tries).answer == "no"
    )


def solve_outcomes(demands: Sequence[Demand], tries: TryBudget | None = None) -> Solution:
    """Search for facts for which every expression has one of its demanded outcomes."""
    facts: dict[str, Json] = {}
    answers = []
    for group in _independent(list(_parts(demands))):
        solution = _solve_together(group, tries or TryBudget(MAX_TRIES))
        if solution.answer == "no":
            return solution
        answers.append(solution.answer)
        _merge(facts, solution.facts)
    return Solution(answer="unknown") if "unknown" in answers else Solution(answer="yes", facts=facts)


def _parts(demands: Sequence[Demand]) -> Iterator[Demand]:
    """The same demands in smaller pieces: an `and` that holds demands it of each of its parts."""
    todo = list(reversed(demands))
    while todo:
        expression, outcomes = todo.pop()
        operator, operands = operation(expression)
        if (operator == "and" and outcomes == {True}) or (operator == "or" and outcomes == {False}):
            todo += [(operand, outcomes) for operand in reversed(operands)]
        elif operator in {"!", "!!"} and len(operands) == 1:
            turned = frozenset(None if outcome is None else outcome is (operator == "!!") for outcome in outcomes)
            todo.append((operands[0], turned))
        else:
            yield expression, outcomes


def _independent(parts: list[Demand]) -> list[list[Demand]]:
    """Groups of demands that share no variable, to be solved separately."""
    groups: list[tuple[set[str], list[Demand]]] = []
    for part in parts:
        uses = VariableUses()
        uses.add(part[0])
        roots = {path.split(".")[0] if not uses.complete else path for path in uses.paths}
        together = [group for group in groups if _meet(group[0], roots)]
        names = roots.union(*(names for names, _ in together))
        members = [demand for _, group in together for demand in group]
        groups = [group for group in groups if group not in together]
        groups.append((names, [*members, part]))
    return [group for _, group in groups]


def _meet(names: set[str], others: set[str]) -> bool:
    """Whether one of these paths is, or lies within, one of those."""
    return any(a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a in names for b in others)


def _merge(into: dict[str, Json], facts: dict[str, Json]) -> None:
    for key, value in facts.items():
        inner = into.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            into[key] = value


def _solve_together(demands: Sequence[Demand], tries: TryBudget) -> Solution:
    uses = VariableUses()
    for expression, _ in demands:
        uses.add(expression)
    try:
        rules = [(compile_expression(expression), outcomes) for expression, outcomes in demands]
    except LogicFailed:
        return Solution(answer="unknown")
    paths = sorted(uses.paths)
    complete = uses.complete_with(paths)
    values = [_distinct_values(uses, path) if complete else uses.candidates(path) for path in paths]
    for tried, chosen in enumerate(itertools.product(*values)):
        if tried >= MAX_TRIES or not tries.take():
            return Solution(answer="unknown")
        facts = _facts(paths, chosen)
        if all(_outcome(rule, facts) in outcomes for rule, outcomes in rules):
            return Solution(answer="yes", facts=facts)
    return Solution(answer="no" if complete else "unknown")


def _distinct_values(uses: VariableUses, path: str) -> list[Json]:
    """One value for each combination of results of the parts that read the variable."""
    tests = [compile_expression(test) for test in uses.tests[path]]
    values: dict[tuple[Outcome, ...], Json] = {}
    for value in uses.every_kind(path):
        facts = _facts([path], [value])
        values.setdefault(tuple(_outcome(test, facts) for test in tests), value)
    return list(values.values())


def _outcome(rule: Expression, facts: dict[str, Json]) -> Outcome:
    try:
        return rule.holds(facts)
    except LogicFailed:
        return None


def _facts(paths: Sequence[str], values: Sequence[Json]) -> dict[str, Json]:
    """Facts in which each path leads to its value; null leaves the variable out, as if missing."""
    facts: dict[str, Json] = {}
    for path, value in zip(paths, values, strict=True):
        if value is None:
            continue
        *way, last = path.split(".")
        place = facts
        for step in way:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # a longer path through a scalar value: the longer one is missing
            place = inner
        else:
            place[last] = value
    return facts
