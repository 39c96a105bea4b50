"""`ctx handoff read`: the page that an agent gets, in colour; with --follow again whenever it changes."""

import re
import time
from argparse import Namespace
from collections.abc import Iterator
from typing import NoReturn

from contextplane.app.handoff.page import PageQuery, render_selected
from contextplane.app.handoff.revisions import select_revision
from contextplane.cli.exit import OK
from contextplane.cli.handoff.highlight import color_code
from contextplane.cli.handoff.packs import handoff_session
from contextplane.cli.output import CommandOutput, clean_tabbed
from contextplane.cli.terminal import page

__all__ = ["read_pack"]

_EVERY_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_FENCE = re.compile(r"(?P<run>`{3,}|~{3,})(?P<language>[a-z]*)")
_NUMBERED = re.compile(r"( *[0-9]+: )(.*)", re.DOTALL)
_MARKS = (
    (re.compile(r"\[(?:LEGEND|CONTENT)\]"), "dim"),
    (re.compile(r"#{1,6} .*"), "bold"),
    (re.compile(r"> stale ref: .*"), "red"),
    (re.compile(r"- (?:warning: .*|lines: .* \((?:moved|changed): now .*\))"), "yellow"),
)


def read_pack(args: Namespace, output: CommandOutput) -> int:
    query = PageQuery(
        profile=args.profile or "reviewer",
        limit=args.limit,
        offset=args.offset or 0,
        contains=(args.contains or "").strip() or None,
    )
    if args.follow:
        return _follow(args.ref, query, output)
    with handoff_session(output) as session:
        selected = select_revision(session, args.ref)
        rendered = render_selected(session, selected, query)
    output.answer({**rendered.structured, "digest": str(selected.digest), "markdown": rendered.text})
    if not output.json:
        text = "\n".join(_lines(rendered.text.removesuffix("\n"), output))
        output.entry(text, text) if output.quiet else page(text, output)
    return OK


def _follow(ref: str, query: PageQuery, output: CommandOutput) -> NoReturn:
    """Print the page whenever the pack or its code has changed, until the pack is gone.

    The store is open only while it is read. A terminal shows the newest page alone.
    """
    shown: list[str] = []
    while True:
        with handoff_session(output) as session:
            rendered = render_selected(session, select_revision(session, ref), query)
        lines = rendered.text.removesuffix("\n").split("\n")
        steady = [line for line in lines if "ttl_remaining" not in line]  # the time that is left always changes
        if steady != shown:
            head = _CLEAR if output.out.isatty() else "\n" if shown else ""
            output.out.write(head + "\n".join(_lines("\n".join(lines), output)) + "\n")
            output.out.flush()
            shown = steady
        time.sleep(_EVERY_SECONDS)


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
