"""The changes between two context packs: by layer, in words that a reviewer reads."""

from itertools import groupby

from contextplane.authoring.change import Effect
from contextplane.authoring.comparison import Comparison
from contextplane.authoring.versions import VersionClass
from contextplane.cli.screen import Screen, clean, shortened

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


def tell(found: Comparison, screen: Screen, *, indent: str = "") -> None:
    """Every change below its layer, with the class that it asks for and what it does; then what makes it unsafe."""
    for layer, reasons in groupby(found.bump.reasons, lambda reason: reason[1].layer):
        screen.say(f"{indent}{screen.paint('bold', clean(layer or 'the whole'))}")
        for asks, change in reasons:
            words = shortened(clean(change.words))
            screen.say(f"{indent}  {screen.paint(_COLOR[asks], f'{asks:<6}')} {words} ({_EFFECTS[change.effect]})")
    for one in found.unsafe:
        place, cause = clean(one.at or "the whole pack"), shortened(clean(one.cause))
        screen.say(f"{indent}{screen.paint(_COLOR['reject'], 'reject')} {one.gate}/{one.code} at {place}: {cause}")


def answer(found: Comparison) -> dict[str, object]:
    return {
        "pack_a": str(found.old),
        "pack_b": str(found.new),
        "has_drift": not found.same,
        "version_class": None if found.same else found.bump.least,
        "version_refused": found.refusal or None,
        "unsafe": [{"gate": one.gate, "code": one.code, "at": one.at, "cause": one.cause} for one in found.unsafe],
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
