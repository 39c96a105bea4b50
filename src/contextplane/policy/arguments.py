"""Checks the arguments of one call against all of their bounds and reports every violation. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from contextplane.model.arguments import BoundName, ResolvedConstraint
from contextplane.model.json.canonical import MAX_INTEGER, Json
from contextplane.model.value import Value
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.regex_safety import pattern_matches

__all__ = ["ArgumentViolation", "violations"]

BoundKind = Literal["required", "type", "min", "max", "enum", "equals", "pattern", "fact"]
_SHOWN = 60


class ArgumentViolation(Value, frozen=True):
    """An argument that violates a bound: who set the bound, and where it is written."""

    argument: str
    broken: BoundKind
    message: str
    origin: str
    at: str


def violations(
    bounds: Sequence[ArgumentBound], arguments: Mapping[str, Json], *, approved: bool, changes: bool
) -> tuple[ArgumentViolation, ...]:
    """Every violation of these bounds by the arguments of one call.

    `approved`: an approval was given for this very call, and lifts the bounds that say `unless_approved`. `changes`:
    the call can change something. A rule that names no capability binds every call of every tool, but its `required`
    holds only for calls that can change something, so that a lookup does not need the amount of a refund. The same
    holds for a bound by a fact that is missing or has a wrong type: no call keeps it.
    """
    violations: list[ArgumentViolation] = []
    for bound in bounds:
        if approved and bound.constraint.unless_approved:
            continue
        concerned = changes or not bound.is_general
        values = list(_values(arguments, bound.argument))
        if concerned and bound.constraint.required and not any(value is not None for value in values):
            violations.append(_violation(bound, "required", "is required"))
        is_hidden = _leaves_objects(arguments, bound.argument)
        if bound.problem and (concerned or values or is_hidden):
            violations.append(_violation(bound, "fact", f"cannot be checked: {bound.problem}"))
        if _bounds_values(bound.constraint) and is_hidden:
            violations.append(_violation(bound, "type", "must stand in an object"))
        for value in values:
            if value is None and not _bounds_values(bound.constraint):
                continue
            violations += [_violation(bound, kind, message) for kind, message in _constraint_violations(bound, value)]
    return tuple(violations)


def _values(arguments: Mapping[str, Json], name: str) -> Iterator[Json]:
    """The values under a name: read as a key, and as a dotted path into objects.

    Both count, so that neither is a way around the bound.
    """
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


def _leaves_objects(arguments: Mapping[str, Json], name: str) -> bool:
    """Whether the dotted path meets a list or a text: a value hidden there cannot be checked."""
    value: Json = dict(arguments)
    for step in name.split("."):
        if not isinstance(value, dict):
            return value is not None
        value = value.get(step)
    return False


def _bounds_values(constraint: ResolvedConstraint) -> bool:
    bounds = (constraint.min, constraint.max, constraint.enum, constraint.equals, constraint.pattern)
    return any(bound is not None for bound in bounds)


def _constraint_violations(bound: ArgumentBound, value: Json) -> Iterator[tuple[BoundKind, str]]:
    """The violations of one constraint by a value. Types are strict: neither "5" nor true is a number."""
    constraint = bound.constraint
    if constraint.min is not None or constraint.max is not None:
        if isinstance(value, int | float) and _is_number(value):
            yield from _range_violations(bound, value)
        else:
            yield "type", "must be a number"
    if constraint.equals is not None and not _is_equal(value, constraint.equals):
        yield "equals", f"must be {_bound_text(bound, 'equals', constraint.equals)}"
    if constraint.enum is not None and not any(_is_equal(value, allowed) for allowed in constraint.enum):
        yield "enum", f"must be one of {', '.join(map(repr, constraint.enum))}"[:200]
    if constraint.pattern is not None:
        if not isinstance(value, str):
            yield "type", "must be a text"
        elif not pattern_matches(constraint.pattern, value):
            yield "pattern", f"must match {constraint.pattern[:_SHOWN]}"


def _is_number(value: float) -> bool:
    """Whether every program reads the number alike: not true, not infinite, not beyond 2^53-1."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= MAX_INTEGER
    return math.isfinite(value)


def _range_violations(bound: ArgumentBound, value: float) -> Iterator[tuple[BoundKind, str]]:
    low, high = bound.constraint.min, bound.constraint.max
    if low is not None and value < low:
        yield "min", f"must be at least {_bound_text(bound, 'min', low)}"
    if high is not None and value > high:
        yield "max", f"must be at most {_bound_text(bound, 'max', high)}"


def _bound_text(bound: ArgumentBound, name: BoundName, value: Json) -> str:
    """A bound in a message. The value of a fact may be a secret: the fact is named instead."""
    paths = [fact.path for fact in bound.facts if fact.bound == name]
    return paths[0] if paths else repr(value)[:_SHOWN]


def _is_equal(value: Json, other: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are the same number, and true is not a number."""
    return value == other and isinstance(value, bool) is isinstance(other, bool)


def _violation(bound: ArgumentBound, broken: BoundKind, message: str) -> ArgumentViolation:
    return ArgumentViolation(argument=bound.argument, broken=broken, message=message, origin=bound.origin, at=bound.at)
