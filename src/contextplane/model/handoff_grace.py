"""How long handoff packs of a store can be had after their deadline, as far as it was ever told. It reads no store."""

from collections.abc import Iterable

import msgspec

from contextplane.model.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Document

__all__ = ["DEFAULT_GRACE_SECONDS", "GRACE_STREAM", "MOST_GRACE_SECONDS", "grace_body", "longest_grace"]

GRACE_STREAM = "handoff_grace"
"""The stream of grace times, each longer than the one before: nobody collects what somebody here still serves."""

DEFAULT_GRACE_SECONDS = 900
"""What counts unless somebody said otherwise."""

MOST_GRACE_SECONDS = 2**53 - 1
"""For ever: no longer one can be written down."""


class _Grace(Document, frozen=True):
    at: str
    grace_seconds: int


_grace = msgspec.json.Decoder(_Grace)


def grace_body(seconds: int, at: Timestamp) -> bytes:
    return canonical({"at": str(at), "grace_seconds": seconds})


def longest_grace(bodies: Iterable[bytes]) -> int:
    """The longest of all, and at least the default. One that is not understood may be any: then nothing is over."""
    longest = DEFAULT_GRACE_SECONDS
    for body in bodies:
        try:
            longest = max(longest, _grace.decode(body).grace_seconds)
        except ValueError:  # what msgspec raises
            return MOST_GRACE_SECONDS
    return longest
