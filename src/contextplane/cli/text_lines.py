"""A unified diff, told to people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.screen import Screen, clean, shortened

if TYPE_CHECKING:
    from contextplane.audit.text_diff import TextDiff

__all__ = ["text_lines"]

_COLOR = {"-": "red", "+": "green", "@": "dim", "\\": "dim"}


def text_lines(text: "TextDiff", screen: Screen) -> Iterator[str]:
    """The differing texts, or why they are not shown."""
    for line in text.lines:
        # A tab is the one control character that texts are made with, and does no harm.
        shown = shortened("\t".join(map(clean, line.split("\t"))))
        yield screen.paint(_COLOR[line[0]], shown) if line[:1] in _COLOR else shown
    if text.cut:
        yield screen.paint("yellow", "(cut: there is more than this)")
    if text.why:
        color = "red" if text.state in {"damaged", "missing"} else "yellow"
        yield screen.paint(color, f"({clean(text.why)})")
