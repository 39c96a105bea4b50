"""What we need of time, so that nothing else reads a clock."""

from datetime import datetime
from typing import Protocol

__all__ = ["Clock"]


class Clock(Protocol):
    """The time now, in UTC, with its zone."""

    def now(self) -> datetime: ...
