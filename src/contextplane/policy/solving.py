"""Whether expressions can hold together: by trying the facts that their own constants tell apart. Pure.

An expression can only tell values apart at the constants it compares with. So for every variable one value is tried
for each of them, one between each two, one on either side, and one of every other kind: a missing one, a truth value, a
text that spells a number or a truth value, a list. When variables meet only constants, that covers everything there is,
and "no" is a proof. Elsewhere only "yes" is. An expression that cannot be evaluated neither holds nor does not hold.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from contextplane.model.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.candidates import HUGE, PERHAPS_A_TIME, Uses, path_of
from contextplane.policy.logic import Expression, LogicFailed, compiled
from contextplane.policy.operators import COMPARING, ORDERING, operation

__all__ = ["Answer", "Outcome", "Solution", "Tries", "can_be", "follows", "solve", "solve_outcomes", "turns_freely"]

TRIES = 20_000
"""How many facts are tried for one question at most."""

_EQUAL = frozenset({"==", "===", "!=", "!=="})

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
        return all(_turns_freely(one, seen) for one in operands)
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
        found = _solve_together(group, tries or Tries(TRIES))
        if found.answer == "no":
            return found
        answers.append(found.answer)
        _merge(facts, found.facts)
    return Solution(answer="unknown") if "unknown" in answers else Solution(answer="yes", facts=facts)


def _parts(demands: Sequence[Demand]) -> Iterator[Demand]:
    """The same demands in smaller pieces: what is wanted of an `and` that holds is wanted of each of its parts."""
    todo = list(reversed(demands))
    while todo:
        expression, outcomes = todo.pop()
        operator, operands = operation(expression)
        if (operator == "and" and outcomes == {True}) or (operator == "or" and outcomes == {False}):
            todo += [(one, outcomes) for one in reversed(operands)]
        elif operator in {"!", "!!"} and len(operands) == 1:
            turned = frozenset(None if one is None else one is (operator == "!!") for one in outcomes)
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
