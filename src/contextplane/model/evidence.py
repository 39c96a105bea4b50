"""Evidence and memory as inputs of a compilation, and the evidence gate.

Evidence says where a fact comes from, how far its source is trusted, how fresh it is and what contradicts it. A plain
text is evidence too, as older callers give it: a bare reference, which can be shown to a model and can never close a
gate. `EvidenceGate` says what the evidence of a run is enough for; compiled contexts and decision records share it.
Only promoted memory is recalled; other memory is left out, with the reason.
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
    "EvidenceFreshness",
    "EvidenceGate",
    "EvidenceInput",
    "EvidenceText",
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


class EvidenceFreshness(Document, frozen=True, omit_defaults=True):
    """When it was observed, and until when it is valid. Without an end it does not age."""

    observed_at: Moment
    expires_at: Moment | None = None


class EvidenceConflict(Document, frozen=True, omit_defaults=True):
    """Another piece of evidence that contradicts this one.

    It is resolved when `selected` names one of the two and `resolution_ref` names who decided.
    """

    evidence_ref: EvidenceText
    selected: EvidenceText | None = None
    resolution_ref: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class Evidence(Document, frozen=True, omit_defaults=True):
    """One typed fact. A decision requires it by `type`; the model is shown its `content`."""

    evidence_ref: EvidenceText
    type: Identifier
    tenant_id: Identifier
    source: Identifier
    trust: Trust
    content: Annotated[str, Meta(max_length=1_000_000)]
    freshness: EvidenceFreshness | None = None
    classification: DataClassification = "INTERNAL"
    content_hash: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")] | None = None
    conflicts: tuple[EvidenceConflict, ...] = ()


EvidenceInput = Evidence | str


# --- The evidence gate ---

Sufficiency = Literal["sufficient", "obtainable", "insufficient"]
"""`obtainable`: missing evidence can still be obtained through tools that the run may use."""


class Satisfied(Document, frozen=True):
    """A required name, and what answers it.

    That is `policy`, `attested_by_request`, or the reference of admitted evidence.
    """

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


# --- Memory ---

MemoryState = Literal["captured", "candidate", "reviewed", "promoted", "rejected"]
MemoryTier = Literal["working", "episodic", "semantic", "durable"]


class Memory(Document, frozen=True, omit_defaults=True):
    """Something remembered of a subject. Without `intents` or `roles` it is for every intent or role."""

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
