"""The real clock and real chance. The only module that reads either."""

import os
from datetime import UTC, datetime

__all__ = ["SystemClock", "SystemIds"]


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SystemIds:
    """The operating system's random numbers."""

    def token(self) -> str:
        return os.urandom(8).hex()
