"""The system clock and the system's random numbers. The only module that reads either."""

import os
from datetime import UTC, datetime

from contextplane.model.ids import HandoffId

__all__ = ["SystemClock", "SystemIds"]

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SystemIds:
    """The operating system's random numbers."""

    def token(self) -> str:
        return os.urandom(8).hex()

    def handoff_id(self) -> HandoffId:
        return HandoffId("pk_" + "".join(_BASE32[byte % len(_BASE32)] for byte in os.urandom(8)))

    def secret(self) -> bytes:
        return os.urandom(32)
