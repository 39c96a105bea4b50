"""Explains the names that `ctx` prints: a gate with its laws, a law, an error, or a reason.

Everything stands in `explanations.json`, which `make docs` writes: explaining an error does not import what raises it.
"""

import os
from typing import Literal

import msgspec

from contextplane.errors import Family
from contextplane.model.suggestion import closest_name
from contextplane.model.value import Value

__all__ = [
    "ErrorEntry",
    "ErrorExplanation",
    "Explanation",
    "Explanations",
    "GateExplanation",
    "LawEntry",
    "LawExplanation",
    "ReasonEntry",
    "ReasonExplanation",
    "find_explanation",
    "load_explanations",
]


class ErrorEntry(Value, frozen=True):
    """An error class in the data: its family, its docstring, and the ways out that its hints name."""

    family: Family
    means: str
    to_do: tuple[str, ...]


class LawEntry(Value, frozen=True):
    """A law in the data: its gate, the severity of breaking it, its text, and the cures that it names."""

    gate: str
    severity: Literal["error", "warning"]
    law: str
    to_do: tuple[str, ...]


class ReasonEntry(Value, frozen=True):
    """A reason of a compiled context in the data: the kinds of its items, its meaning, the ways out."""

    kinds: tuple[str, ...]
    means: str
    to_do: tuple[str, ...]


class Explanations(Value, frozen=True):
    """The whole data: gates in the order in which they judge; laws, errors and reasons by code."""

    gates: tuple[str, ...]
    laws: dict[str, LawEntry]
    errors: dict[str, ErrorEntry]
    reasons: dict[str, ReasonEntry]


class ErrorExplanation(Value, frozen=True):
    """An error of `ctx`: what it means, the family that decides its exit status, and what to do."""

    code: str
    family: Family
    means: str
    to_do: tuple[str, ...]


class LawExplanation(Value, frozen=True):
    """A law: its gate, its code, the severity of breaking it, its text, and what to do.

    `error`: the error of the same code, if there is one.
    """

    gate: str
    code: str
    severity: Literal["error", "warning"]
    law: str
    to_do: tuple[str, ...]
    error: ErrorExplanation | None = None


class GateExplanation(Value, frozen=True):
    """A gate and all of its laws, for every kind of document."""

    gate: str
    laws: tuple[LawExplanation, ...]


class ReasonExplanation(Value, frozen=True):
    """A reason of a compiled context: why an item is left out, masked, or answers nothing."""

    code: str
    kinds: tuple[str, ...]
    means: str
    to_do: tuple[str, ...]


Explanation = GateExplanation | LawExplanation | ErrorExplanation | ReasonExplanation


def load_explanations() -> Explanations:
    """Read the explanations of every gate, law, error and reason."""
    with open(os.path.join(os.path.dirname(__file__), "explanations.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=Explanations)


def find_explanation(name: str) -> Explanation:
    """Explain the gate, law, error or reason of this name. An unknown name is refused with the nearest."""
    entries = load_explanations()
    if (gate := name.removesuffix("/")) in entries.gates:
        codes = [code for code, law in entries.laws.items() if law.gate == gate]
        return GateExplanation(gate=gate, laws=tuple(_law_explanation(code, entries) for code in codes))
    code = name.rpartition("/")[2]  # as lint prints it: risk/destructive_without_gate
    if code in entries.laws:
        return _law_explanation(code, entries)
    if code in entries.errors:
        return _error_explanation(code, entries)
    if code in entries.reasons:
        reason = entries.reasons[code]
        return ReasonExplanation(code=code, kinds=reason.kinds, means=reason.means, to_do=reason.to_do)
    from contextplane.authoring.artifacts import LawUnknown

    raise LawUnknown(f"no gate, law, error or reason has the name {name[:60]!r}", hint=_hint(code, entries))


def _law_explanation(code: str, entries: Explanations) -> LawExplanation:
    law = entries.laws[code]
    return LawExplanation(
        gate=law.gate,
        code=code,
        severity=law.severity,
        law=law.law,
        to_do=law.to_do,
        error=_error_explanation(code, entries) if code in entries.errors else None,
    )


def _error_explanation(code: str, entries: Explanations) -> ErrorExplanation:
    error = entries.errors[code]
    return ErrorExplanation(code=code, family=error.family, means=error.means, to_do=error.to_do)


def _hint(code: str, entries: Explanations) -> str:
    near = closest_name(code[:100], {*entries.gates, *entries.laws, *entries.errors, *entries.reasons})
    return (
        f"did you mean {near}?" if near else f"'ctx explain' lists every code; the gates are {', '.join(entries.gates)}"
    )
