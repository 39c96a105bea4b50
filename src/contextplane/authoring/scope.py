"""Where a rule applies, as conditions on the facts: what `applies_to` matches, and what a fact can be at all."""

from collections.abc import Iterator, Mapping

from contextplane.model.canonical import Json
from contextplane.model.context_pack.terms import APPROVAL_MODES
from contextplane.policy.solving import Answer, Tries, can_be, solve

__all__ = ["MATCHED", "can_take_effect"]

MATCHED: Mapping[str, str] = {
    "intent": "intent",
    "channel": "request.channel",
    "role": "user.role",
    "safety_mode": "safety_mode",
    "tenant_id": "tenant_id",
}
"""Every key that `applies_to` may have, and the fact that it matches."""

AppliesTo = Mapping[str, str | tuple[str, ...]]


def can_take_effect(
    condition: Json, applies_to: AppliesTo, *, reads: frozenset[str], tries: Tries, wanted: bool = True
) -> Answer:
    """Whether a condition can be as wanted where it is asked at all."""
    within = [one for path, one in _known(applies_to) if path in reads]
    if not within:
        return can_be(condition, wanted, tries)
    return solve([(condition, wanted), *((one, True) for one in within)], tries).answer


def _known(applies_to: AppliesTo) -> Iterator[tuple[str, Json]]:
    """What is known of the facts wherever it is asked, each with the fact that it is known of."""
    yield "safety_mode", {"in": [{"var": "safety_mode"}, list(APPROVAL_MODES)]}
    for key, named in applies_to.items():
        if key in MATCHED:
            yield MATCHED[key], {"in": [{"var": MATCHED[key]}, [named] if isinstance(named, str) else list(named)]}
