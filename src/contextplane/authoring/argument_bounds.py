"""Whether the constraints of an argument can be kept at all, and whether they bound it: some leave everything."""

from contextplane.model.canonical import Json
from contextplane.model.context_pack.arguments import ArgConstraint
from contextplane.policy.patterns import pattern_matches, pattern_problem

__all__ = ["bounds", "leaves_every_text", "leaves_nothing"]

_LARGEST = 2**53 - 1
"""No number of a call is beyond it, on either side."""

_ANY_TEXTS = ("a", "Z", "7", "~", "\u00e9", "x y", "../x", "'; --", "word " * 10_000)
"""Of every kind, short and long: what is found in all of these is found in every text of one line."""


def bounds(constraint: ArgConstraint) -> bool:
    """Whether a value that somebody may give breaks it. That it has to be there says nothing of what it is."""
    low, high = constraint.min, constraint.max
    if constraint.enum is not None or (high is not None and high < _LARGEST):
        return True
    # From below alone, an amount is bounded by its sign.
    if low is not None and low >= 0:
        return True
    return constraint.pattern is not None and not leaves_every_text(constraint.pattern)


def leaves_every_text(pattern: str) -> bool:
    """Whether a pattern is found in every text of one line. One that has a problem is told elsewhere."""
    return pattern_problem(pattern) is None and all(pattern_matches(pattern, text) for text in _ANY_TEXTS)


def leaves_nothing(constraint: ArgConstraint) -> str | None:
    """Why no value at all keeps a constraint; None when one may. Its pattern is one that has no problem."""
    low, high = constraint.min, constraint.max
    if low is not None and high is not None and low > high:
        return f"min {low} is above max {high}"
    if constraint.pattern is not None and (low is not None or high is not None):
        return "a number has no pattern, and a text has no bounds"
    if constraint.enum is not None and not any(_keeps(one, constraint) for one in constraint.enum):
        return "none of the values of enum keeps the other constraints"
    return None


def _keeps(value: Json, constraint: ArgConstraint) -> bool:
    # Here and not above: few constraints have an enum, and what checks calls takes a while to load.
    from contextplane.policy.arguments import violations  # noqa: PLC0415
    from contextplane.policy.decision import ArgumentBound  # noqa: PLC0415

    bound = ArgumentBound(argument="it", constraint=constraint, origin="", at="")
    return not violations((bound,), {"it": value}, approved=False, changes=True)
