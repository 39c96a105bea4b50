"""`ctx handoff read`: the page that an agent gets, for a terminal: its code in colour, what moved or is gone marked."""

import re
from argparse import Namespace
from collections.abc import Iterator

from contextplane.cli.exit import OK
from contextplane.cli.handoffs.code_color import colored
from contextplane.cli.handoffs.naming import found
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.pager import page
from contextplane.cli.screen import Screen, clean
from contextplane.handoff.page import PageQuery
from contextplane.mcp.output_tool import page_of

__all__ = ["run"]

_FENCE = re.compile(r"(?P<run>`{3,}|~{3,})(?P<language>[a-z]*)")
_NUMBERED = re.compile(r"( *[0-9]+: )(.*)", re.DOTALL)
_MARKS = (
    (re.compile(r"\[(?:LEGEND|CONTENT)\]"), "dim"),
    (re.compile(r"#{1,6} .*"), "bold"),
    (re.compile(r"> stale ref: .*"), "red"),
    (re.compile(r"- (?:warning: .*|lines: .* \((?:moved|changed): now .*\))"), "yellow"),
)


def run(args: Namespace, screen: Screen) -> int:
    query = PageQuery(
        profile=args.profile or "reviewer",
        limit=args.limit,
        offset=args.offset or 0,
        contains=(args.contains or "").strip() or None,
    )
    with opening_desk(screen) as desk:
        one = found(args.ref, desk)
        told = page_of(one, query, desk)
    screen.answer({**told.structured, "digest": str(one.digest), "markdown": told.text})
    if not screen.json:
        text = "\n".join(_lines(told.text.removesuffix("\n"), screen))
        screen.entry(text, text) if screen.quiet else page(text, screen)
    return OK


def _lines(text: str, screen: Screen) -> Iterator[str]:
    """The page, line by line. No byte of it speaks to the terminal but the colours that are given here."""
    lines = iter([_cleaned(line) for line in text.split("\n")])
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if not screen.color or not fence:
            color = next((color for mark, color in _MARKS if mark.fullmatch(line)), None)
            yield screen.paint(color, line) if color else line
            continue
        yield screen.paint("dim", line)
        inside, end = _fenced(lines, fence["run"])
        yield from _code(inside, fence["language"], screen)
        yield screen.paint("dim", end)


def _fenced(lines: Iterator[str], run: str) -> tuple[list[str], str]:
    """What stands up to the fence that closes, and that fence."""
    inside: list[str] = []
    for line in lines:
        if line.startswith(run) and not line.strip(run[0]):
            return inside, line
        inside.append(line)
    return inside, ""


def _code(lines: list[str], language: str, screen: Screen) -> Iterator[str]:
    numbers = [_NUMBERED.fullmatch(line) for line in lines]
    if not all(numbers):
        yield from colored("\n".join(lines), language, screen.paint).split("\n") if lines else ()
        return
    code = "\n".join([number[2] for number in numbers if number])
    for number, line in zip(numbers, colored(code, language, screen.paint).split("\n"), strict=False):
        yield screen.paint("dim", number[1] if number else "") + line


def _cleaned(line: str) -> str:
    # A tab is the one control character that texts are made with, and does no harm.
    return "\t".join(map(clean, line.split("\t")))
