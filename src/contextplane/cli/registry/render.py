"""How acts in the registry are told: a line or two for people, the same for machines.

Events of the registry, told; and `ctx log id@X.Y.Z`, which is all of those of one version.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from contextplane.app.registry.pins import PinAct, pinning
from contextplane.app.registry.release import Acted
from contextplane.app.registry.session import RegistryDesk
from contextplane.app.registry.view import history_of
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import called
from contextplane.cli.output import Screen, clean, counted, second
from contextplane.cli.pager import page
from contextplane.cli.registry.act import at_desk
from contextplane.model.ids import PackRef
from contextplane.registry.events import (
    AliasSet,
    Happened,
    IncidentClosed,
    IncidentOpened,
    RefreshReported,
    RefreshRequired,
    Review,
)
from contextplane.registry.streams import PINS
from contextplane.registry.writer import Appended

__all__ = [
    "STAGE_COLOR",
    "event_lines",
    "log",
    "tell_act",
    "tell_pin",
    "tell_still_pinned",
    "told_event",
    "told_events",
    "told_golden",
]

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
            "overlays": [str(overlay) for overlay in act.overlays],
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
                "kind": event.kind,
                "stream": event.event.subject,
                "seq": event.event.seq,
                "entry": event.event.entry,
                "at": event.event.at,
            }
            for event in appended.events
        ],
        "log_size": appended.standing.checkpoint.size,
    }


_VERDICT = {"approve": "approved", "reject": "rejected"}
_KINDS = {"rolled_back": "pinned again", "unpinned": "no longer pinned", "refresh_required": "must be refreshed"}
"""What is not told by the name of its event. A rollback stands in the history of the version that is gone back to."""


def log(args: Namespace, screen: Screen) -> int:
    """The history of one version: what happened to its bytes before, to it since, and where it was pinned."""
    with at_desk(args, screen) as desk:
        ref = desk.named_version(args.ref)
        events, names = history_of(desk, ref), desk.keys.names()
    if screen.quiet:
        for event in events:
            screen.entry(_place(event), _place(event))
    else:
        page("\n".join(event_lines(events, names)), screen)
    screen.answer({"ref": str(ref), "events": [told_event(one, names) for one in events]})
    return OK


def event_lines(events: Sequence[Happened], names: Mapping[str, str]) -> Iterator[str]:
    """A line for each: when, by which key, what, and why."""
    told = [(called(one.by.key_id, names), _what(one)) for one in events]
    wide, wider = (max(map(len, column), default=0) for column in zip(*told, strict=True)) if told else (0, 0)
    for event, (who, what) in zip(events, told, strict=True):
        revoked = "  [this key is revoked from before then on]" if event.by.revoked else ""
        yield f"{second(event.at)}  {who:<{wide}}  {what:<{wider}}  {clean(event.event.reason)}{revoked}"


def told_event(event: Happened, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "kind": event.kind,
        "stream": event.event.subject,
        "seq": event.event.seq,
        "entry": event.event.entry,
        "at": event.event.at,
        "by": event.by.key_id,
        "name": names.get(event.by.key_id),
        "revoked": event.by.revoked,
        "reason": event.event.reason,
        "change": event.change,
    }


def _place(event: Happened) -> str:
    """What an event is called, as in refusals: its stream, and its number there."""
    return f"{event.event.subject}@{event.event.seq}"


def _what(event: Happened) -> str:
    kind, stream = _KINDS.get(event.kind, event.kind.replace("_", " ")), event.event.subject
    if stream.startswith(PINS):
        return f"{kind} in {clean(stream.removeprefix(PINS).partition('/')[0])}"
    match event.change:
        case Review(verdict=verdict, role=role):
            return f"{_VERDICT[verdict]} as {clean(role)}"
        case RefreshReported(action=action, passed=passed):
            return f"{clean(action)} {'passed' if passed else 'failed'}"
        case AliasSet(alias=alias):
            return f"called {clean(alias)}"
        case RefreshRequired(dependency=of) | IncidentOpened(incident=of) | IncidentClosed(incident=of):
            return f"{kind}: {clean(of)}"
    return kind
