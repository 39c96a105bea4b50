"""Terms that several layers of a context pack share: identifiers, modes, durations, classifications."""

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
    "Names",
    "OnDeny",
    "Semver",
    "Sentence",
    "at_most",
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


Identifier = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z",
        description="An id: ASCII letters, digits, _ . : and -, at most 128.",
    ),
]
"""A name that other parts refer to. ASCII, so that no two of them look alike."""


Names = tuple[Identifier, ...]


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
