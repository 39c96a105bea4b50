"""Long answers on a terminal, a screen at a time. In a pipe or a file they are written as they are."""

import sys

from contextplane.cli.output import CommandOutput

__all__ = ["page"]


def page(text: str, output: CommandOutput) -> None:
    """Say `text`, through the pager when it is longer than the terminal. `PAGER` names it, as for other commands."""
    from contextplane.app.settings import from_environment

    pager = from_environment().pager
    too_long = sys.stdout.isatty() and not output.quiet and text.count("\n") >= _lines()
    if not (too_long and pager and _paged(text, pager)):
        output.line(text)


def _lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines - 1


def _paged(text: str, pager: str) -> bool:
    """Whether there was such a pager. To stop reading before the end, or by Ctrl-C, is no error of ours."""
    import shlex
    import signal
    import subprocess

    try:
        process = subprocess.Popen(shlex.split(pager), stdin=subprocess.PIPE)  # noqa: S603  whose PAGER it is chose it
    except (OSError, ValueError, IndexError):
        return False
    # Ctrl-C is for the pager, while there is one: it would be left without its text, and the terminal in its hands.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(text.encode(errors="backslashreplace") + b"\n")
    finally:
        signal.signal(signal.SIGINT, before)
    return True
