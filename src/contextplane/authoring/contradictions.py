"""Rules that cannot both be meant: one allows only where another denies, and a denial holds at any priority."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from contextplane.authoring.conditions import MATCHED, Condition, conditions_at, known_within, unsound, values_of
from contextplane.authoring.subject import PlacedEffect, Subject
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.logic.expression import Expression, LogicFailed, compiled
from contextplane.policy.logic.solver import Answer, Outcome, Solution, Tries, can_be, solve_outcomes

__all__ = ["Contradiction", "Uncompared", "applies_within", "contradictions"]

_TRIES_PER_RULE = 50
_SOLVES_PER_RULE = 5
_FACTS_TRIED = 60_000
_MATCHED = frozenset(MATCHED.values())
_TOGETHER = 12
"""So many denials are asked about together at most; of more it cannot be told."""

_FEW = 64
"""So many pairs are looked at one by one."""

_EVERY = ""
"""Stands for every intent: the key of rules that name none."""


class Contradiction(Value, frozen=True):
    """`allows` takes effect only where one of `denies` does as well. Not `sure`: it cannot be told whether it does."""

    allows: PlacedEffect
    denies: tuple[PlacedEffect, ...]
    sure: bool = True


class Uncompared(Value, frozen=True):
    """How many pairs of rules were left, so that the work stays in proportion to the pack; the place of the first."""

    pairs: int
    at: str


class _Budget:
    """What may still be done for all rules: conditions evaluated, questions solved, facts tried."""

    def __init__(self, rules: int) -> None:
        self.tries = _TRIES_PER_RULE * max(1, rules)
        self.solves = _SOLVES_PER_RULE * max(1, rules)
        self.facts = Tries(_FACTS_TRIED)

    @property
    def spent(self) -> bool:
        return self.tries <= 0 or self.solves <= 0 or self.facts.spent


class _Branch:
    """An effect, when it takes effect, and the facts that this depends on."""

    def __init__(
        self, placed: PlacedEffect, condition: Json, reads: frozenset[str], budget: Tries, within: Sequence[Json] = ()
    ) -> None:
        self.placed = placed
        self.condition = condition
        self.reads = reads
        self.budget = budget
        self.within = within
        """What else is known of the facts wherever its rule applies."""

    @cached_property
    def rule(self) -> Expression:
        return compiled(self.condition)

    def beyond(self, others: "Sequence[_Branch]") -> Solution:
        """Facts of which it takes effect and none of the others does."""
        wanted = [(self.condition, frozenset[Outcome]({self.placed.branch}))]
        wanted += [(one, frozenset[Outcome]({True})) for one in self.within]
        wanted += [(other.condition, frozenset[Outcome]({not other.placed.branch})) for other in others]
        return solve_outcomes(wanted, self.budget)

    def denies(self, facts: Mapping[str, Json]) -> bool:
        """Whether it denies there. What cannot be evaluated counts as a denial."""
        try:
            return self.rule.holds(facts) is self.placed.branch
        except LogicFailed:
            return True


def contradictions(subject: Subject) -> Iterator[Contradiction | Uncompared]:
    """Among rules that apply together, whatever their bundles: by intent, then by the facts that they read."""
    budget = _Budget(len(subject.rules))
    left, first = 0, ""
    for allows, denying in _compared(subject, budget.facts):
        if budget.spent:
            left, first = left + len(denying), first or allows.placed.at
        else:
            yield from _contradicted(allows, denying, budget)
    if left:
        yield Uncompared(pairs=left, at=first)


def _contradicted(allows: _Branch, denying: Sequence[_Branch], budget: _Budget) -> Iterator[Contradiction]:
    """What leaves nothing to allow: each that does so alone; where none does, those that do so together."""
    answer, against = _allowed(allows, denying, budget)
    if answer == "yes" or not against:
        return
    alone = [one for one in against if allows.beyond([one]).answer == "no"]
    for branch in alone:
        yield Contradiction(allows=allows.placed, denies=(branch.placed,))
    if not alone:
        yield Contradiction(allows=allows.placed, denies=tuple(one.placed for one in against), sure=answer == "no")


def _allowed(allows: _Branch, denying: Sequence[_Branch], budget: _Budget) -> tuple[Answer, list[_Branch]]:
    """Whether it allows where nothing denies, and what stands against that.

    Facts are looked for of which it allows. What denies there is taken in, and others are looked for, until there are
    some where nothing denies, or none.
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


