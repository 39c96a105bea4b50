"""Whether a condition comes to true or false. To anything else a run has no answer, and takes that for a denial."""

from contextplane.model.canonical import Json
from contextplane.policy.operators import COMPARING, ORDERING, PER_ELEMENT, operation
from contextplane.policy.solving import Answer

__all__ = ["answers"]

_DECIDES = COMPARING | {"!", "!!", "in", "all", "none", "some"}
_MAY_DECIDE = frozenset({"var", "reduce"})


def answers(expression: Json) -> Answer:
    """By its form alone: always, never, or as the facts are."""
    operator, operands = operation(expression)
    if not operator:
        return "yes" if isinstance(expression, bool) else "no"
    if operator in _DECIDES:
        return "no" if _always_fails(operator, operands) else "yes"
    if operator in _MAY_DECIDE:
        return "unknown"
    if operator in {"and", "or"}:
        # Each of them may be what it comes to: the first that decides it, or the last.
        return _together([answers(one) for one in operands])
    if operator in {"if", "?:"}:
        return _together([answers(one) for one in _ends(operands)])
    return "no"


def _always_fails(operator: str, operands: list[Json]) -> bool:
    """True and false have no order, and only a list can be gone through."""
    if operator in ORDERING:
        return any(isinstance(one, bool) for one in operands[:2])
    return operator in PER_ELEMENT and any(isinstance(one, str | bool | int | float) for one in operands[:1])


def _ends(operands: list[Json]) -> list[Json]:
    """What an `if` may come to: every second part, and the last. Without a last one it may be nothing."""
    ends = operands[1::2]
    return [*ends, operands[-1] if len(operands) % 2 else None]


def _together(parts: list[Answer]) -> Answer:
    if all(one == "yes" for one in parts) and parts:
        return "yes"
    return "no" if all(one == "no" for one in parts) else "unknown"
