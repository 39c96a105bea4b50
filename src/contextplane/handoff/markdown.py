"""Foreign text inside a page: it can say anything and forge nothing.

A page is lines; what an agent wrote must neither be one of our own lines nor end one of our fences, nor leave open a
fence that swallows what follows.
"""

import re
from collections.abc import Iterator

__all__ = ["block", "code_block", "fenced", "one_line", "shortened"]

_LONGEST = 140
# Whatever some reader takes for the end of a line.
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, those that turn the direction of writing, and those that nobody sees and a model may read: they
# show another text than the one that is there.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARKER = re.compile(r"(?mi)^([^\S\n]*)(?=\[(?:LEGEND|CONTENT)\][^\S\n]*$)")
_FENCE = re.compile(r"(?P<indent> {0,3})(?P<run>`{3,}|~{3,})(?P<info>.*)")
_HTML = re.compile(r"( {0,3})(?=<[A-Za-z/!?])")
_TICKS = re.compile(r"`{3,}")


def one_line(text: str) -> str:
    """The text on one line: breaks and tabs become a space, control characters are shown escaped."""
    if text.isprintable():
        return text.strip()
    return _escaped(_BREAK.sub(" ", text).replace("\t", " ")).strip()


def shortened(text: str) -> str:
    """The text on one line of at most 140 characters, its white space collapsed."""
    line = " ".join(one_line(text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "\u2026"


def block(text: str) -> str:
    """Markdown of several lines, which keeps to itself.

    A fence that it leaves open is closed, HTML at the start of a line is shown and not obeyed (a comment could hide
    what follows), and no line of it is a marker of ours.
    """
    text = _lines(text).strip("\n")
    if "```" in text or "~~~" in text or "<" in text:
        text = "\n".join(_closed(text))
    return text


def fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    inside = _lines(text).rstrip("\n")
    fence = "`" * max((len(run) + 1 for run in _TICKS.findall(inside)), default=3)
    return f"{fence}{language}\n{inside}\n{fence}"


def code_block(lines: tuple[str, ...], first: int, language: str) -> str:
    """Numbered lines of code. Their numbers keep them from being a fence or a marker."""
    if not "".join(lines).replace("\t", "").isprintable():
        lines = tuple(map(_escaped, lines))
    numbered = "\n".join([f"{number:4}: {line}" for number, line in enumerate(lines, first)])
    return f"```{language}\n{numbered}\n```"


def _lines(text: str) -> str:
    """The same lines, all ended by a line feed, none of them a marker."""
    return _MARKER.sub(r"\1\\", _escaped(_BREAK.sub("\n", text)))


def _closed(text: str) -> Iterator[str]:
    """The lines, and what closes a fence among them that is not closed, by the rules of CommonMark.

    An indented fence may stand in a list, which ends at the first line that is indented less, and the fence with it; or
    it may not. So it is closed there, whichever it is.
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


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)
