"""Whether a changed condition lets off whoever leaves a fact out: nobody escapes a restriction that way.

A run restricts where its condition comes to read a fact that is missing. What a condition reads depends on the others,
so cases are tried: those that its own constants suggest, each with one or more facts left out. A case that is found is
one; that none is found is no proof.
"""

import itertools
from collections.abc import Callable, Sequence

from contextplane.errors import ContextPlaneError
from contextplane.model.canonical import Json
from contextplane.policy.candidates import Uses
from contextplane.policy.condition import Condition, Failure
from contextplane.policy.facts import Facts
from contextplane.policy.logic import logic_problems
from contextplane.policy.solving import Tries

__all__ = ["Held", "lets_off"]

Held = Callable[[bool | Failure, bool], bool]
"""Whether the restriction is in force, by what the condition comes to and whether it came to read a missing fact."""

_CASES = 200
_FACTS = ("request", "user", "agent", "run")
_GIVEN = {"tenant_id": "tenant", "intent": "intent", "safety_mode": "read_only"}


def lets_off(old: Json, new: Json, held: Held, tries: Tries) -> str:
    """The facts that could be left out with a restriction before, and without one now; nothing when none is found."""
    if logic_problems(old) or logic_problems(new):
        return ""
    uses = Uses()
    uses.see(old)
    uses.see(new)
    paths = sorted(uses.paths)
    before, after = Condition(old), Condition(new)
    values = [[None, *(one for one in uses.candidates(path) if one is not None)] for path in paths]
    for chosen in itertools.islice(itertools.product(*values), _CASES):
        if tries.spent:
            break
        facts = _facts(paths, chosen) if None in chosen and tries.take() else None
        if facts is not None and _in_force(before, facts, held) and not _in_force(after, facts, held):
            return ", ".join(path for path, value in zip(paths, chosen, strict=True) if value is None)
    return ""


def _in_force(condition: Condition, facts: Facts, held: Held) -> bool:
    answer = condition.judge(facts)
    # What cannot be evaluated cannot be asked either what it comes to read.
    return held(answer, not isinstance(answer, Failure) and bool(condition.missing(facts)))


def _facts(paths: Sequence[str], values: Sequence[Json]) -> Facts | None:
    """A request in which each path leads to its value; None where there can be none."""
    data: dict[str, Json] = {**{name: {} for name in _FACTS}, **_GIVEN}
    for path, value in zip(paths, values, strict=True):
        *way, last = path.split(".")
        place: Json = data
        for step in way:
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if value is not None and isinstance(place, dict):
            place[last] = value
    try:
        return Facts.of(**data)  # type: ignore[arg-type]
    except (ContextPlaneError, TypeError):
        return None
