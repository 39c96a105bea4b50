"""Explain an error code, a law, a gate or a reason: what it means, and what to do.

CODE is an error of any command (object_corrupt), a law of 'ctx lint' (risk/destructive_without_gate, or just
destructive_without_gate), a gate (policy), which lists its laws, or a reason for which 'ctx compile' leaves something
out (intent_denied). For an error, its family, its exit status and known solutions are shown; '...' stands for a name
that is known only when it happens. Without CODE, every error, law and reason is listed.

Examples:
  ctx explain object_corrupt              explain an error
  ctx explain destructive_without_gate    explain a law
  ctx explain intent_denied               explain why a tool is left out
  ctx explain                             list all of them
"""

import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.exit import EXIT_OF, OK
from contextplane.cli.output import CommandOutput, quantity

if TYPE_CHECKING:
    from contextplane.app.explain import ErrorExplanation, GateExplanation, LawExplanation, ReasonExplanation

__all__ = ["add_arguments", "print_explanation", "run"]

_WIDTH = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="an error code, a law, a gate or a reason (default: list all)"
    )


def run(args: Namespace, output: CommandOutput) -> int:
    return _print_codes(output) if args.code is None else print_explanation(args.code, output)


def print_explanation(name: str, output: CommandOutput) -> int:
    """Print what a gate, a law, an error or a reason means. `ctx lint --explain` prints the same."""
    from contextplane.app.explain import ErrorExplanation, GateExplanation, ReasonExplanation, find_explanation

    explanation = find_explanation(name)
    if isinstance(explanation, GateExplanation):
        lines, answer = _gate_lines(explanation), _gate_answer(explanation)
    elif isinstance(explanation, ErrorExplanation):
        lines, answer = _error_lines(explanation), _error_answer(explanation)
    elif isinstance(explanation, ReasonExplanation):
        lines, answer = _reason_lines(explanation), _reason_answer(explanation)
    else:
        lines, answer = _law_lines(explanation), _law_answer(explanation)
    for line in lines:
        output.line(line)
    output.answer(answer)
    return OK


def _print_codes(output: CommandOutput) -> int:
    from contextplane.app.explain import load_explanations

    entries = load_explanations()
    wide = max(map(len, (*entries.errors, *entries.laws, *entries.reasons)))
    for code, error in entries.errors.items():
        output.entry(code, f"{code:<{wide}}  error, exit status {EXIT_OF[error.family]} ({error.family})")
    for code, law in entries.laws.items():
        output.entry(f"{law.gate}/{code}", f"{code:<{wide}}  law of the gate {law.gate} ({law.severity})")
    for code, reason in entries.reasons.items():
        output.entry(code, f"{code:<{wide}}  reason of a compiled context ({', '.join(reason.kinds)})")
    errors = [
        {"code": code, "family": error.family, "exit_status": EXIT_OF[error.family]}
        for code, error in entries.errors.items()
    ]
    laws = [{"code": code, "gate": law.gate, "severity": law.severity} for code, law in entries.laws.items()]
    reasons = [{"code": code, "kinds": reason.kinds} for code, reason in entries.reasons.items()]
    output.answer({"errors": errors, "laws": laws, "reasons": reasons})
    return OK


def _gate_lines(gate: "GateExplanation") -> Iterator[str]:
    yield f"the gate {gate.gate}: {quantity(len(gate.laws), 'law')}"
    for law in gate.laws:
        yield f"  {law.code} ({law.severity})"
        yield f"      {law.law}"


def _law_lines(law: "LawExplanation") -> Iterator[str]:
    yield f"{law.gate}/{law.code} ({law.severity})"
    yield from _wrap(law.law)
    yield from _to_do_lines(law.to_do)
    if law.error is not None:
        yield ""
        yield from _error_lines(law.error)


def _error_lines(error: "ErrorExplanation") -> Iterator[str]:
    yield f"{error.code} (an error of ctx; family {error.family}, exit status {EXIT_OF[error.family]})"
    yield from _wrap(error.means)
    yield from _to_do_lines(error.to_do)


def _reason_lines(reason: "ReasonExplanation") -> Iterator[str]:
    yield f"{reason.code} (a reason of ctx compile, for: {', '.join(reason.kinds)})"
    yield from _wrap(reason.means)
    yield from _to_do_lines(reason.to_do)


def _to_do_lines(ways_out: tuple[str, ...]) -> Iterator[str]:
    if ways_out:
        yield "What to do:" if len(ways_out) == 1 else "What to do, depending on the case:"
    for way_out in ways_out:
        yield from _wrap(way_out, first="  - ", next_="    ")


def _wrap(text: str, *, first: str = "", next_: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=next_, break_long_words=False, break_on_hyphens=False
    )


def _gate_answer(gate: "GateExplanation") -> dict[str, object]:
    return {"kind": "gate", "gate": gate.gate, "laws": [_law_answer(law) for law in gate.laws]}


def _law_answer(law: "LawExplanation") -> dict[str, object]:
    return {
        "kind": "law",
        "gate": law.gate,
        "code": law.code,
        "severity": law.severity,
        "law": law.law,
        "to_do": law.to_do,
        "error": None if law.error is None else _error_answer(law.error),
    }


def _error_answer(error: "ErrorExplanation") -> dict[str, object]:
    return {
        "kind": "error",
        "code": error.code,
        "family": error.family,
        "exit_status": EXIT_OF[error.family],
        "means": error.means,
        "to_do": error.to_do,
    }


def _reason_answer(reason: "ReasonExplanation") -> dict[str, object]:
    return {
        "kind": "reason",
        "code": reason.code,
        "kinds": reason.kinds,
        "means": reason.means,
        "to_do": reason.to_do,
    }
