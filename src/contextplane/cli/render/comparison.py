"""Prints the changes between two context packs: by layer, in words that a reviewer reads."""

from collections.abc import Callable
from itertools import groupby

from contextplane.app.packs.diff import Change, Comparison, Effect, VersionClass
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

__all__ = ["change_line", "comparison_json", "print_comparison"]

_COLOR: dict[VersionClass, str] = {"patch": "dim", "minor": "green", "major": "yellow", "reject": "red"}
_EFFECTS: dict[Effect, str] = {
    "metadata": "nothing changes for a run",
    "narrows": "less is possible",
    "wording": "the model reads another text",
    "reads_more": "one more read-only source",
    "locale": "another default",
    "endpoint": "another endpoint",
    "removes": "something that was possible is gone",
    "changes": "runs behave in another way",
    "widens": "more is possible",
}


def print_comparison(
    comparison: Comparison, output: CommandOutput, *, indent: str = "", where: Callable[[str], str] | None = None
) -> None:
    """Print every change below its layer, with its version class and its effect; then the unsafe findings.

    `where` gives the place of a part in the newer file. Without it the findings were printed before, and are counted.
    """
    for layer, reasons in groupby(comparison.bump.reasons, lambda reason: reason[1].layer):
        output.line(f"{indent}{output.paint('bold', clean(layer or 'the whole'))}")
        for asks, change in reasons:
            output.line(f"{indent}  {change_line(asks, change, output)}")
    if comparison.unsafe:
        reject = output.paint(_COLOR["reject"], "reject")
        output.line(
            f"{indent}{reject}: under any number, because the gates report {quantity(len(comparison.unsafe), 'error')}"
        )
    for finding in comparison.unsafe if where is not None else ():
        output.line(
            f"{indent}  {clean(where(finding.at)) if where else ''}  {finding.gate}/{finding.code}  {clean(finding.at)}"
        )
        output.line(f"{indent}      {shorten(clean(finding.cause))}")
        output.line(f"{indent}      {output.paint('dim', '->')} {shorten(clean(finding.cure))}")


def change_line(asks: VersionClass, change: Change, output: CommandOutput) -> str:
    """Return a change in words, with its version class and its effect."""
    words = shorten(clean(change.words))
    return f"{output.paint(_COLOR[asks], f'{asks:<6}')} {words} ({_EFFECTS[change.effect]})"


def comparison_json(comparison: Comparison) -> dict[str, object]:
    return {
        "pack_a": str(comparison.old),
        "pack_b": str(comparison.new),
        "has_drift": not comparison.same,
        "version_class": None if comparison.same else comparison.bump.least,
        "version_refused": comparison.refusal or None,
        "undecided": comparison.undecided,
        "unsafe": [
            {"gate": finding.gate, "code": finding.code, "at": finding.at, "cause": finding.cause, "cure": finding.cure}
            for finding in comparison.unsafe
        ],
        "entries": [
            {
                "layer": change.layer,
                "at": change.at,
                "effect": change.effect,
                "version_class": asks,
                "description": change.words,
            }
            for asks, change in comparison.bump.reasons
        ],
    }
