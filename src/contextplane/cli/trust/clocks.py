"""What is said of a clock that does not agree with what is on record."""

from datetime import timedelta

from contextplane.app.keys import KeyDesk
from contextplane.cli.screen import Screen

__all__ = ["tell_clock"]


def tell_clock(desk: KeyDesk, screen: Screen) -> None:
    """After an act: that it is on record at a later time than this machine's, when they differ by over a minute."""
    if desk.behind:
        behind = timedelta(seconds=desk.behind)
        screen.note(
            f"this machine's clock is {behind} behind what is on record, and the act stands right after that;"
            " docs/registry.md, 'When a clock was wrong', tells what it means"
        )
