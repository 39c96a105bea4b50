"""Opening the place of handoff packs for a verb."""

from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.app.handoff import Desk, opened_desk
from contextplane.app.settings import from_environment
from contextplane.cli.screen import Screen, clean

__all__ = ["opening_desk"]


@contextmanager
def opening_desk(screen: Screen) -> Iterator[Desk]:
    """The packs of the place that we are in, those of a reference root there taken in."""
    with opened_desk(from_environment()) as desk:
        desk.reading  # noqa: B018  it opens the store, if there is one
        if desk.platform is not None and desk.platform.adopted:
            screen.note(f"adopted the store at {clean(desk.platform.home.path)}: what was in it is there unchanged")
        yield desk
