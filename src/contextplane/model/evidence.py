"""Evidence that a run may rest on: where it comes from, how far it is trusted, how fresh it is, what contradicts it.

A plain text is evidence, too, as older callers give it: a bare reference, of which nothing is known. It can be shown to
a model and can never close a gate.

What the evidence of a run is enough for. The same shape stands in a compiled context and in a decision record.

A memory as the compiler is given it. Only promoted memory is recalled; what is not says so, and is left out.
"""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack import Moment, WriteClass
from contextplane.model.terms import DataClassification, Identifier, Names
from contextplane.model.value import Document

__all__ = [
    "Evidence",
    "EvidenceConflict",
    "EvidenceConflictMarker",
    "EvidenceGate",
    "EvidenceInput",
    "EvidenceText",
    "Freshness",
    "Memory",
    "MemoryState",
    "MemoryTier",
    "RejectedEvidence",
    "Satisfied",
    "Sufficiency",
    "Trust",
    "Unanswering",
    "Unresolved",
]

Trust = Literal["authoritative", "verified", "untrusted", "unknown"]
"""How far the source is trusted. Only the first two can close a gate."""

EvidenceText = Annotated[
    str,
    Meta(
        pattern=r"^(kg|tool|policy|session):[!-\"$-~]{1,512}(#[!-\"$-~]{1,256})?\Z",
        description="kg:|tool:|policy:|session:<id>[#<part>], without white space",
    ),
]


class Freshness(Document, frozen=True, omit_defaults=True):
    """When it was seen, and until when that holds. Without an end it does not age."""

    observed_at: Moment
    expires_at: Moment | None = None


class EvidenceConflict(Document, frozen=True, omit_defaults=True):
    """Another piece of evidence that says otherwise.

    It is resolved when `selected` names one of the two and `resolution_ref` who decided that.
    """

    evidence_ref: EvidenceText
    selected: EvidenceText | None = None
    resolution_ref: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class Evidence(Document, frozen=True, omit_defaults=True):
    """One typed fact. `type` is the name that a decision requires it by; `content` is what the model is shown."""

    evidence_ref: EvidenceText
    type: Identifier
    tenant_id: Identifier
    source: Identifier
    trust: Trust
    content: Annotated[str, Meta(max_length=1_000_000)]
    freshness: Freshness | None = None
    classification: DataClassification = "INTERNAL"
    content_hash: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")] | None = None
    conflicts: tuple[EvidenceConflict, ...] = ()


EvidenceInput = Evidence | str


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


MemoryState = Literal["captured", "candidate", "reviewed", "promoted", "rejected"]
MemoryTier = Literal["working", "episodic", "semantic", "durable"]


class Memory(Document, frozen=True, omit_defaults=True):
    """What was remembered of a subject. Without `intents` it is for every intent, without `roles` for every role."""

    memory_ref: Annotated[str, Meta(pattern=r"^[!-~]{1,512}\Z", description="ASCII without blanks, at most 512.")]
    tenant_id: Identifier
    state: MemoryState
    tier: MemoryTier
    write_class: WriteClass
    content: Annotated[str, Meta(max_length=1_000_000)]
    subject: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+:[!-~]{1,256}\Z", description="namespace:id")] | None = None
    intents: Names = ()
    roles: Names = ()
    classification: DataClassification = "INTERNAL"
    expires_at: Moment | None = None
    evidence_refs: tuple[str, ...] = ()
