"""What we need of time and chance, so that nothing else reads a clock or makes up a number."""

from datetime import datetime
from typing import Protocol

__all__ = ["Clock", "Ids"]


class Clock(Protocol):
    """The time now, in UTC, with its zone."""

    def now(self) -> datetime: ...


class Ids(Protocol):
    """Names nobody has used before."""

    def token(self) -> str:
        """Return 16 random hexadecimal digits."""
        ...
