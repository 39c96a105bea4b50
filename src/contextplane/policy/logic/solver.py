"""Whether expressions can hold together: by trying the facts that their own constants tell apart. Pure.

An expression can only tell values apart at the constants it compares with. So for every variable one value is tried
for each of them, one between each two, one on either side, and one of every other kind: a missing one, a truth value, a
text that spells a number or a truth value, a list. When variables meet only constants, that covers everything there is,
and "no" is a proof. Elsewhere only "yes" is. An expression that cannot be evaluated neither holds nor does not hold.

The values worth trying for the variables of an expression: one for each way in which it can tell them apart.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.logic.expression import Expression, LogicFailed, compiled, variables
from contextplane.policy.logic.strict import COMPARING, ORDERING, operation

__all__ = [
    "HUGE",
    "PERHAPS_A_TIME",
    "Answer",
    "Outcome",
    "Solution",
    "Tries",
    "Uses",
    "can_be",
    "follows",
    "path_of",
    "solve",
    "solve_outcomes",
    "turns_freely",
]

HUGE = 2.0**50
"""From here on, the number next to another is not told apart from it."""

_STRICT = frozenset({"===", "!=="})
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_FALSE_ENOUGH: tuple[Json, ...] = (0, "")
"""Where only the truth of a value counts, these are where it turns."""

_OTHER_TEXT = "\u0001other"
_NEXT = "\0"
"""Added to a text it gives the one that follows: nothing lies between the two."""

_EVERY_KIND: tuple[Json, ...] = (None, "", _NEXT, _OTHER_TEXT, True, False, "true", "false", [], [0])
"""One value of each kind that the engine treats in its own way; every list and every object is as one of the lists."""

_DECIDING = frozenset({"and", "or", "!", "!!", "if", "?:"})

PERHAPS_A_TIME = frozenset("0123456789+-.P ")
"""How a text begins that the engine may take for a number, a date or a duration: compared as such, not as text."""

_AFTER_NUMBERS = ":"
"""What begins with this or more stands, as text, after every text that spells a number."""


class Uses:
    """Which variables there are, and which constants each of them meets."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.complete = True
        self.tests: dict[str, list[Json]] = {}
        """For each variable the parts that read it and nothing else; when complete, all else follows from them."""
        self._constants: dict[str, list[Json]] = {}
        self._exact: set[str] = set()
        """The variables whose kind of value can decide, not only what it is equal to."""

    def see(self, expression: Json) -> None:
        """Note one part in a place where only its truth counts."""
        operator, operands = operation(expression)
        if not operator:
            if isinstance(expression, dict | list):
                self._give_up([expression])
        elif operator == "var":
            self._meet(expression, expression, _FALSE_ENOUGH, exact=True)
        elif operator in _DECIDING:
            for operand in operands:
                self.see(operand)
        elif operator in COMPARING:
            self._compare(expression, operands, exact=operator in _STRICT, ordered=operator not in _EQUAL)
        elif operator == "in" and len(operands) == 2:  # noqa: PLR2004
            self._within(expression, operands[0], operands[1])
        elif operator == "missing" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            self._meet(expression, {"var": operands[0]}, (), exact=True)
        else:
            self._give_up([expression])

    def every_kind(self, path: str) -> list[Json]:
        """One value for each way in which this variable can turn out, and more: of every kind, whatever it meets."""
        met = self._constants[path]
        numbers = sorted({0.0, 1.0} | {number for one in met if (number := _as_number(one)) is not None})
        texts = sorted({one for one in met if isinstance(one, str) and one})
        values: list[Json] = [*_around(numbers)]
        values += [text for one in texts for text in (one, one + _NEXT)]
        return [*values, *_EVERY_KIND, *(_spelled(number, texts) for number in _around(numbers))]

    def candidates(self, path: str) -> list[Json]:
        """The values that are most likely to tell something, where not everything can be tried."""
        met, exact = self._constants[path], path in self._exact
        numbers = sorted({number for one in met if (number := _as_number(one)) is not None})
        texts = sorted({one for one in met if isinstance(one, str) and one})
        values: list[Json] = [*_around(numbers), None, ""]
        values += [text for one in texts for text in (one, one + _NEXT)]
        if texts or exact or not numbers:
            values.append(_OTHER_TEXT)
        if exact or not numbers or any(isinstance(one, bool) for one in met):
            values += [True, False]
        if exact:
            values += [_spelled(number, texts) for number in _around(numbers)]
            values.append([])
        return values

    def complete_with(self, paths: Sequence[str]) -> bool:
        """Whether what is tried is all there is. Of a path within another, not every state of both is tried."""
        nested = any(longer.startswith(f"{path}.") for path, longer in itertools.permutations(paths, 2))
        return self.complete and not nested

    def _compare(self, whole: Json, operands: list[Json], *, exact: bool, ordered: bool) -> None:
        constants = [one for one in operands if not isinstance(one, dict | list)]
        texts = [constant for constant in constants if isinstance(constant, str) and constant]
        if not exact and any(text[0] in PERHAPS_A_TIME or (ordered and text < _AFTER_NUMBERS) for text in texts):
            self.complete = False
        for operand in operands:
            if path_of(operand) is not None:
                self._meet(whole, operand, constants, exact=exact)
            elif isinstance(operand, dict | list):
                # What it is compared with is worth trying all the same.
                self._give_up([operand, *constants])
        if sum(isinstance(one, dict) for one in operands) > 1:
            self.complete = False  # two variables against each other: what lies between them is not tried

    def _within(self, whole: Json, needle: Json, hay: Json) -> None:
        if (
            path_of(needle) is not None
            and isinstance(hay, list)
            and not any(isinstance(one, dict | list) for one in hay)
        ):
            self._meet(whole, needle, hay, exact=True)
        else:
            self._give_up([needle, hay])

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
        """Somewhere below are variables whose values are used in a way that is not followed."""
        self.complete = False
        todo = list(operands)
        constants: list[Json] = []
        while todo:
            one = todo.pop()
            if isinstance(one, dict):
                todo += one.values()
            elif isinstance(one, list):
                todo += one
            else:
                constants.append(one)
        for path in sorted(path for part in operands for path in variables(part) if path):
            self._meet(operands[0], {"var": path}, constants, exact=True)


