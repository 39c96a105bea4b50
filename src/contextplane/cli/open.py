"""Opening the store for a verb, and saying so when that changed it; and a bar for what may take long there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.output import Screen, clean

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.cli.progress import Bar

__all__ = ["opening", "watching"]


@contextmanager
def opening(screen: Screen, *, following: bool = True, handoffs: bool = False) -> Iterator["Platform"]:
    """Open the store that we are in; `handoffs`: the one of handoff packs, which may be another."""
    from contextplane.app.platform import opened
    from contextplane.app.settings import from_environment

    settings = from_environment()
    if handoffs:
        from contextplane.app.handoff.archive import at_handoffs

        settings = at_handoffs(settings)
    with opened(settings, following=following) as platform:
        if platform.adopted:
            screen.note(f"adopted the store at {clean(platform.home.path)}: what was in it is there unchanged")
        yield platform


@contextmanager
def watching(screen: Screen) -> Iterator["Bar | None"]:
    """A bar, if somebody at a terminal waits; it is gone at the end, however that comes."""
    if not screen.watched:
        yield None
        return
    from contextplane.cli.progress import Bar

    bar = Bar(screen)
    try:
        yield bar
    finally:
        bar.clear()
