"""Opening the store for a verb, and saying so when that changed it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.screen import Screen, clean

if TYPE_CHECKING:
    from contextplane.app.platform import Platform

__all__ = ["opening"]


@contextmanager
def opening(screen: Screen, *, following: bool = True, handoffs: bool = False) -> Iterator["Platform"]:
    """Open the store that we are in; `handoffs`: the one of handoff packs, which may be another."""
    from contextplane.app.platform import opened
    from contextplane.app.settings import from_environment

    settings = from_environment()
    if handoffs:
        from contextplane.app.handoff_archiving import at_handoffs

        settings = at_handoffs(settings)
    with opened(settings, following=following) as platform:
        if platform.adopted:
            screen.note(f"adopted the store at {clean(platform.home.path)}: what was in it is there unchanged")
        yield platform
