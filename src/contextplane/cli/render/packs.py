"""The changes between two context packs: by layer, in words that a reviewer reads.

The name of a file as other tools take it: a relative URI reference, or a `file:` URI outside of the folder.
"""

import os
from collections.abc import Callable
from itertools import groupby
from urllib.parse import quote

from contextplane.authoring.diff.change import Effect
from contextplane.authoring.version_class import Comparison, VersionClass
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

__all__ = ["comparison_json", "print_comparison", "file_uri"]

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


def print_comparison(explanation: Comparison, output: CommandOutput, *, indent: str = "", where: Callable[[str], str] | None = None) -> None:
    """Every change below its layer, with the class that it asks for and what it does; then what makes it unsafe.

    `where` gives the place of a part in the newer file. Without it, what is unsafe was shown before, and is counted.
    """
    for layer, reasons in groupby(explanation.bump.reasons, lambda reason: reason[1].layer):
        output.line(f"{indent}{output.paint('bold', clean(layer or 'the whole'))}")
        for asks, change in reasons:
            words = shorten(clean(change.words))
            output.line(f"{indent}  {output.paint(_COLOR[asks], f'{asks:<6}')} {words} ({_EFFECTS[change.effect]})")
    if explanation.unsafe:
        reject = output.paint(_COLOR["reject"], "reject")
        output.line(f"{indent}{reject}: under any number, because the gates find {quantity(len(explanation.unsafe), 'error')}")
    for finding in explanation.unsafe if where is not None else ():
        output.line(
            f"{indent}  {clean(where(finding.at)) if where else ''}  {finding.gate}/{finding.code}  {clean(finding.at)}"
        )
        output.line(f"{indent}      {shorten(clean(finding.cause))}")
        output.line(f"{indent}      {output.paint('dim', '->')} {shorten(clean(finding.cure))}")


def comparison_json(explanation: Comparison) -> dict[str, object]:
    return {
        "pack_a": str(explanation.old),
        "pack_b": str(explanation.new),
        "has_drift": not explanation.same,
        "version_class": None if explanation.same else explanation.bump.least,
        "version_refused": explanation.refusal or None,
        "unsafe": [
            {"gate": finding.gate, "code": finding.code, "at": finding.at, "cause": finding.cause, "cure": finding.cure}
            for finding in explanation.unsafe
        ],
        "entries": [
            {
                "layer": change.layer,
                "at": change.at,
                "effect": change.effect,
                "version_class": asks,
                "description": change.words,
            }
            for asks, change in explanation.bump.reasons
        ],
    }


def file_uri(path: str) -> str:
    """The file relative to the folder that we are in, with forward slashes, and everything else encoded."""
    if path == "-":
        return "stdin"
    whole = os.path.abspath(path)
    inside = os.path.relpath(whole)
    if inside.split(os.sep)[0] == os.pardir:
        return "file://" + _percent_encode(whole)
    return _percent_encode(inside)


def _percent_encode(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
