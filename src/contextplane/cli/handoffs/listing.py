"""`ctx handoff list`: the packs that can be had, one on each line."""

from argparse import Namespace

from contextplane.app.handoff import Desk
from contextplane.cli.exit import OK
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.parsing import LIMIT, NO_LIMIT
from contextplane.cli.screen import Screen, clean, counted
from contextplane.handoff.freshness import freshness
from contextplane.mcp.rows import row_told
from contextplane.model.timestamp import Timestamp
from contextplane.ports.handoff_index import HandoffRow

__all__ = ["run"]

_TITLE = 100
_COLOR = {"fresh": "green", "expiring_soon": "yellow", "expired": "red"}


def run(args: Namespace, screen: Screen) -> int:
    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with opening_desk(screen) as desk:
        page = desk.reading.list(
            status=args.status, freshness=args.freshness, query=args.query, limit=limit, offset=args.offset or 0
        )
        now = desk.now()
        _tell_refused(desk, screen)
    wide = max((len(str(row.revision)) for row in page.rows), default=1)
    for row in page.rows:
        screen.entry(str(row.id), _line(row, now, wide, screen))
    if not page.rows:
        screen.say("No handoff packs." if desk.platform else "No handoff packs, and no store that could hold any.")
    more = page.total - len(page.rows) - (args.offset or 0)
    if more > 0 and page.rows:
        screen.warn(f"{counted(more, 'pack')} more; --limit N or --all shows them")
    screen.answer(
        {
            "packs": [{**row_told(row, now), "digest": str(row.digest)} for row in page.rows],
            "total": page.total,
            "more": more > 0,
        }
    )
    return OK


def _line(row: HandoffRow, now: Timestamp, wide: int, screen: Screen) -> str:
    fresh = freshness(row.expires, now)
    state = f"{fresh.state} {fresh.human}" if fresh.seconds else fresh.state
    title = clean(row.title or row.name or "Untitled")
    title = title if len(title) <= _TITLE else title[: _TITLE - 3] + "..."
    name = f" ({clean(row.name)})" if row.name and row.title else ""
    shown = screen.paint(_COLOR[fresh.state], f"{state:<17}")
    return f"{row.id}  {row.status:<9}  @{row.revision:<{wide}}  {shown}  {title}{name}"


def _tell_refused(desk: Desk, screen: Screen) -> None:
    """What lies in the reference root and could not be taken in."""
    for name, why in sorted(desk.taken.refused.items()) if desk.taken else ():
        screen.note(f"not taken in, and left as it is: {clean(name)}: {clean(why)}")
