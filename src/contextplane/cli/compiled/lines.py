"""Lines with a head and words after it. On a terminal the words go on below themselves; in a pipe a line stays one."""

from contextplane.cli.screen import Screen, clean

__all__ = ["Head", "say_words", "short"]

_NARROW = 30
"""With less room than this beside the head, the words go on below it."""


class Head:
    """What stands first in a line: as it is printed, how wide that is without its colours, where words go on below."""

    def __init__(self, shown: str, width: int, below: int) -> None:
        self.shown = shown
        self.width = width
        self.below = below


def say_words(head: Head, words: str, screen: Screen, color: str = "") -> None:
    """Print them as one line, or as many as the terminal needs."""
    first, *rest = _pieces(head, words, screen)
    screen.say(f"{head.shown}{_painted(first, color, screen)}".rstrip())
    for one in rest:
        screen.say(_painted(one, color, screen))


def short(text: str, longest: int = 150) -> str:
    """Text on its line, and no longer than that."""
    shown = clean(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _painted(text: str, color: str, screen: Screen) -> str:
    return screen.paint(color, text) if color and text else text


def _pieces(head: Head, words: str, screen: Screen) -> list[str]:
    if not screen.out.isatty():
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
    return [lines[0], *(f"{'':{hang}}{one}" for one in lines[1:])]
