"""Terms that several layers of a context pack share: identifiers, modes, durations, classifications."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta

__all__ = [
    "APPROVAL_MODES",
    "ApprovalMode",
    "Bucket",
    "DataClassification",
    "Duration",
    "Identifier",
    "JsonLogic",
    "LoneName",
    "Names",
    "OnDeny",
    "Semver",
    "Sentence",
    "at_most",
    "check_lone_names",
]


ApprovalMode = Literal["read_only", "local_write", "network", "delegated", "destructive"]
"""The most that a call may do, from harmless to irreversible."""


APPROVAL_MODES: tuple[ApprovalMode, ...] = ("read_only", "local_write", "network", "delegated", "destructive")
"""All approval modes, low to high."""


OnDeny = Literal["none", "read"]
"""The tools that stay when an intent is denied: none, or those that read."""


Bucket = Literal["business", "policy", "tool", "evidence", "memory", "session"]
"""The parts of a prompt, each with a budget of its own."""


DataClassification = Literal["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]


_ID_FORM = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z"
_ID_WORDS = "An id: ASCII letters, digits, _ . : and -, at most 128."
Identifier = Annotated[str, Meta(pattern=_ID_FORM, description=_ID_WORDS)]
"""A name that other parts refer to. ASCII, so that no two of them look alike."""


Names = tuple[Identifier, ...]


LoneName = Annotated[str, Meta(description=_ID_WORDS, extra_json_schema={"pattern": _ID_FORM})]
"""One id where a list of them may stand instead. A type that has it checks it with `check_lone_names`.

The pattern is no constraint of msgspec: msgspec 0.22 takes one that stands beside a list or an object for a type when
it collects garbage, and the process dies.
"""


_ID = re.compile(_ID_FORM)


def check_lone_names(values: Iterable[str | tuple[str, ...] | None]) -> None:
    """Raise a `ValueError` if one of the values is a text and no id."""
    for value in values:
        if isinstance(value, str) and not _ID.search(value):
            raise ValueError("a name has not the form of an id")


Semver = Annotated[
    str, Meta(pattern=r"^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){2}\Z", description="A version: X.Y.Z.")
]


Sentence = Annotated[str, Meta(min_length=1, max_length=2000)]
"""Text for people and models."""


Duration = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,8}[smhd]\Z", description="A whole number of s, m, h or d.")]


JsonLogic = dict[str, Any] | bool
"""An expression over the facts. The policy gate decides which expressions are allowed."""


def at_most(mode: ApprovalMode, ceiling: ApprovalMode) -> bool:
    """Whether a mode is at or below another on the ladder."""
    return APPROVAL_MODES.index(mode) <= APPROVAL_MODES.index(ceiling)
