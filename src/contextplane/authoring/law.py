"""A law of a gate, the violations that its check yields, and the findings that are made of them.

A message about a document repeats no secret of the document, not even in the place of a name: `redact_secrets`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

from contextplane.model.value import Value
from contextplane.policy.detect.secrets import HIDDEN, holds_random_run, secret_shapes

__all__ = ["HIDDEN", "Finding", "Gate", "Law", "Severity", "Violation", "looks_secret", "redact_secrets"]

S_contra = TypeVar("S_contra", contravariant=True)
"""The subject that a law checks. Contravariant: a law about texts also checks a pack, not the other way round."""

Gate = Literal["schema", "integrity", "policy", "risk", "tenancy", "replay", "evaluation", "security"]

Severity = Literal["error", "warning", "unknown"]
"""`error` stops publication, `warning` does not. `unknown`: the law cannot be decided here, which is never a pass."""


class Violation(Value, frozen=True):
    """A place where a law does not hold: a JSON Pointer, the cause, and the cure.

    `unknown`: whether it holds cannot be decided.
    """

    at: str
    cause: str
    cure: str
    unknown: bool = False


class Law(Value, Generic[S_contra], frozen=True):
    """One thing that must hold. `check` yields every violation; its docstring is the text of the law.

    `about`: the attribute of the subject that holds all that the law is about. Where it is empty, `check` yields
    nothing, so that all laws about one part can be skipped at once.
    """

    gate: Gate
    code: str
    check: Callable[[S_contra], Iterable[Violation]]
    severity: Literal["error", "warning"] = "error"
    about: str = ""

    @property
    def text(self) -> str:
        return (self.check.__doc__ or "").strip()

    def findings(self, subject: S_contra) -> "Iterable[Finding]":
        return map(self.finding, self.check(subject))

    def finding(self, violation: Violation) -> "Finding":
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
    """A violation of a law, with the gate, the code and the severity of the law."""

    gate: Gate
    code: str
    severity: Severity
    at: str
    cause: str
    cure: str


# --- secrets in messages ---

_WORD = re.compile(r"[^\s'\"]+")
_STEP = re.compile(r"[^/]+")
_LONGEST = 1000
_LONG_STEP = re.compile(rf"[^/]{{{_LONGEST},}}")
"""No name is so long. Looking for secrets in such a step takes long, and no reader needs it in a place."""


def looks_secret(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace"))) or holds_random_run(text)


def redact_secrets(text: str, *, is_pointer: bool = False) -> str:
    """Hide the words of a text that look like secrets; in a JSON Pointer, such steps and very long ones."""
    if is_pointer and len(text) > _LONGEST:
        text = _LONG_STEP.sub(lambda match: f"(a name of {len(match[0])} characters)", text)
    if not looks_secret(text):
        return text
    part = _STEP if is_pointer else _WORD
    hidden = part.sub(lambda match: HIDDEN if looks_secret(match[0]) else match[0], text)
    return HIDDEN if looks_secret(hidden) else hidden
