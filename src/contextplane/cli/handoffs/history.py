"""`ctx handoff log` and `ctx log pk_...`: everything that happened to a handoff pack."""

from contextplane.app.handoff import Desk
from contextplane.cli.exit import OK
from contextplane.cli.handoffs.naming import handoff_ref, history_named
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.moments import second
from contextplane.cli.pager import page
from contextplane.cli.parser import Usage
from contextplane.cli.screen import Screen, clean
from contextplane.errors import ContextPlaneError
from contextplane.model.handoff_events import Happened, Kept
from contextplane.model.ids import HandoffId
from contextplane.model.value import Value

__all__ = ["log"]

_DIGITS = 12


class _Line(Value, frozen=True):
    """One event. `status`: that of the revision it made, None when it made none, or one that is gone or unreadable."""

    happened: Happened
    status: str | None
    problem: str


def log(text: str, screen: Screen) -> int:
    """Tell it, also of a pack that cannot be had any more."""
    ref = handoff_ref(text)
    if ref is not None and ref.revision is not None:
        raise Usage("a history is that of the whole pack", hint=f"ctx log {ref.id}")
    with opening_desk(screen) as desk:
        handoff_id, history = history_named(text, desk)
        kept = {one.revision: one for one in history.revisions}
        lines = [_line(one, kept.get(one.revision), handoff_id, desk) for one in history.happened]
    if screen.quiet:
        for revision in (f"{handoff_id}@{one.happened.revision}" for one in lines if one.status is not None):
            screen.entry(revision, revision)
    else:
        page("\n".join(_told(one, screen) for one in lines), screen)
    screen.answer(
        {
            "id": handoff_id.text,
            "deleted_at": str(history.deleted) if history.deleted else None,
            "collected": history.collected,
            "events": [_answer(one) for one in lines],
        }
    )
    return OK


def _line(one: Happened, kept: Kept | None, handoff_id: HandoffId, desk: Desk) -> _Line:
    if one.digest is None:
        return _Line(happened=one, status=None, problem="")
    if kept is None:
        return _Line(happened=one, status=None, problem="collected")
    try:
        return _Line(happened=one, status=desk.reading.kept(handoff_id, kept).status, problem="")
    except ContextPlaneError as error:
        return _Line(happened=one, status=None, problem=error.message)


def _told(line: _Line, screen: Screen) -> str:
    one = line.happened
    number = f"@{one.revision}" if one.digest else ""
    told = f"{number:<5} {second(one.at)}  {one.kind:<9}"
    if one.digest is None:
        return told.rstrip() + f" at revision {one.revision}"
    frozen = screen.paint("green", "  frozen") if line.status == "finalized" else ""
    problem = screen.paint("red", f"  [{clean(line.problem)}]") if line.problem else ""
    return f"{told}  {line.status or '?':<9}  {one.digest.hex[:_DIGITS]}{frozen}{problem}"


def _answer(line: _Line) -> dict[str, object]:
    one = line.happened
    return {
        "kind": one.kind,
        "revision": one.revision,
        "at": str(one.at),
        "digest": str(one.digest) if one.digest else None,
        "status": line.status,
        "frozen": line.status == "finalized",
        "problem": line.problem or None,
    }
