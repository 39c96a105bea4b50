"""Telling only what happened."""

from collections.abc import Callable
from typing import ClassVar

from contextplane.errors import ContextPlaneError

__all__ = ["StoryUntrue", "refusal", "true"]


class StoryUntrue(ContextPlaneError):
    """The demo was about to tell something that did not happen."""

    code: ClassVar[str] = "demo_untrue"


def true(claim: bool, told: str) -> str:  # noqa: FBT001  reads as what it is
    if not claim:
        raise StoryUntrue(f"this did not happen: {told}")
    return told


def refusal(attempt: Callable[[], object]) -> str:
    """The code with which an attempt is refused."""
    try:
        attempt()
    except ContextPlaneError as error:
        return error.code
    raise StoryUntrue("this was not refused")
