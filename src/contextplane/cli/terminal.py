"""What a terminal adds to an answer: a pager for long texts, and a bar for long work.

In a pipe or a file there is neither.
"""

import sys
import time
from _thread import allocate_lock

from contextplane.cli.output import CommandOutput, human_size, quantity

__all__ = ["Bar", "page"]

_PATIENCE = 1.0
_EVERY = 0.1
_WIDTH = 30
_MUCH = 1 << 30


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


class Bar:
    """A bar that is redrawn on one line of standard error.

    It is measured by the expected bytes, else by the expected objects. If neither is known there is no bar, only the
    numbers so far.
    """

    def __init__(self, output: CommandOutput, objects: int = 0) -> None:
        self._output = output
        self._on = output.interactive
        self._objects_expected = objects
        self._size_expected = 0
        self.objects = self.bytes = 0
        self._next = time.monotonic() + _PATIENCE
        self._drawn = False
        self._turn = allocate_lock()

    def expect(self, size: int) -> None:
        """Set the expected size. The bar of a very large one is drawn at once: its first part may take long."""
        self._size_expected = size
        if size >= _MUCH:
            self._next = 0.0
        self.step(0, 0)

    def step(self, size: int, objects: int) -> None:
        with self._turn:
            self.bytes += size
            self.objects += objects
            if self._on and time.monotonic() >= self._next:
                self._next = time.monotonic() + _EVERY
                self._draw()

    def clear(self) -> None:
        """Remove the bar, so that a line can be printed in its place."""
        if self._drawn:
            self._output.err.write("\r\x1b[K")
            self._output.err.flush()
            self._drawn = False

    def _draw(self) -> None:
        whole = f" of {human_size(self._size_expected)}" if self._size_expected else ""
        numbers = f"{quantity(self.objects, 'object')}, {human_size(self.bytes)}{whole}"
        # Heavy, and seldom needed.
        from shutil import get_terminal_size

        # A line that wraps could not be removed again.
        line = f"{self._bar()}{numbers}"[: get_terminal_size().columns - 1]
        self._output.err.write(f"\r\x1b[K{line}")
        self._output.err.flush()
        self._drawn = True

    def _bar(self) -> str:
        done, expected = self.objects, self._objects_expected
        if self._size_expected:
            done, expected = self.bytes, self._size_expected
        if not expected:
            return ""
        filled = round(min(1.0, done / expected) * _WIDTH)
        return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] "
