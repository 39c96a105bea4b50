"""The draft that the stages of a compile pass on: the inputs, and the part that each stage added."""

from typing import Any

from msgspec import field

from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import (
    BudgetReport,
    CompiledContext,
    CompiledPrompt,
    ContextBlock,
    EnvironmentValue,
    IntelligenceScope,
    Manifests,
    MemoryManifestEntry,
    Omission,
    PolicyManifestEntry,
    PolicyVerdict,
    RequiredApproval,
    RuntimeControls,
    StageRecord,
    ToolManifestEntry,
)
from contextplane.model.evidence import EvidenceConflictMarker, EvidenceGate, EvidenceInput, Memory, Unanswering
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import Tokens
from contextplane.model.value import Value
from contextplane.policy.decision import PolicyDecision
from contextplane.policy.facts import Facts

__all__ = [
    "AdmittedEvidence",
    "AssemblePart",
    "BudgetPart",
    "Draft",
    "EvidencePart",
    "Inputs",
    "IntentPart",
    "MemoryPart",
    "PolicyPart",
    "RecalledMemory",
    "RedactionPart",
    "ScopePart",
    "StagePart",
    "ToolsPart",
]

_UNSET: Any = None
"""A part that a later stage adds. The order of the table of stages makes it safe to read."""


class Inputs(Value, frozen=True):
    """All inputs of a compile, each with its digest. Of the correlation ids only `request_id` is left."""

    view: PackView
    run_context: RunContext
    request: InvokeRequest
    evidence: tuple[EvidenceInput, ...]
    memories: tuple[Memory, ...]
    tokens: Tokens
    as_of: Timestamp | None
    request_id: str
    digests: dict[str, str]


class StagePart(Value, frozen=True, kw_only=True):
    """What one stage produced. Its hash covers all fields, `omitted` and `notes` included.

    So the names of the fields of every part are part of the stage hashes.
    """

    notes: tuple[str, ...] = ()
    omitted: tuple[Omission, ...] = ()


class RedactionPart(StagePart, frozen=True, kw_only=True):
    """What was masked, as omissions. The masked inputs are in the prompt, which is hashed as well."""


class ScopePart(StagePart, frozen=True, kw_only=True):
    scope: IntelligenceScope
    environment: dict[str, EnvironmentValue]


class IntentPart(StagePart, frozen=True, kw_only=True):
    intent: str
    decisions: tuple[str, ...]
    required_evidence: tuple[str, ...]


class PolicyPart(StagePart, frozen=True, kw_only=True):
    verdict: PolicyVerdict
    manifest: tuple[PolicyManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]


class ToolsPart(StagePart, frozen=True, kw_only=True):
    """The tool surface. There is one block for each entry of the manifest, in the same order."""

    manifest: tuple[ToolManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]
    approvals: tuple[RequiredApproval, ...]


class AdmittedEvidence(Value, frozen=True):
    """Evidence that may be shown. `closes`: the required name that it answers, None if it answers none.

    `hash`: the digest of an attachment, of which only a reference is shown; None if the shown content is hashed.
    """

    evidence_ref: str
    source: str | None
    at: str
    closes: str | None
    hash: str | None = None


class EvidencePart(StagePart, frozen=True, kw_only=True):
    """The evidence of a compile. There is one block for each admitted piece, in the same order.

    `doubtful`: for each required name, the shown pieces of that name that cannot close the gate. `refused`: the same
    for pieces that are not shown.
    """

    required: tuple[str, ...]
    admitted: tuple[AdmittedEvidence, ...]
    blocks: tuple[ContextBlock, ...]
    conflicts: tuple[EvidenceConflictMarker, ...]
    doubtful: dict[str, tuple[Unanswering, ...]]
    refused: dict[str, tuple[Unanswering, ...]]


class RecalledMemory(Value, frozen=True):
    """A memory that may be shown, and its place in the input."""

    entry: MemoryManifestEntry
    at: str


class MemoryPart(StagePart, frozen=True, kw_only=True):
    recalled: tuple[RecalledMemory, ...]
    blocks: tuple[ContextBlock, ...]


class BudgetPart(StagePart, frozen=True, kw_only=True):
    """The budget: the ids of the blocks that fit, in the order of the prompt, and the report."""

    kept: tuple[str, ...]
    report: BudgetReport
    fixed_tokens: int


class AssemblePart(StagePart, frozen=True, kw_only=True):
    """The compiled context without its blocks, which earlier stages hashed, and without its ledger."""

    developer: str
    task: str
    manifests: Manifests
    controls: RuntimeControls
    gate: EvidenceGate
    prefix_hash: str
    prefix_length: int


class Draft(Value, frozen=True):
    """A compile in progress. A stage reads the parts of earlier stages, and adds the part of its own name.

    `inputs` are the real values: policy and admission are decided on them. `shown` are the same with masks: what a
    prompt, a manifest or a note repeats comes from there. `masked_refs`: the references that have a mask.
    """

    inputs: Inputs
    stages: tuple[StageRecord, ...] = ()
    shown: Inputs = _UNSET
    masked_refs: dict[str, str] = field(default_factory=dict)
    redaction: RedactionPart = _UNSET
    scope: ScopePart = _UNSET
    intent: IntentPart = _UNSET
    facts: Facts = _UNSET
    decision: PolicyDecision = _UNSET
    policy: PolicyPart = _UNSET
    tools: ToolsPart = _UNSET
    evidence: EvidencePart = _UNSET
    memory: MemoryPart = _UNSET
    budget: BudgetPart = _UNSET
    prompt: CompiledPrompt = _UNSET
    assemble: AssemblePart = _UNSET
    seal: CompiledContext = _UNSET
