"""The changes between two context packs: by layer, in words that a reviewer reads."""

from collections.abc import Callable
from itertools import groupby

from contextplane.authoring.change import Effect
from contextplane.authoring.comparison import Comparison
from contextplane.authoring.versions import VersionClass
from contextplane.cli.screen import Screen, clean, counted, shortened

__all__ = ["answer", "tell"]

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
    for one in found.unsafe if where is not None else ():
        screen.say(f"{indent}  {clean(where(one.at)) if where else ''}  {one.gate}/{one.code}  {clean(one.at)}")
        screen.say(f"{indent}      {shortened(clean(one.cause))}")
        screen.say(f"{indent}      {screen.paint('dim', '->')} {shortened(clean(one.cure))}")


def answer(found: Comparison) -> dict[str, object]:
    return {
        "pack_a": str(found.old),
        "pack_b": str(found.new),
        "has_drift": not found.same,
        "version_class": None if found.same else found.bump.least,
        "version_refused": found.refusal or None,
        "unsafe": [
            {"gate": one.gate, "code": one.code, "at": one.at, "cause": one.cause, "cure": one.cure}
            for one in found.unsafe
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
