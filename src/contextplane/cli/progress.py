"""A progress bar of our own thirty lines: on a terminal, after a second, and never in a pipe."""

import sys
import time

from contextplane.cli.screen import Screen, human_size

__all__ = ["Bar"]

_PATIENCE = 1.0
_EVERY = 0.1
_WIDTH = 30


class Bar:
    """How far a check has come, redrawn on one line of standard error."""

    def __init__(self, screen: Screen, expected: int) -> None:
        self._on = screen.err.isatty() and not screen.quiet and not screen.json
        self._expected = expected
        self.objects = self.bytes = 0
        self._next = time.monotonic() + _PATIENCE
        self._drawn = False

    def step(self, size: int, objects: int) -> None:
        self.bytes += size
        self.objects += objects
        if self._on and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            self._draw()

    def clear(self) -> None:
        """Take the bar away, so that a line can be printed where it stood."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            self._drawn = False

    def _draw(self) -> None:
        part = min(1.0, self.objects / self._expected) if self._expected else 0.0
        filled = round(part * _WIDTH)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        sys.stderr.write(f"\r\x1b[K[{bar}] {self.objects:,} objects, {human_size(self.bytes)}")
        sys.stderr.flush()
        self._drawn = True
