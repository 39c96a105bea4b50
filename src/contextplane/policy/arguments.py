"""The arguments of one call against everything that bounds them: all violations, told together. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from contextplane.model.context_pack import ArgConstraint
from contextplane.model.json.canonical import MAX_INTEGER, Json
from contextplane.model.value import Value
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.regex_safety import pattern_matches

__all__ = ["Violation", "violations"]

Broken = Literal["required", "type", "min", "max", "enum", "pattern"]
_SHOWN = 60


class Violation(Value, frozen=True):
    """An argument that breaks a bound, who set that bound, and where it is written."""

    argument: str
    broken: Broken
    message: str
    origin: str
    at: str


def violations(
    bounds: Sequence[ArgumentBound], arguments: Mapping[str, Json], *, approved: bool, changes: bool
) -> tuple[Violation, ...]:
    """Everything that is wrong with these arguments.

    `approved`: an approval was given for this very call, and lifts the bounds that say `unless_approved`. `changes`:
    the call can change something. A rule binds every call, whatever its tool; that an argument is required by a rule
    holds only for calls that can change something, so that a lookup does not need the amount of a refund.
    """
    violations: list[Violation] = []
    for bound in bounds:
        if approved and bound.constraint.unless_approved:
            continue
        needed = bound.constraint.required and (changes or not bound.origin.startswith("rule:"))
        given = list(_values(arguments, bound.argument))
        if needed and not any(value is not None for value in given):
            violations.append(_violation(bound, "required", "is required"))
        if _bounds_values(bound.constraint) and _stands_in_no_object(arguments, bound.argument):
            violations.append(_violation(bound, "type", "must stand in an object"))
        for value in given:
            if value is None and not _bounds_values(bound.constraint):
                continue
            violations += [_violation(bound, broken, message) for broken, message in _broken(bound.constraint, value)]
    return tuple(violations)


def _values(arguments: Mapping[str, Json], name: str) -> Iterator[Json]:
    """What is given under a name: as it is written, and as a way into objects. Both count, so neither is a way out."""
    if name in arguments:
        yield arguments[name]
    if "." not in name:
        return
    value: Json = dict(arguments)
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return
        value = value[step]
    yield value


def _stands_in_no_object(arguments: Mapping[str, Json], name: str) -> bool:
    """Whether the way of a name ends at a list, or a text: what may hide there cannot be held to the bound."""
    value: Json = dict(arguments)
    for step in name.split("."):
        if not isinstance(value, dict):
            return value is not None
        value = value.get(step)
    return False


def _bounds_values(constraint: ArgConstraint) -> bool:
    return any(one is not None for one in (constraint.min, constraint.max, constraint.enum, constraint.pattern))


def _broken(constraint: ArgConstraint, value: Json) -> Iterator[tuple[Broken, str]]:
    """Types are strict: a text that spells a number is none, and neither is true."""
    if constraint.min is not None or constraint.max is not None:
        if isinstance(value, int | float) and _is_number(value):
            yield from _beyond(constraint, value)
        else:
            yield "type", "must be a number"
    if constraint.enum is not None and not any(_same(value, one) for one in constraint.enum):
        yield "enum", f"must be one of {', '.join(map(repr, constraint.enum))}"[:200]
    if constraint.pattern is not None:
        if not isinstance(value, str):
            yield "type", "must be a text"
        elif not pattern_matches(constraint.pattern, value):
            yield "pattern", f"must match {constraint.pattern[:_SHOWN]}"


def _is_number(value: float) -> bool:
    """Whether it is one that everybody reads alike: not true, not infinite, and no integer beyond 2^53-1."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= MAX_INTEGER
    return math.isfinite(value)


def _beyond(constraint: ArgConstraint, value: float) -> Iterator[tuple[Broken, str]]:
    if constraint.min is not None and value < constraint.min:
        yield "min", f"must be at least {constraint.min}"
    if constraint.max is not None and value > constraint.max:
        yield "max", f"must be at most {constraint.max}"


def _same(value: Json, other: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are one number, and true is none."""
    return value == other and isinstance(value, bool) is isinstance(other, bool)


def _violation(bound: ArgumentBound, broken: Broken, message: str) -> Violation:
    return Violation(argument=bound.argument, broken=broken, message=message, origin=bound.origin, at=bound.at)
