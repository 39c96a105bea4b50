"""Exit statuses: stable, and documented in every `--help`. Only here an error family has a status."""

from contextplane.errors import Family

__all__ = [
    "CONFLICT",
    "DRIFT",
    "EXIT_OF",
    "FAILED",
    "INCOMPLETE",
    "NOT_FOUND",
    "OK",
    "REFUSED",
    "STATUSES",
    "UNTRUSTED",
    "USAGE",
]

OK, FAILED, USAGE, REFUSED, UNTRUSTED, DRIFT, NOT_FOUND, CONFLICT, INCOMPLETE = 0, 1, 2, 10, 11, 12, 13, 14, 15

EXIT_OF: dict[Family, int] = {
    "failed": FAILED,
    "usage": USAGE,
    "refused": REFUSED,
    "untrusted": UNTRUSTED,
    "drift": DRIFT,
    "not_found": NOT_FOUND,
    "conflict": CONFLICT,
}

STATUSES = (
    "0 ok, 1 failed, 2 usage, 10 refused, 11 untrusted, 12 drift, 13 not found, 14 conflict, "
    "15 incomplete, 130 interrupted, 141 broken pipe. Treat any other status as failed."
)
"""What each status means, for help."""
