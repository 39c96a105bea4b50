"""Opening the store for a verb, and saying so when that changed it; and a bar for what may take long there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.cli.progress import Bar

__all__ = ["open_store", "progress_bar"]


@contextmanager
def open_store(output: CommandOutput, *, following: bool = True, handoffs: bool = False) -> Iterator["Platform"]:
    """Open the store that we are in; `handoffs`: the one of handoff packs, which may be another."""
    from contextplane.app.platform import open_platform
    from contextplane.app.settings import from_environment

    settings = from_environment()
    if handoffs:
        from contextplane.app.handoff.archive import handoff_store_settings

        settings = handoff_store_settings(settings)
    with open_platform(settings, following=following) as platform:
        if platform.adopted:
            output.note(f"adopted the store at {clean(platform.home.path)}: what was in it is there unchanged")
        yield platform


@contextmanager
def progress_bar(output: CommandOutput) -> Iterator["Bar | None"]:
    """A bar, if somebody at a terminal waits; it is gone at the end, however that comes."""
    if not output.interactive:
        yield None
        return
    from contextplane.cli.progress import Bar

    bar = Bar(output)
    try:
        yield bar
    finally:
        bar.clear()
