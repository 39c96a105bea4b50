"""Opens the store for a verb, and says so when that changed it; shows a progress bar for long work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.app.session import LocalPrincipal, PrincipalSession
    from contextplane.cli.terminal import Bar

__all__ = ["note_adopted", "open_store", "progress_bar", "store_session"]


@contextmanager
def open_store(output: CommandOutput, *, following: bool = True, handoffs: bool = False) -> Iterator["Platform"]:
    """Open the current store; `handoffs`: the store of handoff packs, which may be another."""
    with store_session(output, following=following, handoffs=handoffs) as session:
        yield session.platform


@contextmanager
def store_session(
    output: CommandOutput,
    principal: "LocalPrincipal | None" = None,
    *,
    following: bool = True,
    handoffs: bool = False,
) -> Iterator["PrincipalSession"]:
    """Open a session with the current store; without a principal it has no key to act with."""
    from contextplane.app.session import open_session
    from contextplane.app.settings import from_environment

    settings = from_environment()
    if handoffs:
        from contextplane.app.handoff.archive import handoff_store_settings

        settings = handoff_store_settings(settings)
    with open_session(settings, principal, following=following) as session:
        note_adopted(session.platform, output)
        yield session


def note_adopted(platform: "Platform", output: CommandOutput) -> None:
    """Note that the store belonged to another program until now."""
    if platform.adopted:
        output.note(f"adopted the store at {clean(platform.home.path)}, unchanged")


@contextmanager
def progress_bar(output: CommandOutput) -> Iterator["Bar | None"]:
    """Yield a progress bar, or None if no person at a terminal sees it. An error removes it, too."""
    if not output.interactive:
        yield None
        return
    from contextplane.cli.terminal import Bar

    bar = Bar(output)
    try:
        yield bar
    finally:
        bar.clear()
