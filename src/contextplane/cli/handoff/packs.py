"""The handoff packs of a folder: `ctx handoff list`, and the bytes of a revision for `ctx cat`."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from contextplane import __version__
from contextplane.app.handoff.session import HandoffSession, freshness, row_payload
from contextplane.app.session import open_session
from contextplane.app.settings import from_environment
from contextplane.cli.exit import OK
from contextplane.cli.options import LIMIT, NO_LIMIT
from contextplane.cli.output import CommandOutput, clean, quantity
from contextplane.cli.store import note_adopted
from contextplane.model.catalog import HandoffRow
from contextplane.model.reference import HandoffRef
from contextplane.model.timestamp import Timestamp

__all__ = ["handoff_session", "list_packs", "revision_bytes"]


_TITLE = 100
_FRESHNESS_COLOR = {"fresh": "green", "expiring_soon": "yellow", "expired": "red"}


@contextmanager
def handoff_session(output: CommandOutput) -> Iterator[HandoffSession]:
    """Open the handoff packs of the current folder. New packs of a reference server there are imported."""
    with open_session(from_environment()) as session:
        handoffs = session.handoffs
        handoffs.client = f"ctx {__version__}"
        handoffs.pack_reader  # noqa: B018  it opens the store, if there is one
        if handoffs.platform is not None:
            note_adopted(handoffs.platform, output)
        yield handoffs


def revision_bytes(ref: HandoffRef, output: CommandOutput) -> bytes:
    """Return the bytes of a revision, whose SHA-256 is its digest."""
    from contextplane.app.handoff.revisions import select_revision

    with handoff_session(output) as session:
        return session.pack_reader.bytes_of(select_revision(session, str(ref)))


def list_packs(args: Namespace, output: CommandOutput) -> int:
    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with handoff_session(output) as session:
        page = session.pack_reader.list(
            status=args.status,
            freshness=args.freshness,
            query=args.query,
            limit=limit,
            offset=args.offset or 0,
            retained=args.expired or args.freshness == "expired",
        )
        hidden = 0 if page.rows else session.pack_reader.list(freshness="expired", limit=0, retained=True).total
        now = session.now()
        _note_refused(session, output)
    wide = max((len(str(row.revision)) for row in page.rows), default=1)
    for row in page.rows:
        output.entry(str(row.id), _line(row, now, wide, output))
    if not page.rows:
        expired = f" {quantity(hidden, 'expired pack')}: ctx handoff list --expired" if hidden else ""
        output.line(f"No handoff packs.{expired}" if session.platform else "No handoff packs, and no store.")
    more = page.total - len(page.rows) - (args.offset or 0)
    if more > 0 and page.rows:
        output.warn(f"{quantity(more, 'pack')} more: use --limit N or --all")
    output.answer(
        {
            "packs": [{**row_payload(row, now), "digest": str(row.digest)} for row in page.rows],
            "total": page.total,
            "more": more > 0,
        }
    )
    return OK


def _line(row: HandoffRow, now: Timestamp, wide: int, output: CommandOutput) -> str:
    fresh = freshness(row.expires, now)
    state = f"{fresh.state} {fresh.human}" if fresh.seconds else fresh.state
    title = clean(row.title or row.name or "Untitled")
    title = title if len(title) <= _TITLE else title[: _TITLE - 3] + "..."
    name = f" ({clean(row.name)})" if row.name and row.title else ""
    shown = output.paint(_FRESHNESS_COLOR[fresh.state], f"{state:<17}")
    return f"{row.id}  {row.status:<9}  @{row.revision:<{wide}}  {shown}  {title}{name}"


def _note_refused(session: HandoffSession, output: CommandOutput) -> None:
    """Note the packs of a reference server that could not be imported."""
    for name, why in sorted(session.import_result.refused.items()) if session.import_result else ():
        output.note(f"not imported, left unchanged: {clean(name)}: {clean(why)}")
