"""Whether the constraints of an argument can be kept at all."""

from contextplane.model.canonical import Json
from contextplane.model.context_pack.arguments import ArgConstraint

__all__ = ["leaves_nothing"]


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