def path_of(value: Json) -> str | None:
    """The path of `{"var": "a.b"}`, None for anything else: a default or a computed path is not followed."""
    if not isinstance(value, dict) or len(value) != 1 or "var" not in value:
        return None
    given = value["var"]
    given = given[0] if isinstance(given, list) and len(given) == 1 else given
    return given if isinstance(given, str) and given else None


def _as_number(value: Json) -> float | None:
    """The number that the engine may take a constant for; None for a text that is none."""
    if isinstance(value, str):
        try:
            number = float(value or 0)
        except ValueError:
            return None
        return number if abs(number) < HUGE else None
    return float(value or 0) if isinstance(value, bool | int | float | None) else None


def _spelled(number: float, taken: Sequence[str]) -> str:
    """A number as text, in a way that is none of the constants."""
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


TRIES = 20_000
"""How many facts are tried for one question at most."""


Answer = Literal["yes", "no", "unknown"]

Wanted = tuple[Json, bool]
"""An expression, and whether it is to hold."""

Outcome = bool | None
"""It holds, it does not, or it cannot be evaluated."""

Demand = tuple[Json, frozenset[Outcome]]
"""An expression, and what may become of it."""


class Solution(Value, frozen=True):
    """`yes` with facts that show it, `no` as a proof, or `unknown`."""

    answer: Answer
    facts: dict[str, Json] = {}  # noqa: RUF012  msgspec copies it


class Tries:
    """How many facts may still be tried, for all the questions that share it; then nothing can be told."""

    def __init__(self, left: int) -> None:
        self._left = left

    @property
    def spent(self) -> bool:
        return self._left <= 0

    def take(self) -> bool:
        """Whether there was one more."""
        self._left -= 1
        return self._left >= 0


def can_be(expression: Json, wanted: bool, tries: Tries | None = None) -> Answer:  # noqa: FBT001  it reads as a sentence
    """Whether an expression can be true, or false, as wanted."""
    return "yes" if turns_freely(expression) else solve([(expression, wanted)], tries).answer


def turns_freely(expression: Json) -> bool:
    """Whether it can be true and can be false, told by its form alone. No says nothing: most forms tell nothing."""
    return _turns_freely(expression, set())


def _turns_freely(expression: Json, seen: set[str]) -> bool:
    """Whether it can be either, told by its form alone: each variable stands in one comparison that can be either."""
    operator, operands = operation(expression)
    if operator in {"and", "or", "!", "!!"} and operands:
        return all(_turns_freely(operand, seen) for operand in operands)
    constant: Json = True
    if operator == "var":
        path = path_of(expression)
    elif operator in COMPARING and len(operands) == 2:  # noqa: PLR2004
        path, constant = path_of(operands[0]), operands[1]
    else:
        return False
    if path is None or (seen and _overlaps(path, seen)):
        return False
    seen.add(path)
    if isinstance(constant, str):
        return operator in _EQUAL and constant[:1] not in PERHAPS_A_TIME and bool(constant)
    if isinstance(constant, bool):
        return operator not in ORDERING
    return isinstance(constant, int | float) and abs(constant) < HUGE


