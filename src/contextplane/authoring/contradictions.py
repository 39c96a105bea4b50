"""Rules that cannot both be meant: one allows only where another, of the same rank, denies."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from contextplane.authoring.conditions import reads_at, unsound
from contextplane.authoring.subject import PlacedEffect, Subject
from contextplane.model.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.logic import Expression, LogicFailed, compiled
from contextplane.policy.solving import Tries, follows, solve

__all__ = ["Contradiction", "Uncompared", "contradictions"]

_TRIES_PER_RULE = 50
_SOLVES_PER_RULE = 5
_FACTS_TRIED = 60_000
_EVERY = ""
"""Stands for every intent: the key of rules that name none."""


class Contradiction(Value, frozen=True):
    """`allows` takes effect only where `denies` does as well."""

    allows: PlacedEffect
    denies: PlacedEffect


class Uncompared(Value, frozen=True):
    """How many pairs of rules were left, so that the work stays in proportion to the pack; the place of the first."""

    pairs: int
    at: str


class _Branch:
    """An effect, when it takes effect, and the facts that this depends on."""

    def __init__(self, placed: PlacedEffect, subject: Subject, budget: Tries) -> None:
        self.placed = placed
        self.budget = budget
        self.condition = placed.of.rule.condition
        self.reads = subject.once(reads_at)[f"{placed.of.at}/if"]

    @cached_property
    def rule(self) -> Expression:
        return compiled(self.condition)

    @cached_property
    def witness(self) -> Mapping[str, Json] | None:
        """Facts of which it takes effect; None when none are known."""
        found = solve([(self.condition, self.placed.branch)], self.budget)
        return found.facts if found.answer == "yes" else None

    def takes_effect(self, facts: Mapping[str, Json]) -> bool:
        try:
            return self.rule.holds(facts) is self.placed.branch
        except LogicFailed:
            return False


def contradictions(subject: Subject) -> Iterator[Contradiction | Uncompared]:
    """Among rules of one rank that apply together: by bundle priority, then by intent."""
    tries, solves = (many * max(1, len(subject.rules)) for many in (_TRIES_PER_RULE, _SOLVES_PER_RULE))
    left: list[str] = []
    budget = Tries(_FACTS_TRIED)
    for allows, denies in _pairs(subject, budget):
        if tries == 0 or solves == 0 or budget.spent:
            left.append(allows.placed.at)
            continue
        tries -= 1
        # Most pairs part ways at the first facts that are tried; only the others are worth a proof.
        if allows.witness is not None and denies.takes_effect(allows.witness):
            solves -= 1
            if _only_where(allows, denies):
                yield Contradiction(allows=allows.placed, denies=denies.placed)
    if left:
        yield Uncompared(pairs=len(left), at=left[0])


def _only_where(inner: _Branch, outer: _Branch) -> bool:
    """Whether the second takes effect whenever the first does."""
    one, other = ((branch.condition, branch.placed.branch) for branch in (inner, outer))
    return follows(one, other, inner.budget)


def _pairs(subject: Subject, budget: Tries) -> Iterator[tuple[_Branch, _Branch]]:
    """An allowing and a denying branch of different rules, where the one decides on all that the other reads.

    The rule that denies applies wherever the one that allows does.
    """
    denying = _denying(subject, budget)
    if not denying:
        return
    for placed in _sound(subject, allow=True):
        branch, priority = _Branch(placed, subject, budget), placed.of.bundle.priority
        # What denies it for all of its intents denies it for the first.
        for intent in (_EVERY, *placed.of.intents[:1]):
            for fact in ("", *branch.reads):
                for denies in denying.get((priority, intent, fact), ()):
                    same = placed.of.at == denies.placed.of.at
                    if not same and denies.reads <= branch.reads and _applies_within(placed, denies.placed):
                        yield branch, denies


def _denying(subject: Subject, budget: Tries) -> Mapping[tuple[int, str, str], list[_Branch]]:
    """The branches that deny, by priority, intent, and the fact among those they read that the fewest read."""
    branches = [_Branch(placed, subject, budget) for placed in _sound(subject, allow=False)]
    readers = Counter(fact for branch in branches for fact in branch.reads)
    found: dict[tuple[int, str, str], list[_Branch]] = defaultdict(list)
    for branch in branches:
        rarest = min(branch.reads, key=lambda fact: (readers[fact], fact), default="")
        of = branch.placed.of
        for intent in of.intents or (_EVERY,):
            found[of.bundle.priority, intent, rarest].append(branch)
    return found


def _sound(subject: Subject, *, allow: bool) -> Iterator[PlacedEffect]:
    unsure = subject.once(unsound)
    return (one for one in subject.effects if one.effect.allow is allow and f"{one.of.at}/if" not in unsure)


def _applies_within(inner: PlacedEffect, outer: PlacedEffect) -> bool:
    """Whether the rule of the second applies wherever that of the first does."""
    mine, theirs = inner.of.rule.applies_to, outer.of.rule.applies_to
    return all(name in mine and _values(mine[name]) <= _values(theirs[name]) for name in theirs)


def _values(named: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset((named,) if isinstance(named, str) else named)
