"""Escaping of foreign text in a markdown page, so that it cannot forge any part of the page.

Text of an agent must not look like one of our own lines, must not end one of our fences, and must not leave a fence
open that swallows what follows.
"""

import re
from collections.abc import Iterator

from contextplane.model.invisible_characters import CONTROLS, FORMATTING, LINE_SEPARATORS

__all__ = ["block", "code_block", "fenced_block", "one_line", "shorten"]

_LONGEST = 140
# Everything that some reader takes for the end of a line.
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, those that change the direction of writing, and invisible ones that a model may read: with them a
# person sees another text than the one that is there.
_CONTROL = re.compile(f"[{CONTROLS}\r{FORMATTING}{LINE_SEPARATORS}\ud800-\udfff]")
_MARKER = re.compile(r"(?mi)^([^\S\n]*)(?=\[(?:LEGEND|CONTENT)\][^\S\n]*$)")
_FENCE = re.compile(r"(?P<indent> {0,3})(?P<run>`{3,}|~{3,})(?P<info>.*)")
_HTML = re.compile(r"( {0,3})(?=<[A-Za-z/!?])")
_TICKS = re.compile(r"`{3,}")


def one_line(text: str) -> str:
    """Put a text on one line: breaks and tabs become a space, control characters are escaped."""
    # Some invisible characters are printable to Python, none of them in ASCII.
    if text.isascii() and text.isprintable():
        return text.strip()
    return _escape_controls(_BREAK.sub(" ", text).replace("\t", " ")).strip()


def shorten(text: str) -> str:
    """Put a text on one line of at most 140 characters, its white space collapsed."""
    line = " ".join(one_line(text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "\u2026"


def block(text: str) -> str:
    """Markdown of several lines, made safe to stand in a page.

    An open fence is closed, HTML at the start of a line is escaped (a comment could hide what follows), and no line is
    one of our markers.
    """
    text = _lines(text).strip("\n")
    if "```" in text or "~~~" in text or "<" in text:
        text = "\n".join(_close_fences(text))
    return text


def fenced_block(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    inside = _lines(text).rstrip("\n")
    fence = "`" * max((len(run) + 1 for run in _TICKS.findall(inside)), default=3)
    return f"{fence}{language}\n{inside}\n{fence}"


def code_block(lines: tuple[str, ...], first: int, language: str) -> str:
    """A fenced block of numbered lines of code. The numbers keep a line from being a fence or a marker."""
    text = "".join(lines).replace("\t", "")
    if not (text.isascii() and text.isprintable()):
        lines = tuple(map(_escape_controls, lines))
    numbered = "\n".join([f"{number:4}: {line}" for number, line in enumerate(lines, first)])
    return f"```{language}\n{numbered}\n```"


def _lines(text: str) -> str:
    """The text with line feeds as its only breaks, and no line that is a marker of ours."""
    return _MARKER.sub(r"\1\\", _escape_controls(_BREAK.sub("\n", text)))


def _close_fences(text: str) -> Iterator[str]:
    """The lines, with every open fence closed by the rules of CommonMark.

    An indented fence may be in a list, which ends, and the fence with it, at the first line that is indented less; or
    it may not be. It is closed there in either case.
    """
    indent, run = "", ""
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line)
        if run and line.strip() and not line.startswith(indent):
            yield indent + run
            run = ""
        if not run:
            if match and (match["run"][0] == "~" or "`" not in match["info"]):
                indent, run = match["indent"], match["run"]
                yield line
            else:
                yield _HTML.sub(r"\1\\", line, count=1) if _HTML.match(line) else line
            continue
        yield line
        if match and match["run"].startswith(run) and not match["info"].strip():
            run = ""
    if run:
        yield indent + run


def _escape_controls(text: str) -> str:
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)
