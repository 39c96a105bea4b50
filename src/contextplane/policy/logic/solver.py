"""Whether expressions can hold together: by trying the values that their constants tell apart. Pure.

An expression can only distinguish values at the constants it compares with. So for every variable one value is tried
for each of them, one between each two, one on either side, and one of every other kind: a missing one, a truth value, a
text that spells a number or a truth value, a list. When variables meet only constants, that is exhaustive, and "no" is
a proof. Otherwise only "yes" is. An expression that cannot be evaluated neither holds nor does not hold.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.logic.expression import Expression, LogicFailed, compile_expression, variables
from contextplane.policy.logic.strict import COMPARISONS, ORDERINGS, operation

__all__ = [
    "HUGE",
    "NUMBER_OR_TIME_STARTS",
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

_STRICT = frozenset({"===", "!=="})
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_FALSY: tuple[Json, ...] = (0, "")
"""Constants at which the truth of a value changes."""

_OTHER_TEXT = "\u0001other"
_NEXT = "\0"
"""Appended to a text it gives its direct successor in order."""

_EVERY_KIND: tuple[Json, ...] = (None, "", _NEXT, _OTHER_TEXT, True, False, "true", "false", [], [0])
"""One value of each kind that the engine treats differently. Lists and objects behave like one of the lists."""

_DECIDING = frozenset({"and", "or", "!", "!!", "if", "?:"})

NUMBER_OR_TIME_STARTS = frozenset("0123456789+-.P ")
"""First characters of texts that the engine may compare as a number, a date or a duration, not as text."""

_AFTER_NUMBERS = ":"
"""A text that begins with this or a later character sorts after every text that spells a number."""


class VariableUses:
    """The variables of some expressions, and the constants that each of them is compared with."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.complete = True
        self.tests: dict[str, list[Json]] = {}
        """For each variable the parts that read only it; when complete, their results determine all else."""
        self._constants: dict[str, list[Json]] = {}
        self._exact: set[str] = set()
        """The variables for which the type of the value can matter, not only what it equals."""

    def add(self, expression: Json) -> None:
        """Add an expression in a place where only its truth counts."""
        operator, operands = operation(expression)
        if not operator:
            if isinstance(expression, dict | list):
                self._give_up([expression])
        elif operator == "var":
            self._meet(expression, expression, _FALSY, exact=True)
        elif operator in _DECIDING:
            for operand in operands:
                self.add(operand)
        elif operator in COMPARISONS:
            self._compare(expression, operands, exact=operator in _STRICT, ordered=operator not in _EQUAL)
        elif operator == "in" and len(operands) == 2:  # noqa: PLR2004
            self._within(expression, operands[0], operands[1])
        elif operator == "missing" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            self._meet(expression, {"var": operands[0]}, (), exact=True)
        else:
            self._give_up([expression])

    def every_kind(self, path: str) -> list[Json]:
        """Values that cover every way in which this variable can turn out, of every kind."""
        constants = self._constants[path]
        numbers = sorted(
            {0.0, 1.0} | {number for constant in constants if (number := _as_number(constant)) is not None}
        )
        texts = sorted({constant for constant in constants if isinstance(constant, str) and constant})
        values: list[Json] = [*_around(numbers)]
        values += [text for constant in texts for text in (constant, constant + _NEXT)]
        return [*values, *_EVERY_KIND, *(_spell_number(number, texts) for number in _around(numbers))]

    def candidates(self, path: str) -> list[Json]:
        """The values most likely to make a difference, where not everything can be tried."""
        constants, exact = self._constants[path], path in self._exact
        numbers = sorted({number for constant in constants if (number := _as_number(constant)) is not None})
        texts = sorted({constant for constant in constants if isinstance(constant, str) and constant})
        values: list[Json] = [*_around(numbers), None, ""]
        values += [text for constant in texts for text in (constant, constant + _NEXT)]
        if texts or exact or not numbers:
            values.append(_OTHER_TEXT)
        if exact or not numbers or any(isinstance(constant, bool) for constant in constants):
            values += [True, False]
        if exact:
            values += [_spell_number(number, texts) for number in _around(numbers)]
            values.append([])
        return values

    def complete_with(self, paths: Sequence[str]) -> bool:
        """Whether the values tried are exhaustive. Of a path within another, not every state is tried."""
        nested = any(longer.startswith(f"{path}.") for path, longer in itertools.permutations(paths, 2))
        return self.complete and not nested

    def _compare(self, whole: Json, operands: list[Json], *, exact: bool, ordered: bool) -> None:
        constants = [operand for operand in operands if not isinstance(operand, dict | list)]
        texts = [constant for constant in constants if isinstance(constant, str) and constant]
        if not exact and any(text[0] in NUMBER_OR_TIME_STARTS or (ordered and text < _AFTER_NUMBERS) for text in texts):
            self.complete = False
        for operand in operands:
            if path_of(operand) is not None:
                self._meet(whole, operand, constants, exact=exact)
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
            self._meet(whole, needle, haystack, exact=True)
        else:
            self._give_up([needle, haystack])

    def _meet(self, whole: Json, variable: Json, constants: Sequence[Json], *, exact: bool) -> None:
        path = path_of(variable)
        if path is None:
            self._give_up([variable])
            return
        if any(isinstance(constant, int | float) and abs(constant) >= HUGE for constant in constants):
            self.complete = False
        self.paths.add(path)
        self.tests.setdefault(path, []).append(whole)
        self._constants.setdefault(path, []).extend(constants)
        if exact:
            self._exact.add(path)

    def _give_up(self, operands: Sequence[Json]) -> None:
        """Note variables whose values are used in a way that is not analysed."""
        self.complete = False
        todo = list(operands)
        constants: list[Json] = []
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                todo += node.values()
            elif isinstance(node, list):
                todo += node
            else:
                constants.append(node)
        for path in sorted(path for part in operands for path in variables(part) if path):
            self._meet(operands[0], {"var": path}, constants, exact=True)


def path_of(value: Json) -> str | None:
    """The path of `{"var": "a.b"}`, else None: a default or a computed path is not analysed."""
    if not isinstance(value, dict) or len(value) != 1 or "var" not in value:
        return None
    path = value["var"]
    path = path[0] if isinstance(path, list) and len(path) == 1 else path
    return path if isinstance(path, str) and path else None


def _as_number(value: Json) -> float | None:
    """The number that the engine may take a constant for; None for a text that is none."""
    if isinstance(value, str):
        try:
            number = float(value or 0)
        except ValueError:
            return None
        return number if abs(number) < HUGE else None
    return float(value or 0) if isinstance(value, bool | int | float | None) else None


def _spell_number(number: float, taken: Sequence[str]) -> str:
    """A number as text, spelled unlike any of the constants."""
    text = f"{number:.1f}" if number.is_integer() else repr(number)
    while text in taken:
        text += "0"
    return text


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
    if path is None or (seen and _overlaps(path, seen)):
        return False
    seen.add(path)
    if isinstance(constant, str):
        return operator in _EQUAL and constant[:1] not in NUMBER_OR_TIME_STARTS and bool(constant)
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
