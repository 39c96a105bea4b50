"""Events of the registry, told; and `ctx log id@X.Y.Z`, which is all of those of one version."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from contextplane.app.registry_view import history_of
from contextplane.cli.exit import OK
from contextplane.cli.moments import second
from contextplane.cli.pager import page
from contextplane.cli.registry.acting import at_desk
from contextplane.cli.screen import Screen, clean
from contextplane.cli.trust.called import called
from contextplane.registry.changes import (
    AliasSet,
    IncidentClosed,
    IncidentOpened,
    RefreshReported,
    RefreshRequired,
    Review,
)
from contextplane.registry.events import Happened
from contextplane.registry.streams import PINS

__all__ = ["event_lines", "log", "told_event"]

_VERDICT = {"approve": "approved", "reject": "rejected"}
_KINDS = {"rolled_back": "pinned again", "unpinned": "no longer pinned", "refresh_required": "must be refreshed"}
"""What is not told by the name of its event. A rollback stands in the history of the version that is gone back to."""


def log(args: Namespace, screen: Screen) -> int:
    """The history of one version: what happened to its bytes before, to it since, and where it was pinned."""
    with at_desk(args, screen) as desk:
        ref = desk.named_version(args.ref)
        events, names = history_of(desk, ref), desk.keys.names()
    if screen.quiet:
        for one in events:
            screen.entry(_place(one), _place(one))
    else:
        page("\n".join(event_lines(events, names)), screen)
    screen.answer({"ref": str(ref), "events": [told_event(one, names) for one in events]})
    return OK


def event_lines(events: Sequence[Happened], names: Mapping[str, str]) -> Iterator[str]:
    """A line for each: when, by which key, what, and why."""
    told = [(called(one.by.key_id, names), _what(one)) for one in events]
    wide, wider = (max(map(len, column), default=0) for column in zip(*told, strict=True)) if told else (0, 0)
    for one, (who, what) in zip(events, told, strict=True):
        revoked = "  [this key is revoked from before then on]" if one.by.revoked else ""
        yield f"{second(one.at)}  {who:<{wide}}  {what:<{wider}}  {clean(one.event.reason)}{revoked}"


def told_event(one: Happened, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "kind": one.kind,
        "stream": one.event.subject,
        "seq": one.event.seq,
        "entry": one.event.entry,
        "at": one.event.at,
        "by": one.by.key_id,
        "name": names.get(one.by.key_id),
        "revoked": one.by.revoked,
        "reason": one.event.reason,
        "change": one.change,
    }


def _place(one: Happened) -> str:
    """What an event is called, as in refusals: its stream, and its number there."""
    return f"{one.event.subject}@{one.event.seq}"


def _what(one: Happened) -> str:
    kind, stream = _KINDS.get(one.kind, one.kind.replace("_", " ")), one.event.subject
    if stream.startswith(PINS):
        return f"{kind} in {clean(stream.removeprefix(PINS).partition('/')[0])}"
    match one.change:
        case Review(verdict=verdict, role=role):
            return f"{_VERDICT[verdict]} as {clean(role)}"
        case RefreshReported(action=action, passed=passed):
            return f"{clean(action)} {'passed' if passed else 'failed'}"
        case AliasSet(alias=alias):
            return f"called {clean(alias)}"
        case RefreshRequired(dependency=of) | IncidentOpened(incident=of) | IncidentClosed(incident=of):
            return f"{kind}: {clean(of)}"
    return kind
