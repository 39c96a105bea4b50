"""Whether a piece of evidence or a memory may be shown. Each that may not be has one reason."""

import re
from typing import Literal

from contextplane.compiler.hashing import text_digest
from contextplane.model.context_ledger import IntelligenceScope
from contextplane.model.context_pack.terms import DataClassification
from contextplane.model.evidence import Evidence, Freshness
from contextplane.model.timestamp import InvalidTimestamp, Timestamp

__all__ = ["Age", "age", "classified_above", "evidence_refused", "is_altered", "out_of_scope", "says_nothing"]

Age = Literal["current", "stale", "not_yet", "unknown"]

_LEVELS: dict[DataClassification, int] = {"PUBLIC": 0, "INTERNAL": 1, "CONFIDENTIAL": 2, "RESTRICTED": 3}
_SNAPSHOT = "snapshot_"

# What shows nothing: blanks of every kind, controls, marks without width; written down, as in `quoting`. And what JSON
# is made of besides names and values, in whatever nesting. Each run is taken whole or not at all, so that a long one
# costs no more than its length.
_SAYS_NOTHING = (
    "\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    r'\U000e0000-\U000e0fff\[\]{}",'
)
_EMPTY = re.compile(rf"(?:[{_SAYS_NOTHING}]++|null)*+")


def evidence_refused(
    item: Evidence, scope: IntelligenceScope, ceiling: DataClassification, as_of: Timestamp | None
) -> str | None:
    """Why this piece is not shown, whatever the others say; None when it may be.

    One that says nothing, not even where it is JSON, answers nothing: no result is not a result.
    """
    if is_altered(item):
        return "content_altered"
    if says_nothing(item.content):
        return "empty"
    reason = out_of_scope(item.evidence_ref, scope)
    if reason is not None:
        return reason
    if classified_above(item.classification, ceiling):
        return "classification_above_pack"
    how_old = age(item.freshness, as_of)
    return {"stale": "stale", "not_yet": "observed_later"}.get(how_old)


def is_altered(item: Evidence) -> bool:
    """Whether its content is another than the one that it was given its hash for."""
    return item.content_hash is not None and item.content_hash != text_digest(item.content)


def says_nothing(text: str) -> bool:
    return _EMPTY.fullmatch(text) is not None


def out_of_scope(ref: str, scope: IntelligenceScope) -> str | None:
    """Of the graph, only what the pack's namespaces and the one snapshot of this run hold is in scope."""
    kind, _, rest = ref.partition(":")
    if kind != "kg":
        return None
    thing, _, part = rest.partition("#")
    if thing.partition(":")[0] not in scope.ceid_namespaces:
        return "namespace_not_in_scope"
    if scope.snapshot is None:
        return "snapshot_unresolved"
    return None if part == _SNAPSHOT + scope.snapshot else "other_snapshot"


def classified_above(classification: DataClassification, ceiling: DataClassification) -> bool:
    return _LEVELS.get(classification, len(_LEVELS)) > _LEVELS[ceiling]


def age(freshness: Freshness | None, as_of: Timestamp | None) -> Age:
    """How old it is at the moment of the compile. Without a moment, or without times, nobody knows."""
    if freshness is None or as_of is None:
        return "unknown"
    try:
        observed = Timestamp.parse(freshness.observed_at)
        expires = None if freshness.expires_at is None else Timestamp.parse(freshness.expires_at)
    except InvalidTimestamp:
        return "unknown"
    if expires is not None and expires <= as_of:
        return "stale"
    return "not_yet" if observed > as_of else "current"
