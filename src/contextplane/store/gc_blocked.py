"""The refusal to collect anything at all."""

from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = ["GcBlocked", "named"]

_NAMED = 5


class GcBlocked(ContextPlaneError):
    """What something alive refers to is unknown, or forgotten by the index, so nothing may be collected."""

    code: ClassVar[str] = "gc_blocked"
    family: ClassVar[Family] = "refused"


def named(what: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(what) - _NAMED:,} more" if len(what) > _NAMED else ""
    return ", ".join(what[:_NAMED]) + more
