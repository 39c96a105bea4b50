"""Why the policy or the tools of a pack are not taken at all: what a run could not hold to is refused before it."""

from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = [
    "AmbiguousPart",
    "ConditionUnusable",
    "GateUnknown",
    "PatternUnusable",
    "PolicyRefused",
    "ScopeUnusable",
    "Unusable",
    "refuse_all",
]


class PolicyRefused(ContextPlaneError):
    """A policy that cannot be held to. The error is that of its first problem; `details.problems` lists all of them."""

    code: ClassVar[str] = "policy_refused"
    family: ClassVar[Family] = "refused"


class ConditionUnusable(PolicyRefused):
    """A condition with an unknown operator, one that is too large or too deep, or one that computes what it reads."""

    code: ClassVar[str] = "policy_condition_unusable"


class ScopeUnusable(PolicyRefused):
    """A rule that applies by something that no run is matched by, or to nothing: it would never take effect."""

    code: ClassVar[str] = "policy_scope_unusable"


class GateUnknown(PolicyRefused):
    """A rule or a permission asks for an approval gate that nobody declared: nobody could ever approve."""

    code: ClassVar[str] = "policy_gate_unknown"


class PatternUnusable(PolicyRefused):
    """The pattern of an argument is no regular expression, or one that could take for ever."""

    code: ClassVar[str] = "policy_pattern_unusable"


class AmbiguousPart(PolicyRefused):
    """Two parts have one id, so that a verdict could not say which of them it is about."""

    code: ClassVar[str] = "policy_part_ambiguous"


class Unusable(Value, frozen=True):
    """One problem: which refusal it is, its place as a JSON Pointer into the pack, what, and the way out."""

    refusal: type[PolicyRefused]
    at: str
    message: str
    hint: str


def refuse_all(problems: Sequence[Unusable]) -> None:
    """Refuse, when there is anything to refuse, and tell everything at once."""
    if not problems:
        return
    first, *more = problems
    also = f" (and {len(more)} more)" if more else ""
    told = [{"code": one.refusal.code, "at": one.at, "message": one.message} for one in problems]
    raise first.refusal(f"{first.message}{also}", at=first.at, hint=first.hint, details={"problems": told})