def _overlaps(path: str, seen: set[str]) -> bool:
    return any(path.startswith(f"{one}.") or one.startswith(f"{path}.") or one == path for one in seen)


def solve(wanted: Sequence[Wanted], tries: Tries | None = None) -> Solution:
    """Look for facts for which every expression holds, or does not, as wanted."""
    return solve_outcomes([(expression, frozenset[Outcome]({holds})) for expression, holds in wanted], tries)


def follows(one: Wanted, other: Wanted, tries: Tries | None = None) -> bool:
    """A proof that wherever the one is as wanted, the other is: that it cannot be evaluated there is not enough."""
    expression, holds = other
    refuting = frozenset[Outcome]({not holds, None})
    return solve_outcomes([(one[0], frozenset[Outcome]({one[1]})), (expression, refuting)], tries).answer == "no"


def solve_outcomes(demands: Sequence[Demand], tries: Tries | None = None) -> Solution:
    """Look for facts for which every expression comes to something that is demanded of it."""
    facts: dict[str, Json] = {}
    answers = []
    for group in _independent(list(_parts(demands))):
        solution = _solve_together(group, tries or Tries(TRIES))
        if solution.answer == "no":
            return solution
        answers.append(solution.answer)
        _merge(facts, solution.facts)
    return Solution(answer="unknown") if "unknown" in answers else Solution(answer="yes", facts=facts)


def _parts(demands: Sequence[Demand]) -> Iterator[Demand]:
    """The same demands in smaller pieces: what is wanted of an `and` that holds is wanted of each of its parts."""
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
    """Groups that share no variable: each is solved for itself."""
    groups: list[tuple[set[str], list[Demand]]] = []
    for part in parts:
        uses = Uses()
        uses.see(part[0])
        roots = {path.split(".")[0] if not uses.complete else path for path in uses.paths}
        together = [group for group in groups if _meet(group[0], roots)]
        names = roots.union(*(names for names, _ in together))
        members = [one for _, group in together for one in group]
        groups = [group for group in groups if group not in together]
        groups.append((names, [*members, part]))
    return [group for _, group in groups]


def _meet(names: set[str], others: set[str]) -> bool:
    """Whether one of these is, or lies within, one of those."""
    return any(a == b or a.startswith(f"{b}.") or b.startswith(f"{a}.") for a in names for b in others)


def _merge(into: dict[str, Json], facts: dict[str, Json]) -> None:
    for key, value in facts.items():
        inner = into.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            _merge(inner, value)
        else:
            into[key] = value


def _solve_together(demands: Sequence[Demand], tries: Tries) -> Solution:
    uses = Uses()
    for expression, _ in demands:
        uses.see(expression)
    try:
        rules = [(compiled(expression), outcomes) for expression, outcomes in demands]
    except LogicFailed:
        return Solution(answer="unknown")
    paths = sorted(uses.paths)
    complete = uses.complete_with(paths)
    values = [_told_apart(uses, path) if complete else uses.candidates(path) for path in paths]
    for tried, chosen in enumerate(itertools.product(*values)):
        if tried >= TRIES or not tries.take():
            return Solution(answer="unknown")
        facts = _facts(paths, chosen)
        if all(_outcome(rule, facts) in outcomes for rule, outcomes in rules):
            return Solution(answer="yes", facts=facts)
    return Solution(answer="no" if complete else "unknown")


def _told_apart(uses: Uses, path: str) -> list[Json]:
    """Values of every kind, one for each way in which the parts that read the variable turn out."""
    tests = [compiled(test) for test in uses.tests[path]]
    found: dict[tuple[Outcome, ...], Json] = {}
    for value in uses.every_kind(path):
        facts = _facts([path], [value])
        found.setdefault(tuple(_outcome(test, facts) for test in tests), value)
    return list(found.values())


def _outcome(rule: Expression, facts: dict[str, Json]) -> Outcome:
    try:
        return rule.holds(facts)
    except LogicFailed:
        return None


def _facts(paths: Sequence[str], values: Sequence[Json]) -> dict[str, Json]:
    """Facts in which each path leads to its value; a variable that is null is left out, as one that is missing."""
    facts: dict[str, Json] = {}
    for path, value in zip(paths, values, strict=True):
        if value is None:
            continue
        *way, last = path.split(".")
        place = facts
        for step in way:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # a longer path through a value that was given: the longer one is missing
            place = inner
        else:
            place[last] = value
    return facts
