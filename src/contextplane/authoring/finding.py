"""What a gate finds: a law that a document breaks, the place, the cause and the cure.

What is said about a document repeats no secret that stands in it, not even where a name should stand.
"""

import re
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

from contextplane.model.value import Value
from contextplane.policy.detect.secrets import HIDDEN, holds_random_run, secret_shapes

__all__ = ["HIDDEN", "Broken", "Finding", "Gate", "Law", "Severity", "looks_secret", "without_secrets"]

S_contra = TypeVar("S_contra", contravariant=True)
"""What a law looks at: a law about texts holds for a pack as well, and not the other way round."""

Gate = Literal["schema", "integrity", "policy", "risk", "tenancy", "replay", "evaluation", "security"]

Severity = Literal["error", "warning", "unknown"]
"""`error` stops publication, `warning` does not. `unknown`: it cannot be told here; it is never taken for a pass."""


class Broken(Value, frozen=True):
    """A place where a law does not hold: a JSON Pointer, why, and what to do. `unknown`: it cannot be told."""

    at: str
    cause: str
    cure: str
    unknown: bool = False


class Law(Value, Generic[S_contra], frozen=True):
    """One thing that must hold. Its text is the docstring of `check`, which yields every place that breaks it."""

    gate: Gate
    code: str
    check: Callable[[S_contra], Iterable[Broken]]
    severity: Literal["error", "warning"] = "error"

    @property
    def text(self) -> str:
        return (self.check.__doc__ or "").strip()

    def findings(self, subject: S_contra) -> "Iterable[Finding]":
        return map(self.finding, self.check(subject))

    def finding(self, violation: Broken) -> "Finding":
        severity: Severity = "unknown" if violation.unknown else self.severity
        return Finding(
            gate=self.gate,
            code=self.code,
            severity=severity,
            at=violation.at,
            cause=violation.cause,
            cure=violation.cure,
        )


class Finding(Value, frozen=True):
    """One place where a law of a gate does not hold."""

    gate: Gate
    code: str
    severity: Severity
    at: str
    cause: str
    cure: str


_WORD = re.compile(r"[^\s'\"]+")
_STEP = re.compile(r"[^/]+")
_LONGEST = 1000
_LONG_STEP = re.compile(rf"[^/]{{{_LONGEST},}}")
"""No name is so long. To look for secrets in such a one takes long, and nobody reads it in a place."""


def looks_secret(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace"))) or holds_random_run(text)


def without_secrets(text: str, *, is_pointer: bool = False) -> str:
    """The same words, without those that look like secrets; of a JSON Pointer, without such steps and endless ones."""
    if is_pointer and len(text) > _LONGEST:
        text = _LONG_STEP.sub(lambda match: f"(a name of {len(match[0])} characters)", text)
    if not looks_secret(text):
        return text
    part = _STEP if is_pointer else _WORD
    hidden = part.sub(lambda match: HIDDEN if looks_secret(match[0]) else match[0], text)
    return HIDDEN if looks_secret(hidden) else hidden
