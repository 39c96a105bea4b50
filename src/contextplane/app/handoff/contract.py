"""The contract of handoff packs as surfaces use it: reading documents, limits, freshness, errors.

It loads nothing of a store: a surface can describe and refuse a call before one is opened.
"""

from contextplane.handoff.document import (
    MAX_SPAN,
    NAME_BYTES,
    PATH_BYTES,
    READ_ONLY,
    HandoffInputReader,
    decoded_text,
    quote_short,
    read_document,
)
from contextplane.handoff.errors import HandoffInvalid, HandoffNotFound, HandoffRefusal, HandoffStateMismatch
from contextplane.handoff.freshness import MAX_TTL_MINUTES, FreshnessState, PackFreshness, freshness

__all__ = [
    "MAX_SPAN",
    "MAX_TTL_MINUTES",
    "NAME_BYTES",
    "PATH_BYTES",
    "READ_ONLY",
    "FreshnessState",
    "HandoffInputReader",
    "HandoffInvalid",
    "HandoffNotFound",
    "HandoffRefusal",
    "HandoffStateMismatch",
    "PackFreshness",
    "decoded_text",
    "freshness",
    "quote_short",
    "read_document",
]
