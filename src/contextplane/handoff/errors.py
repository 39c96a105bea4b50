"""Errors of handoff packs. `answer` is the kind and the code that clients know an error by."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "FinalizeRefused",
    "HandoffAmbiguous",
    "HandoffExpired",
    "HandoffInvalid",
    "HandoffNameTaken",
    "HandoffNotFound",
    "HandoffRefusal",
    "HandoffStateMismatch",
    "HandoffUnreadable",
    "RevisionConflict",
]


class HandoffRefusal(ContextPlaneError):
    """The base of all of them; `details` is guidance for machines, and never empty for what is invalid."""

    code: ClassVar[str] = "handoff_refused"
    family: ClassVar[Family] = "refused"
    answer: ClassVar[tuple[str, str]] = ("validation", "invalid_data")


class HandoffInvalid(HandoffRefusal):
    """An argument or a document that is not of its form."""

    code: ClassVar[str] = "handoff_invalid"


class HandoffNotFound(HandoffRefusal):
    """No pack of that id or name."""

    code: ClassVar[str] = "handoff_not_found"
    family: ClassVar[Family] = "not_found"
    answer: ClassVar[tuple[str, str]] = ("not_found", "not_found")


class HandoffExpired(HandoffNotFound):
    """A pack whose grace time is over, and which is still in the store. `details` says when it expired."""

    code: ClassVar[str] = "handoff_expired"


class HandoffNameTaken(HandoffRefusal):
    """A new pack under a name that another one has."""

    code: ClassVar[str] = "handoff_name_taken"
    family: ClassVar[Family] = "conflict"
    answer: ClassVar[tuple[str, str]] = ("conflict", "conflict")


class HandoffAmbiguous(HandoffRefusal):
    """A name of several packs, and nothing decides between them. `details.candidate_ids` lists them."""

    code: ClassVar[str] = "handoff_ambiguous"
    family: ClassVar[Family] = "conflict"
    answer: ClassVar[tuple[str, str]] = ("conflict", "ambiguous")


class RevisionConflict(HandoffRefusal):
    """Another writer was first. `details` says what changed since the expected revision, and how to go on."""

    code: ClassVar[str] = "handoff_revision_conflict"
    family: ClassVar[Family] = "conflict"
    answer: ClassVar[tuple[str, str]] = ("conflict", "revision_conflict")


class HandoffStateMismatch(HandoffRefusal):
    """The pack has another status than the one that was asked for."""

    code: ClassVar[str] = "handoff_state_mismatch"
    answer: ClassVar[tuple[str, str]] = ("invalid_state", "invalid_state")


class FinalizeRefused(HandoffRefusal):
    """The finalize checklist is not met. `details` has missing_sections, missing_fields and invalid_refs."""

    code: ClassVar[str] = "handoff_finalize_refused"
    answer: ClassVar[tuple[str, str]] = ("invalid_state", "finalize_validation")


class HandoffUnreadable(HandoffRefusal):
    """The stored revision cannot be read: its object is missing, damaged, or of a form unknown to us."""

    code: ClassVar[str] = "handoff_unreadable"
    family: ClassVar[Family] = "untrusted"
    answer: ClassVar[tuple[str, str]] = ("deserialize_error", "deserialize_error")
