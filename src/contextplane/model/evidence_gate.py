"""What the evidence of a run is enough for. The same shape stands in a compiled context and in a decision record."""

from typing import Literal

from contextplane.model.value import Document

__all__ = [
    "EvidenceConflictMarker",
    "EvidenceGate",
    "RejectedEvidence",
    "Satisfied",
    "Sufficiency",
    "Unanswering",
    "Unresolved",
]

Sufficiency = Literal["sufficient", "obtainable", "insufficient"]
"""`obtainable`: what is missing can still be had through tools that the run may use."""


class Satisfied(Document, frozen=True):
    """A required name, and what answers it: `request`, `policy`, or the reference of admitted evidence."""

    name: str
    by: str


class Unanswering(Document, frozen=True):
    """A piece of evidence of a required name that does not answer it, why, and its place in the input."""

    evidence_ref: str
    reason: str
    at: str


class Unresolved(Document, frozen=True):
    """A required name that nothing answers yet, why, and the tools of the surface that can.

    `reason` is `refused` when there was evidence of that name and none of it was admitted; `not_true` when the request
    speaks of it and does not say true; `policy_failed` when the policy engine should have answered it; `no_evidence`
    when there is nothing; else what is wrong with the nearest piece. `evidence` lists every piece of that name, with
    what is wrong with it.
    """

    name: str
    reason: str
    obtainable_by: tuple[str, ...] = ()
    evidence: tuple[Unanswering, ...] = ()


class RejectedEvidence(Document, frozen=True):
    """Evidence that was not admitted, and why."""

    evidence_ref: str
    reason: str


class EvidenceConflictMarker(Document, frozen=True, omit_defaults=True):
    """Two pieces of evidence that contradict each other. Resolved when both of the last are there."""

    evidence_refs: tuple[str, str]
    required: bool
    selected: str | None = None
    resolution_ref: str | None = None


class EvidenceGate(Document, frozen=True):
    """A decision may be committed only when every required name is satisfied and no conflict about one is open."""

    required: tuple[str, ...]
    satisfied: tuple[Satisfied, ...]
    unresolved: tuple[Unresolved, ...]
    rejected: tuple[RejectedEvidence, ...]
    conflicts: tuple[EvidenceConflictMarker, ...]
    sufficiency: Sufficiency
    commit_allowed: bool
