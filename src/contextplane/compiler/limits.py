"""The limits on the arguments and the calls of a tool: as the manifest has them, and in words.

What a redaction hides, and a text that is no word, is in neither: such a bound is named by its fact.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from contextplane.compiler.quotation import quote, quote_json
from contextplane.model.arguments import BoundName, ResolvedConstraint
from contextplane.model.compiled_context import ArgumentLimit, CallLimitEntry, LimitFact
from contextplane.policy.decision import ArgumentBound, BoundFact, ToolLimit
from contextplane.policy.redaction.redactor import Redactor

__all__ = ["ToolKind", "describe_call_limit", "describe_limit", "is_required", "sort_call_limits", "sort_limits"]

ToolKind = Literal["read", "write"]
"""Whether a tool can change anything."""

_WORD = re.compile(r"[A-Za-z0-9_.:@/+-]{1,128}")
_BOUNDS: dict[BoundName, str] = {"min": "at least", "max": "at most", "equals": "equal to"}


def sort_limits(bounds: Iterable[ArgumentBound], redactor: Redactor) -> tuple[ArgumentLimit, ...]:
    """The limits by argument, then by origin, so that their order in the pack does not matter."""
    return tuple(_limit(bound, redactor) for bound in sorted(bounds, key=lambda bound: (bound.argument, bound.origin)))


def _limit(bound: ArgumentBound, redactor: Redactor) -> ArgumentLimit:
    facts = tuple(_limit_fact(fact, bound.constraint, redactor) for fact in bound.facts)
    constraint = bound.constraint
    for fact in facts:
        if fact.masked:
            constraint = replace(constraint, **{fact.bound: None})
    return ArgumentLimit(
        argument=bound.argument,
        constraint=constraint,
        origin=bound.origin,
        scoped=bound.capability is not None,
        facts=facts,
    )


def _limit_fact(fact: BoundFact, constraint: ResolvedConstraint, redactor: Redactor) -> LimitFact:
    value = getattr(constraint, fact.bound)
    # A caller's sentence would stand among instructions.
    masked = isinstance(value, str) and _WORD.fullmatch(value) is None
    for name in reversed(fact.path.split(".")):
        value = {name: value}
    masked = not fact.problem and (masked or bool(redactor.mask_value(value).redactions))
    return LimitFact(bound=fact.bound, fact=fact.path, problem=fact.problem or None, masked=masked)


def is_required(limit: ArgumentLimit, kind: ToolKind) -> bool:
    """Whether a call must have the argument. A rule for every tool requires one only of those that write.

    The gateway checks calls by the same law: a lookup does not need the amount of a refund.
    """
    return limit.constraint.required and _concerns(limit, kind)


def _concerns(limit: ArgumentLimit, kind: ToolKind) -> bool:
    """Whether a limit concerns the calls of a tool that do not have the argument."""
    return kind == "write" or limit.scoped or not limit.origin.startswith("rule:")


def describe_limit(limit: ArgumentLimit, kind: ToolKind) -> str | None:
    """Describe a limit in words; None if it requires nothing of this tool."""
    words = ", ".join(_words(limit, kind))
    return f"{limit.argument} {words}" if words else None


def _words(limit: ArgumentLimit, kind: ToolKind) -> Iterator[str]:
    constraint = limit.constraint
    bounds = [*_bound_words(limit)]
    if is_required(limit, kind):
        yield "required"
    elif constraint.required and not bounds and not any(fact.problem for fact in limit.facts):
        return
    yield from bounds
    for fact in limit.facts:
        if fact.problem:
            what = "no call is allowed" if _concerns(limit, kind) else "no value is allowed"
            yield f"{what}, because {quote(fact.fact)} {fact.problem}"
    if constraint.unless_approved:
        yield "unless approved"


def _bound_words(limit: ArgumentLimit) -> Iterator[str]:
    """Describe what bounds the value, and of a bound that is the value of a fact, which fact."""
    constraint = limit.constraint
    facts = {fact.bound: fact for fact in limit.facts if not fact.problem}
    for name, words in _BOUNDS.items():
        value, fact = getattr(constraint, name), facts.get(name)
        if fact is not None and fact.masked:
            yield f"{words} {quote(fact.fact)}"
        elif value is not None:
            yield f"{words} {quote_json(value)}" + ("" if fact is None else f" ({quote(fact.fact)})")
    if constraint.enum is not None:
        yield f"one of {quote_json(constraint.enum)}"
    if constraint.pattern is not None:
        yield f"matching {quote(constraint.pattern)}"


def sort_call_limits(limits: Iterable[ToolLimit]) -> tuple[CallLimitEntry, ...]:
    """The limits of calls in one order, so that theirs in the pack does not matter."""
    entries = [CallLimitEntry(limit=limit.limit, origin=limit.origin) for limit in limits]
    return tuple(sorted(entries, key=lambda entry: (describe_call_limit(entry), entry.origin)))


def describe_call_limit(entry: CallLimitEntry) -> str:
    """Describe a limit of calls, such as `at most 3 calls per user in 24h`."""
    limit = entry.limit
    what = f"at most {limit.max_calls} call{'' if limit.max_calls == 1 else 's'}"
    if limit.sum_of is not None:
        what = f"{limit.sum_of} at most {quote_json(limit.max)} in all"
    return f"{what} per {limit.per}" + (f" in {limit.period}" if limit.period else "")
