"""What bounds the arguments of a tool, as a model is told of it."""

from collections.abc import Iterable, Iterator
from typing import Literal

from contextplane.compiler.quoting import quoted, quoted_json
from contextplane.model.compiled_context import ArgumentLimit
from contextplane.policy.decision import ArgumentBound

__all__ = ["Kind", "is_needed", "limits", "told_of"]

Kind = Literal["read", "write"]
"""Whether a tool can change anything."""


def limits(bounds: Iterable[ArgumentBound]) -> tuple[ArgumentLimit, ...]:
    """By argument, then by origin: so the order of permissions and of arguments in the pack does not matter."""
    return tuple(
        ArgumentLimit(argument=one.argument, constraint=one.constraint, origin=one.origin)
        for one in sorted(bounds, key=lambda one: (one.argument, one.origin))
    )


def is_needed(limit: ArgumentLimit, kind: Kind) -> bool:
    """Whether a call must give the argument. A rule asks for one only of what can change something.

    The gateway judges calls by the same law: a lookup does not need the amount of a refund.
    """
    return limit.constraint.required and (kind == "write" or not limit.origin.startswith("rule:"))


def told_of(limit: ArgumentLimit, kind: Kind) -> str | None:
    """One bound in words; None when it asks nothing of this tool."""
    words = ", ".join(_words(limit, kind))
    return f"{limit.argument} {words}" if words else None


def _words(limit: ArgumentLimit, kind: Kind) -> Iterator[str]:
    constraint = limit.constraint
    if is_needed(limit, kind):
        yield "required"
    elif constraint.required and not _bounds_values(limit):
        return
    if constraint.min is not None:
        yield f"at least {quoted_json(constraint.min)}"
    if constraint.max is not None:
        yield f"at most {quoted_json(constraint.max)}"
    if constraint.enum is not None:
        yield f"one of {quoted_json(constraint.enum)}"
    if constraint.pattern is not None:
        yield f"matching {quoted(constraint.pattern)}"
    if constraint.unless_approved:
        yield "unless approved"


def _bounds_values(limit: ArgumentLimit) -> bool:
    constraint = limit.constraint
    return any(one is not None for one in (constraint.min, constraint.max, constraint.enum, constraint.pattern))