def _compared(subject: Subject, budget: Tries) -> Iterator[tuple[_Branch, list[_Branch]]]:
    """An allowing branch, and those of other rules that deny, where it decides on all that they read.

    The rules that deny apply wherever the one that allows does.
    """
    found_each = [_denier(placed, subject, budget) for placed in _sound(subject, allow=False)]
    branches = [branch for branch in found_each if branch is not None]
    allowing = _sound(subject, allow=True) if branches else []
    if len(branches) * len(allowing) <= _FEW and not _may_meet(allowing, branches, subject):
        return
    denying = _by_intent_and_fact(branches)
    asked = {fact for branch in branches for fact in branch.reads} & _MATCHED
    for placed in allowing:
        known = list(known_within(placed.of.rule.applies_to)) if asked else []
        reads = _reads(placed, subject).union([fact for fact, _ in known])
        # What denies it for all of its intents denies it for the first.
        near = (
            denies
            for intent in (_EVERY, *placed.of.intents[:1])
            for fact in ("", *sorted(reads))
            for denies in denying.get((intent, fact), ())
        )
        others = [branch for branch in near if branch.reads <= reads and branch.placed.of.at != placed.of.at]
        if within := [other for other in others if applies_within(placed, other.placed)]:
            yield _Branch(placed, placed.of.rule.condition, reads, budget, [one for _, one in known]), within


def _may_meet(allowing: Sequence[PlacedEffect], denying: Sequence[_Branch], subject: Subject) -> bool:
    """Whether any that denies reads nothing but what an allowing one of another rule does, or what both are matched by.

    Of few it is asked of each pair: most packs have no such pair, and nothing else has to be made for them.
    """
    for branch in denying:
        asked = branch.reads - _MATCHED
        for placed in allowing:
            if placed.of is not branch.placed.of and asked <= _reads(placed, subject):
                return True
    return False


def _by_intent_and_fact(branches: Sequence[_Branch]) -> Mapping[tuple[str, str], list[_Branch]]:
    """The branches that deny, by intent, and by the fact among those they read that the fewest read."""
    readers: dict[str, int] = {}
    for fact in (fact for branch in branches for fact in branch.reads):
        readers[fact] = readers.get(fact, 0) + 1
    found: dict[tuple[str, str], list[_Branch]] = defaultdict(list)
    for branch in branches:
        rarest = min(branch.reads, key=lambda fact: (readers[fact], fact), default="")
        for intent in branch.placed.of.intents or (_EVERY,):
            found[intent, rarest].append(branch)
    return found


def _denier(placed: PlacedEffect, subject: Subject, budget: Tries) -> _Branch | None:
    """A branch that denies; None when the other one denies as well, and stands for both.

    One that denies in any case reads nothing, whatever its condition names.
    """
    rule = placed.of.rule
    if rule.otherwise is not None and rule.then.allow is False and rule.otherwise.allow is False:
        return _always(placed, budget) if placed.branch else None
    condition = _condition(placed, subject)
    branch = _Branch(placed, rule.condition, condition.reads, budget)
    # Most are seen to be no such rule by their form, or do not deny where nothing is known: that costs little.
    if condition.free or not branch.denies({}):
        return branch
    return _always(placed, budget) if can_be(rule.condition, not placed.branch, budget) == "no" else branch


def _always(placed: PlacedEffect, budget: Tries) -> _Branch:
    return _Branch(placed, placed.branch, frozenset(), budget)


def _reads(placed: PlacedEffect, subject: Subject) -> frozenset[str]:
    return _condition(placed, subject).reads


def _condition(placed: PlacedEffect, subject: Subject) -> Condition:
    return subject.once(conditions_at)[f"{placed.of.at}/if"]


def _sound(subject: Subject, *, allow: bool) -> list[PlacedEffect]:
    placed_effects, unsure = (
        [effect for effect in subject.effects if effect.effect.allow is allow],
        subject.once(unsound),
    )
    return (
        [placed_effect for placed_effect in placed_effects if f"{placed_effect.of.at}/if" not in unsure]
        if unsure
        else placed_effects
    )


def applies_within(inner: PlacedEffect, outer: PlacedEffect) -> bool:
    """Whether the rule of the second applies wherever that of the first does."""
    mine, theirs = inner.of.rule.applies_to, outer.of.rule.applies_to
    return all(name in mine and values_of(mine[name]) <= values_of(theirs[name]) for name in theirs)
