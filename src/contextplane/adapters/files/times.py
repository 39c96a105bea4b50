"""When a file was changed, as a moment that can be reckoned with: some file systems keep times of any year."""

import os
from datetime import UTC, datetime

__all__ = ["changed_at"]

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def changed_at(found: os.stat_result) -> datetime:
    """A time before the year 1 is the first moment that there is, one after 9999 the last."""
    try:
        return datetime.fromtimestamp(found.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return _FIRST if found.st_mtime < 0 else _LAST
