"""Events of the registry, told; and `ctx log id@X.Y.Z`, which is all of those of one version."""

from argparse import Namespace
from collections.abc import Iterator, Sequence

from contextplane.app.registry_view import history_of
from contextplane.cli.exit import OK
from contextplane.cli.moments import second
from contextplane.cli.pager import page
from contextplane.cli.registry.acting import at_desk
from contextplane.cli.screen import Screen, clean
from contextplane.registry.changes import AliasSet, IncidentClosed, IncidentOpened, RefreshReported, Review
from contextplane.registry.events import Happened
from contextplane.registry.streams import PINS

__all__ = ["event_lines", "log", "told_event"]

_KEY = 16
_VERDICT = {"approve": "approved", "reject": "rejected"}
_KINDS = {"rolled_back": "pinned again", "refresh_required": "must be refreshed"}
"""What is not told by the name of its event. A rollback stands in the history of the version that is gone back to."""


def log(args: Namespace, screen: Screen) -> int:
    """The history of one version: what happened to its bytes before, to it since, and where it was pinned."""
    with at_desk(args, screen) as desk:
        ref = desk.named_version(args.ref)
        events = history_of(desk, ref)
    page("\n".join(event_lines(events)), screen)
    screen.answer({"ref": str(ref), "events": [told_event(one) for one in events]})
    return OK


def event_lines(events: Sequence[Happened]) -> Iterator[str]:
    """A line for each: when, by which key, what, and why."""
    told = [_what(one) for one in events]
    widest = max(map(len, told), default=0)
    for one, what in zip(events, told, strict=True):
        revoked = "  [this key is revoked from before then on]" if one.by.revoked else ""
        yield f"{second(one.at)}  {one.by.key_id[:_KEY]}  {what:<{widest}}  {clean(one.event.reason)}{revoked}"


def told_event(one: Happened) -> dict[str, object]:
    return {
        "kind": one.kind,
        "stream": one.event.subject,
        "seq": one.event.seq,
        "entry": one.event.entry,
        "at": one.event.at,
        "by": one.by.key_id,
        "revoked": one.by.revoked,
        "reason": one.event.reason,
        "change": one.change,
    }


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
        case IncidentOpened(incident=incident) | IncidentClosed(incident=incident):
            return f"{kind}: {clean(incident)}"
    return kind
