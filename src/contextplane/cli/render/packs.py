"""The changes between two context packs: by layer, in words that a reviewer reads.

`ctx lint --explain NAME`: a gate with its laws, a law, or an error of `ctx` itself.

The name of a file as other tools take it: a relative URI reference, or a `file:` URI outside of the folder.
"""

import os
from collections.abc import Callable
from itertools import groupby
from urllib.parse import quote

from contextplane.app.explain import GateExplained, LawExplained, explained
from contextplane.authoring.diff.change import Effect
from contextplane.authoring.version_class import Comparison, VersionClass
from contextplane.cli.exit import EXIT_OF, OK
from contextplane.cli.output import Screen, clean, counted, shortened

__all__ = ["answer", "explain", "tell", "uri"]

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


def tell(found: Comparison, screen: Screen, *, indent: str = "", where: Callable[[str], str] | None = None) -> None:
    """Every change below its layer, with the class that it asks for and what it does; then what makes it unsafe.

    `where` gives the place of a part in the newer file. Without it, what is unsafe was shown before, and is counted.
    """
    for layer, reasons in groupby(found.bump.reasons, lambda reason: reason[1].layer):
        screen.say(f"{indent}{screen.paint('bold', clean(layer or 'the whole'))}")
        for asks, change in reasons:
            words = shortened(clean(change.words))
            screen.say(f"{indent}  {screen.paint(_COLOR[asks], f'{asks:<6}')} {words} ({_EFFECTS[change.effect]})")
    if found.unsafe:
        reject = screen.paint(_COLOR["reject"], "reject")
        screen.say(f"{indent}{reject}: under any number, because the gates find {counted(len(found.unsafe), 'error')}")
    for finding in found.unsafe if where is not None else ():
        screen.say(
            f"{indent}  {clean(where(finding.at)) if where else ''}  {finding.gate}/{finding.code}  {clean(finding.at)}"
        )
        screen.say(f"{indent}      {shortened(clean(finding.cause))}")
        screen.say(f"{indent}      {screen.paint('dim', '->')} {shortened(clean(finding.cure))}")


def answer(found: Comparison) -> dict[str, object]:
    return {
        "pack_a": str(found.old),
        "pack_b": str(found.new),
        "has_drift": not found.same,
        "version_class": None if found.same else found.bump.least,
        "version_refused": found.refusal or None,
        "unsafe": [
            {"gate": finding.gate, "code": finding.code, "at": finding.at, "cause": finding.cause, "cure": finding.cure}
            for finding in found.unsafe
        ],
        "entries": [
            {
                "layer": change.layer,
                "at": change.at,
                "effect": change.effect,
                "version_class": asks,
                "description": change.words,
            }
            for asks, change in found.bump.reasons
        ],
    }


def explain(name: str, screen: Screen) -> int:
    found = explained(name)
    if isinstance(found, GateExplained):
        screen.say(f"the gate {found.gate}: {counted(len(found.laws), 'law')}")
        for law in found.laws:
            screen.say(f"  {law.code} ({law.severity})")
            screen.say(f"      {law.law}")
    elif isinstance(found, LawExplained):
        screen.say(f"{found.gate}/{found.code} ({found.severity})")
        screen.say(found.law)
    else:
        screen.say(f"{found.code} (an error of ctx; it ends with status {EXIT_OF[found.family]})")
        screen.say(found.means)
        screen.say("docs/errors.md has every error of every command.")
    screen.answer(found)
    return OK


def uri(path: str) -> str:
    """The file relative to the folder that we are in, with forward slashes, and everything else encoded."""
    if path == "-":
        return "stdin"
    whole = os.path.abspath(path)
    inside = os.path.relpath(whole)
    if inside.split(os.sep)[0] == os.pardir:
        return "file://" + _encoded(whole)
    return _encoded(inside)


def _encoded(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
