"""Prints a head and words as one line; on a terminal the words are wrapped below themselves."""

from contextplane.cli.output import CommandOutput

__all__ = ["LineHead", "print_wrapped"]

_NARROW = 30
"""With fewer columns than this beside the head, the words begin below it."""


class LineHead:
    """The head of a line as it is printed, its width without colours, and the column of continued words."""

    def __init__(self, shown: str, width: int, below: int) -> None:
        self.shown = shown
        self.width = width
        self.below = below


def print_wrapped(head: LineHead, words: str, output: CommandOutput, color: str = "") -> None:
    """Print a head and words as one line, or as many as the terminal needs."""
    first, *others = _wrap(head, words, output)
    output.line(f"{head.shown}{_paint(first, color, output)}".rstrip())
    for line in others:
        output.line(_paint(line, color, output))


def _paint(text: str, color: str, output: CommandOutput) -> str:
    return output.paint(color, text) if color and text else text


def _wrap(head: LineHead, words: str, output: CommandOutput) -> list[str]:
    if not output.out.isatty():
        return [words]
    import shutil
    import textwrap

    columns = shutil.get_terminal_size().columns
    if head.width + len(words) <= columns:
        return [words]
    beside = columns - head.width >= _NARROW
    hang = max(head.width, head.below) if beside else head.below
    lines = textwrap.wrap(words, max(_NARROW, columns - hang), break_long_words=False, break_on_hyphens=False)
    if not beside:
        lines.insert(0, "")
    return [lines[0], *(f"{'':{hang}}{line}" for line in lines[1:])]
