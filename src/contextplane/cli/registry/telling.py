"""How acts in the registry are told: a line or two for people, the same for machines."""

from contextplane.app.registry import RegistryDesk
from contextplane.app.registry_pins import PinAct, pinning
from contextplane.app.registry_release import Acted
from contextplane.cli.screen import Screen, clean, counted
from contextplane.model.ids import PackRef
from contextplane.registry.appending import Appended

__all__ = ["STAGE_COLOR", "tell_act", "tell_pin", "tell_still_pinned", "told_events", "told_golden"]

STAGE_COLOR = {
    "draft": "yellow",
    "linted": "yellow",
    "reviewed": "cyan",
    "signed": "cyan",
    "published": "green",
    "deprecated": "yellow",
    "revoked": "red",
}

_NEXT = {"reviewed": "sign {ref}", "signed": "publish {ref}", "published": "pin ENV {ref}"}
"""What brings an artifact on; what waits for reviewers says for which."""


def tell_act(acted: Acted, screen: Screen) -> None:
    """Where an artifact stands after an act, and what it waits for."""
    screen.say(f"{acted.ref}  {screen.paint(STAGE_COLOR[acted.stage], acted.stage)}  {acted.digest}")
    if acted.appended is None:
        screen.say("It was so already; nothing changed.")
    if acted.rejected:
        screen.say(f"{screen.paint('red', 'Rejected')} as: {', '.join(acted.rejected)}")
    if acted.missing:
        screen.say(f"To be approved as: {', '.join(acted.missing)}")
    if acted.golden is not None:
        screen.say(_golden_line(acted.golden, acted.golden_words))
    signed, needed = acted.signatures
    if acted.stage == "reviewed" and needed > signed:
        screen.say(f"Signed by {signed} of {counted(needed, 'key')} that must sign.")
    if acted.stage in _NEXT and not acted.missing:
        screen.say(screen.paint("dim", f"Next: ctx {_NEXT[acted.stage].format(ref=acted.ref)}"))
    screen.answer(
        {
            "ref": str(acted.ref),
            "digest": str(acted.digest),
            "stage": acted.stage,
            "missing": list(acted.missing),
            "rejected": list(acted.rejected),
            "signatures": {"given": signed, "needed": needed} if needed else None,
            "changed": acted.appended is not None,
            **({"golden": acted.golden, "golden_words": acted.golden_words} if acted.golden is not None else {}),
            **told_events(acted.appended),
        }
    )


def tell_pin(act: PinAct, done: str, screen: Screen, *, pinned: bool = True) -> None:
    before = f", instead of {act.before}" if act.before is not None and act.before != act.ref else ""
    borne = f", with {', '.join(map(str, act.overlays))}" if act.overlays and pinned else ""
    screen.say(f"{act.ref} {done} {clean(act.environment)}{before}{borne}.")
    if act.appended is None:
        screen.say("It was so already; nothing changed.")
    for overlay in () if pinned else act.overlays:
        away = f"ctx unpin {clean(act.environment)} {act.ref.pack_id} --overlay {overlay.pack_id}"
        screen.say(f"{overlay} stays, for whatever is pinned there next. To take it away, too: {away}")
    if act.deprecated:
        screen.note(f"{act.ref} is deprecated: pin a newer one as soon as there is one")
    if act.milliseconds is not None:
        screen.say(f"It took {act.milliseconds} ms. {_golden_line(act.golden, act.golden_words)}")
    screen.answer(
        {
            "environment": act.environment,
            "ref": str(act.ref),
            "digest": str(act.digest),
            "before": str(act.before) if act.before is not None else None,
            "changed": act.appended is not None,
            "overlays": [str(one) for one in act.overlays],
            "deprecated": act.deprecated,
            "milliseconds": act.milliseconds,
            "golden": act.golden,
            "golden_words": act.golden_words,
            **told_events(act.appended),
        }
    )


def _golden_line(outcome: str | None, words: str) -> str:
    return f"Golden cases: {told_golden(outcome)} ({clean(words)})"


def told_golden(outcome: str | None) -> str:
    """What golden cases came to, in words."""
    return (outcome or "not_run").replace("_", " ")


def tell_still_pinned(desk: RegistryDesk, ref: PackRef, screen: Screen) -> None:
    """Where a version that takes no new traffic any more is still pinned."""
    for environment in pinning(desk, ref):
        screen.note(f"{clean(environment)} pins {ref}: new runs there are refused until it pins another version")


def told_events(appended: Appended | None) -> dict[str, object]:
    """The events, and the size of the log with them."""
    if appended is None:
        return {"events": [], "log_size": None}
    return {
        "events": [
            {
                "kind": one.kind,
                "stream": one.event.subject,
                "seq": one.event.seq,
                "entry": one.event.entry,
                "at": one.event.at,
            }
            for one in appended.events
        ],
        "log_size": appended.standing.checkpoint.size,
    }
