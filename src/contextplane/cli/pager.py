"""Shows long answers on a terminal through a pager. In a pipe or a file they are written as they are."""

import sys

from contextplane.cli.output import CommandOutput

__all__ = ["page"]


def page(text: str, output: CommandOutput) -> None:
    """Print a text; through the pager that `PAGER` names if it is longer than the terminal."""
    from contextplane.app.settings import from_environment

    pager = from_environment().pager
    too_long = sys.stdout.isatty() and not output.quiet and text.count("\n") >= _lines()
    if not (too_long and pager and _run_pager(text, pager)):
        output.line(text)


def _lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines - 1


def _run_pager(text: str, pager: str) -> bool:
    """Show a text in a pager; whether there was such a program. Leaving it before the end is no error."""
    import shlex
    import signal
    import subprocess

    try:
        process = subprocess.Popen(shlex.split(pager), stdin=subprocess.PIPE)  # noqa: S603  the person whose PAGER it is chose it
    except (OSError, ValueError, IndexError):
        return False
    # Ctrl-C is for the pager while it runs: if we ended first, it would keep the terminal, without its text.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(text.encode(errors="backslashreplace") + b"\n")
    finally:
        signal.signal(signal.SIGINT, before)
    return True
