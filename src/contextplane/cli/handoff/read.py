"""`ctx handoff list` and `ctx handoff read`: the packs, and the page that an agent gets, in colour.

`ctx cat pk_...` writes the bytes of a revision, whose SHA-256 is its digest.
"""

import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.app.handoff.contract import freshness
from contextplane.app.handoff.page import PageQuery, render_selected
from contextplane.app.handoff.revisions import select_revision
from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.settings import from_environment
from contextplane.cli.exit import OK
from contextplane.cli.handoff.highlight import color_code
from contextplane.cli.options import LIMIT, NO_LIMIT
from contextplane.cli.output import CommandOutput, clean, clean_tabbed, quantity
from contextplane.cli.terminal import page
from contextplane.mcp.tools import row_payload
from contextplane.model.catalog import HandoffRow
from contextplane.model.reference import HandoffRef
from contextplane.model.timestamp import Timestamp

__all__ = ["handoff_session", "list_packs", "read_pack", "revision_bytes"]

_TITLE = 100
_FRESHNESS_COLOR = {"fresh": "green", "expiring_soon": "yellow", "expired": "red"}
_FENCE = re.compile(r"(?P<run>`{3,}|~{3,})(?P<language>[a-z]*)")
_NUMBERED = re.compile(r"( *[0-9]+: )(.*)", re.DOTALL)
_MARKS = (
    (re.compile(r"\[(?:LEGEND|CONTENT)\]"), "dim"),
    (re.compile(r"#{1,6} .*"), "bold"),
    (re.compile(r"> stale ref: .*"), "red"),
    (re.compile(r"- (?:warning: .*|lines: .* \((?:moved|changed): now .*\))"), "yellow"),
)


@contextmanager
def handoff_session(output: CommandOutput) -> Iterator[HandoffSession]:
    """Open the handoff packs of the current folder. New packs of a reference server there are imported."""
    with open_handoffs(from_environment()) as session:
        session.pack_reader  # noqa: B018  it opens the store, if there is one
        if session.platform is not None and session.platform.adopted:
            output.note(f"adopted the store at {clean(session.platform.home.path)}: what was in it is there unchanged")
        yield session


def revision_bytes(ref: HandoffRef, output: CommandOutput) -> bytes:
    with handoff_session(output) as session:
        return session.pack_reader.bytes_of(select_revision(session, str(ref)))


def list_packs(args: Namespace, output: CommandOutput) -> int:
    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with handoff_session(output) as session:
        page = session.pack_reader.list(
            status=args.status, freshness=args.freshness, query=args.query, limit=limit, offset=args.offset or 0
        )
        now = session.now()
        _note_refused(session, output)
    wide = max((len(str(row.revision)) for row in page.rows), default=1)
    for row in page.rows:
        output.entry(str(row.id), _line(row, now, wide, output))
    if not page.rows:
        output.line("No handoff packs." if session.platform else "No handoff packs, and no store that could hold any.")
    more = page.total - len(page.rows) - (args.offset or 0)
    if more > 0 and page.rows:
        output.warn(f"{quantity(more, 'pack')} more; --limit N or --all shows them")
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
        output.note(f"not taken in, and left as it is: {clean(name)}: {clean(why)}")


def read_pack(args: Namespace, output: CommandOutput) -> int:
    query = PageQuery(
        profile=args.profile or "reviewer",
        limit=args.limit,
        offset=args.offset or 0,
        contains=(args.contains or "").strip() or None,
    )
    with handoff_session(output) as session:
        selected = select_revision(session, args.ref)
        rendered = render_selected(session, selected, query)
    output.answer({**rendered.structured, "digest": str(selected.digest), "markdown": rendered.text})
    if not output.json:
        text = "\n".join(_lines(rendered.text.removesuffix("\n"), output))
        output.entry(text, text) if output.quiet else page(text, output)
    return OK


def _lines(text: str, output: CommandOutput) -> Iterator[str]:
    """Yield the lines of a page. Of it nothing controls the terminal but the colours that are added here."""
    lines = iter([clean_tabbed(line) for line in text.split("\n")])
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if not output.color or not fence:
            color = next((color for mark, color in _MARKS if mark.fullmatch(line)), None)
            yield output.paint(color, line) if color else line
            continue
        yield output.paint("dim", line)
        inside, end = _split_fence(lines, fence["run"])
        yield from _code(inside, fence["language"], output)
        yield output.paint("dim", end)


def _split_fence(lines: Iterator[str], run: str) -> tuple[list[str], str]:
    """Return the lines up to the closing fence, and that fence."""
    inside: list[str] = []
    for line in lines:
        if line.startswith(run) and not line.strip(run[0]):
            return inside, line
        inside.append(line)
    return inside, ""


def _code(lines: list[str], language: str, output: CommandOutput) -> Iterator[str]:
    numbers = [_NUMBERED.fullmatch(line) for line in lines]
    if not all(numbers):
        yield from color_code("\n".join(lines), language, output.paint).split("\n") if lines else ()
        return
    code = "\n".join([number[2] for number in numbers if number])
    for number, line in zip(numbers, color_code(code, language, output.paint).split("\n"), strict=False):
        yield output.paint("dim", number[1] if number else "") + line
