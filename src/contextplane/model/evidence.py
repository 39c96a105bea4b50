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
    """When it was observed, and until when it is valid. Without an end it does not age.

    `observed_at`: When the fact was observed.
    `expires_at`: Until when it is valid.
    """

    observed_at: Moment
    expires_at: Moment | None = None


class EvidenceConflict(Document, frozen=True, omit_defaults=True):
    """Another piece of evidence that contradicts this one.

    It is resolved when `selected` names one of the two and `resolution_ref` names who decided.

    `evidence_ref`: The evidence that contradicts this one.
    `selected`: Which of the two holds.
    `resolution_ref`: The record of who decided so.
    """

    evidence_ref: EvidenceText
    selected: EvidenceText | None = None
    resolution_ref: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class Evidence(Document, frozen=True, omit_defaults=True):
    """One typed fact. A decision requires it by `type`; the model is shown its `content`.

    `evidence_ref`: The reference of the evidence.
    `type`: What kind of fact it is; decisions require evidence by type.
    `tenant_id`: The tenant that it belongs to.
    `source`: The source that it comes from.
    `trust`: How far the source is trusted. Only authoritative and verified evidence closes a gate.
    `content`: The text that the model reads.
    `freshness`: When it was observed, and until when it is valid.
    `classification`: The classification of its content.
    `content_hash`: The SHA-256 of its content, checked if it is there.
    `conflicts`: The evidence that contradicts it.
    """

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

    `name`: The required evidence.
    `by`: What answers it: policy, attested_by_request, or a reference.
    """

    name: str
    by: str


class Unanswering(Document, frozen=True):
    """A piece of evidence of a required name that does not answer it, why, and its place in the input.

    `evidence_ref`: The evidence.
    `reason`: Why it does not answer.
    `at`: Its place in the input.
    """

    evidence_ref: str
    reason: str
    at: str


class Unresolved(Document, frozen=True):
    """A required name that nothing answers yet, why, and the tools of the surface that can.

    `reason` is `refused` when there was evidence of that name and none of it was admitted; `not_true` when the request
    speaks of it and does not say true; `policy_failed` when the policy engine should have answered it; `no_evidence`
    when there is nothing; else what is wrong with the nearest piece. `evidence` lists every piece of that name, with
    what is wrong with it.

    `name`: The required evidence.
    `reason`: Why nothing answers it, as a stable code.
    `obtainable_by`: The surfaced tools that can obtain it.
    `evidence`: The evidence of that name, and why it does not answer.
    """

    name: str
    reason: str
    obtainable_by: tuple[str, ...] = ()
    evidence: tuple[Unanswering, ...] = ()


class RejectedEvidence(Document, frozen=True):
    """Evidence that was not admitted, and why.

    `evidence_ref`: The evidence.
    `reason`: Why it was not admitted, as a stable code.
    """

    evidence_ref: str
    reason: str


class EvidenceConflictMarker(Document, frozen=True, omit_defaults=True):
    """Two pieces of evidence that contradict each other. Resolved when both of the last are there.

    `evidence_refs`: The two pieces of evidence.
    `required`: Whether one of them is required evidence.
    `selected`: Which of the two holds.
    `resolution_ref`: The record of who decided so.
    """

    evidence_refs: tuple[str, str]
    required: bool
    selected: str | None = None
    resolution_ref: str | None = None


class EvidenceGate(Document, frozen=True):
    """A decision may be committed only when every required name is satisfied and no conflict about one is open.

    `required`: The evidence that the decision requires.
    `satisfied`: What answers each required name.
    `unresolved`: The required names that nothing answers.
    `rejected`: The evidence that was not admitted.
    `conflicts`: The contradictions in the evidence.
    `sufficiency`: Whether the evidence is enough, or can be obtained.
    `commit_allowed`: Whether the decision may be committed.
    """

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
    """Something remembered of a subject. Without `intents` or `roles` it is for every intent or role.

    `memory_ref`: The reference of the memory.
    `tenant_id`: The tenant that it belongs to.
    `state`: How far it was reviewed. Only promoted memory is recalled.
    `tier`: How long memory of its kind lives.
    `write_class`: What kind of memory it is.
    `content`: The text that the model reads.
    `subject`: Who or what it is about.
    `intents`: The only intents that it is for.
    `roles`: The only roles that it is for.
    `classification`: The classification of its content.
    `expires_at`: Until when it is valid.
    `evidence_refs`: The evidence that it rests on.
    """

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
