"""Where a rule applies, as conditions on the facts: what `applies_to` matches, and what a fact can be at all."""

from collections.abc import Iterator, Mapping

from contextplane.authoring.conditions import Condition
from contextplane.model.canonical import Json, canonical
from contextplane.model.context_pack.terms import APPROVAL_MODES
from contextplane.policy.facts import MATCHED
from contextplane.policy.logic import LogicFailed, compiled
from contextplane.policy.solving import Answer, Tries, can_be, solve

__all__ = ["MATCHED", "AppliesTo", "can_take_effect", "known_within", "values_of"]

_FACTS = frozenset(MATCHED.values())
"""All of which something can be known."""

AppliesTo = Mapping[str, str | tuple[str, ...]]
"""What a rule is matched by, and of each the values that it is for: one, or any of several."""


def can_take_effect(one: Condition, applies_to: AppliesTo, tries: Tries, *, wanted: bool = True) -> Answer:
    """Whether a condition can be as wanted where it is asked at all."""
    if not one.reads and b'"var"' not in canonical(one.expression):
        return _constantly(one.expression, wanted=wanted)
    within = () if _FACTS.isdisjoint(one.reads) else tuple(known_within(applies_to, one.reads))
    if not within:
        return "yes" if one.free else can_be(one.expression, wanted, tries)
    return solve([(one.expression, wanted), *((known, True) for _, known in within)], tries).answer


def _constantly(condition: Json, *, wanted: bool) -> Answer:
    """The same of a condition that reads nothing: it comes to the same in every run."""
    try:
        return "yes" if compiled(condition).holds({}) is wanted else "no"
    except LogicFailed:
        return "no"


def known_within(applies_to: AppliesTo, reads: frozenset[str] = _FACTS) -> Iterator[tuple[str, Json]]:
    """What is known of these facts wherever it is asked, each with the fact that it is known of."""
    if "safety_mode" in reads:
        yield "safety_mode", {"in": [{"var": "safety_mode"}, list(APPROVAL_MODES)]}
    for key, named in applies_to.items():
        if key in MATCHED and MATCHED[key] in reads:
            yield MATCHED[key], {"in": [{"var": MATCHED[key]}, [*sorted(values_of(named))]]}


def values_of(named: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset((named,) if isinstance(named, str) else named)
