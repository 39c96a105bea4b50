"""Contradictory rules: one allows only where another denies, and a denial holds at any priority."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from contextplane.authoring.conditions import (
    PlacedCondition,
    conditions_by_place,
    invalid_condition_places,
    scope_constraints,
    values_of,
)
from contextplane.authoring.subject import PlacedEffect, Subject
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.expression import Expression, LogicFailed, compile_expression
from contextplane.policy.logic.solver import Answer, Outcome, Solution, can_be, solve_outcomes

__all__ = ["Contradiction", "UncomparedPairs", "applies_within", "find_contradictions"]

_TRIES_PER_RULE = 50
_SOLVES_PER_RULE = 5
_SCOPE_PATHS = frozenset(SCOPE_FACTS.values())
_TOGETHER = 12
"""How many denials are solved together at most; for more the answer is unknown."""

_FEW_PAIRS = 64
"""So many pairs are compared one by one."""

_ANY_INTENT = ""
"""The key of rules that name no intent and apply to every one."""


class Contradiction(Value, frozen=True):
    """A branch `allows` that takes effect only where one of `denies` does too. Not `sure`: it may be so."""

    allows: PlacedEffect
    denies: tuple[PlacedEffect, ...]
    sure: bool = True


class UncomparedPairs(Value, frozen=True):
    """The number of pairs of rules that the budget did not cover, and the place of the first."""

    pairs: int
    at: str


class _Budget:
    """The work left for all rules: conditions to evaluate, questions to solve.

    It keeps the work in proportion to the pack.
    """

    def __init__(self, rules: int) -> None:
        self.tries = _TRIES_PER_RULE * max(1, rules)
        self.solves = _SOLVES_PER_RULE * max(1, rules)

    @property
    def spent(self) -> bool:
        return self.tries <= 0 or self.solves <= 0


class _Branch:
    """An effect, the condition for it, and the facts that the condition reads."""

    def __init__(
        self,
        placed: PlacedEffect,
        condition: Json,
        reads: frozenset[str],
        within: Sequence[Json] = (),
    ) -> None:
        self.placed = placed
        self.condition = condition
        self.reads = reads
        self.within = within
        """Further conditions that hold wherever its rule applies."""

    @cached_property
    def rule(self) -> Expression:
        return compile_expression(self.condition)

    def beyond(self, others: "Sequence[_Branch]") -> Solution:
        """Search facts for which this branch takes effect and none of the others does."""
        outcomes = [(self.condition, frozenset[Outcome]({self.placed.branch}))]
        outcomes += [(constraint, frozenset[Outcome]({True})) for constraint in self.within]
        outcomes += [(other.condition, frozenset[Outcome]({not other.placed.branch})) for other in others]
        return solve_outcomes(outcomes)

    def denies(self, facts: Mapping[str, Json]) -> bool:
        """Whether this branch denies for these facts. A condition that cannot be evaluated denies."""
        try:
            return self.rule.holds(facts) is self.placed.branch
        except LogicFailed:
            return True


def find_contradictions(subject: Subject) -> Iterator[Contradiction | UncomparedPairs]:
    """Yield the contradictions among rules that apply together, also across bundles.

    Rules are matched by intent, then by the facts that they read.
    """
    budget = _Budget(len(subject.rules))
    left, first = 0, ""
    for allows, denying in _comparable_branches(subject):
        if budget.spent:
            left, first = left + len(denying), first or allows.placed.at
        else:
            yield from _contradictions_of(allows, denying, budget)
    if left:
        yield UncomparedPairs(pairs=left, at=first)


def _contradictions_of(allows: _Branch, denying: Sequence[_Branch], budget: _Budget) -> Iterator[Contradiction]:
    """Yield each branch that alone leaves nothing to allow; if none does, those that do together."""
    answer, against = _can_allow(allows, denying, budget)
    if answer == "yes" or not against:
        return
    alone = [branch for branch in against if allows.beyond([branch]).answer == "no"]
    for branch in alone:
        yield Contradiction(allows=allows.placed, denies=(branch.placed,))
    if not alone:
        yield Contradiction(
            allows=allows.placed, denies=tuple(branch.placed for branch in against), sure=answer == "no"
        )


def _can_allow(allows: _Branch, denying: Sequence[_Branch], budget: _Budget) -> tuple[Answer, list[_Branch]]:
    """Whether a branch ever allows where nothing denies, and the denying branches that were considered.

    Searches facts for which it allows. Branches that deny there are added, and the search is repeated, until it finds
    facts for which nothing denies, or none are left.
    """
    against: list[_Branch] = []
    solution = allows.beyond(against)
    if solution.answer == "unknown":
        against = list(denying[:_TOGETHER])
        solution = allows.beyond(against)
    while solution.answer == "yes":
        budget.tries -= len(denying)
        hit = [branch for branch in denying if branch.denies(solution.facts)]
        if not hit:
            return "yes", against
        against += hit
        if len(against) > _TOGETHER:
            return "unknown", against[:_TOGETHER]
        budget.solves -= 1
        solution = allows.beyond(against)
    return solution.answer, against


def _comparable_branches(subject: Subject) -> Iterator[tuple[_Branch, list[_Branch]]]:
    """Yield each allowing branch with the denying branches of other rules to compare it with.

    Those apply wherever the allowing rule does, and read no fact that it does not read.
    """
    candidates = [_denying_branch(placed, subject) for placed in _sound_effects(subject, allow=False)]
    branches = [branch for branch in candidates if branch is not None]
    allowing = _sound_effects(subject, allow=True) if branches else []
    if len(branches) * len(allowing) <= _FEW_PAIRS and not _may_meet(allowing, branches, subject):
        return
    denying = _by_intent_and_fact(branches)
    scope_facts = {fact for branch in branches for fact in branch.reads} & _SCOPE_PATHS
    for placed in allowing:
        known = list(scope_constraints(placed.of.rule.applies_to)) if scope_facts else []
        reads = _reads(placed, subject).union([fact for fact, _ in known])
        # A rule that denies all of its intents also denies the first.
        near = (
            denies
            for intent in (_ANY_INTENT, *placed.of.intents[:1])
            for fact in ("", *sorted(reads))
            for denies in denying.get((intent, fact), ())
        )
        others = [branch for branch in near if branch.reads <= reads and branch.placed.of.at != placed.of.at]
        if within := [other for other in others if applies_within(placed, other.placed)]:
            yield (
                _Branch(placed, placed.of.rule.condition, reads, [constraint for _, constraint in known]),
                within,
            )


def _may_meet(allowing: Sequence[PlacedEffect], denying: Sequence[_Branch], subject: Subject) -> bool:
    """Whether a denying branch reads only facts that an allowing branch of another rule reads or matches.

    Asked for few pairs only: most packs have no such pair, and then need no index of branches.
    """
    for branch in denying:
        facts = branch.reads - _SCOPE_PATHS
        for placed in allowing:
            if placed.of is not branch.placed.of and facts <= _reads(placed, subject):
                return True
    return False


def _by_intent_and_fact(branches: Sequence[_Branch]) -> Mapping[tuple[str, str], list[_Branch]]:
    """Group denying branches by intent, and by the fact among those they read that the fewest read."""
    readers: dict[str, int] = {}
    for fact in (fact for branch in branches for fact in branch.reads):
        readers[fact] = readers.get(fact, 0) + 1
    groups: dict[tuple[str, str], list[_Branch]] = defaultdict(list)
    for branch in branches:
        rarest = min(branch.reads, key=lambda fact: (readers[fact], fact), default="")
        for intent in branch.placed.of.intents or (_ANY_INTENT,):
            groups[intent, rarest].append(branch)
    return groups


def _denying_branch(placed: PlacedEffect, subject: Subject) -> _Branch | None:
    """Return a branch that denies; None when the other branch denies as well and stands for both.

    One that denies in any case reads nothing, although its condition may name facts.
    """
    rule = placed.of.rule
    if rule.otherwise is not None and rule.then.allow is False and rule.otherwise.allow is False:
        return _unconditional_branch(placed) if placed.branch else None
    condition = _condition(placed, subject)
    branch = _Branch(placed, rule.condition, condition.reads)
    # Cheap checks first: most can be false by their form, or do not deny without facts.
    if condition.free or not branch.denies({}):
        return branch
    return _unconditional_branch(placed) if can_be(rule.condition, not placed.branch) == "no" else branch


def _unconditional_branch(placed: PlacedEffect) -> _Branch:
    return _Branch(placed, placed.branch, frozenset())


def _reads(placed: PlacedEffect, subject: Subject) -> frozenset[str]:
    return _condition(placed, subject).reads


def _condition(placed: PlacedEffect, subject: Subject) -> PlacedCondition:
    return subject.compute_once(conditions_by_place)[f"{placed.of.at}/if"]


def _sound_effects(subject: Subject, *, allow: bool) -> list[PlacedEffect]:
    """Return the effects that allow, or deny, of rules whose condition can be evaluated."""
    effects = [placed for placed in subject.effects if placed.effect.allow is allow]
    invalid = subject.compute_once(invalid_condition_places)
    return [placed for placed in effects if f"{placed.of.at}/if" not in invalid] if invalid else effects


def applies_within(inner: PlacedEffect, outer: PlacedEffect) -> bool:
    """Whether the rule of `outer` applies wherever that of `inner` does."""
    mine, theirs = inner.of.rule.applies_to, outer.of.rule.applies_to
    return all(name in mine and values_of(mine[name]) <= values_of(theirs[name]) for name in theirs)
