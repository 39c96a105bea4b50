"""The CompiledContext: what the compiler makes of a pack, a run context, a request and evidence.

It consists of the prompt, in blocks that belong to buckets; manifests of what was used and what was left out; the
controls for the runtime; and the ledger, which holds the hash of every input and of every stage.
"""

from typing import Literal

from msgspec import field

from contextplane.model.compile_manifests import (
    ArgumentLimit,
    CallLimitEntry,
    CapabilityMetadata,
    DecisionManifestEntry,
    EvidenceManifestEntry,
    LimitFact,
    Manifests,
    MemoryManifestEntry,
    Omission,
    OmissionKind,
    PolicyManifestEntry,
    ToolManifestEntry,
)
from contextplane.model.evidence import EvidenceGate, Trust
from contextplane.model.terms import ApprovalMode, Bucket, DataClassification
from contextplane.model.value import Document

__all__ = [
    "BUCKETS",
    "PRIORITIES",
    "ArgumentLimit",
    "Bucket",
    "BudgetReport",
    "CallLimitEntry",
    "CapabilityMetadata",
    "CompiledContext",
    "CompiledPrompt",
    "ContextBlock",
    "ContextLedger",
    "DecisionManifestEntry",
    "DefaultSource",
    "EnvironmentValue",
    "EvidenceManifestEntry",
    "InstructionTreatment",
    "IntelligenceScope",
    "LedgerBudget",
    "LimitFact",
    "Lineage",
    "Manifests",
    "MemoryManifestEntry",
    "Omission",
    "OmissionKind",
    "PolicyManifestEntry",
    "PolicyVerdict",
    "RuntimeControls",
    "StageRecord",
    "ToolManifestEntry",
]

BUCKETS: tuple[Bucket, ...] = ("business", "policy", "tool", "evidence", "memory", "session")
"""In descending priority."""

PRIORITIES: dict[Bucket, int] = {
    "business": 90,
    "policy": 80,
    "tool": 70,
    "evidence": 60,
    "memory": 50,
    "session": 40,
}
"""Blocks carry the priority of their bucket."""

InstructionTreatment = Literal["instruction", "data_only"]
"""`data_only`: the model is told to read it and not to follow any instruction in it."""


class ContextBlock(Document, frozen=True, omit_defaults=True):
    """One block. `tokens` counts it as it stands in the prompt, data with its label and source.

    `block_id`: The id of the block, unique in the prompt.
    `bucket`: The bucket whose budget it uses.
    `content`: The text that the model reads.
    `priority`: That of its bucket: higher blocks are kept first.
    `provenance_refs`: Where the text comes from: parts of the pack, evidence, memories.
    `truncated`: Always false: a block is kept whole or left out.
    `evidence_type`: The type of evidence that it is.
    `trust`: How far the source of the evidence is trusted.
    `data_classification`: The classification of its content.
    `instruction_treatment`: Whether the model may follow it, or only read it as data.
    `content_hash`: The SHA-256 of the content.
    `tokens`: Its size in the prompt.
    """

    block_id: str
    bucket: Bucket
    content: str
    priority: int
    provenance_refs: tuple[str, ...] = ()
    truncated: bool = False
    evidence_type: str | None = None
    trust: Trust | None = None
    data_classification: DataClassification | None = None
    instruction_treatment: InstructionTreatment | None = None
    content_hash: str | None = None
    tokens: int | None = None


class CompiledPrompt(Document, frozen=True):
    """What a model is told. `context_blocks` stand in the order of the buckets.

    `system`: What holds for every request of the pack.
    `developer`: How the model must work, and what it must not do.
    `task`: The request, and what policy decided of it.
    `context_blocks`: The blocks, in the order of the buckets.
    """

    system: str
    developer: str
    task: str
    context_blocks: tuple[ContextBlock, ...]


DefaultSource = Literal["request", "run_context", "pack"]


class LedgerBudget(Document, frozen=True):
    """What the prompt uses of its budget.

    `tokens_used_at_compile`: The tokens of all blocks that were kept.
    `truncated_buckets`: The buckets that lost a block.
    """

    tokens_used_at_compile: int
    truncated_buckets: tuple[Bucket, ...]


class Lineage(Document, frozen=True):
    """A document that the resolved view was made from, and its digest.

    `ref`: The document, id@X.Y.Z.
    `digest`: The SHA-256 of its canonical bytes.
    """

    ref: str
    digest: str


class IntelligenceScope(Document, frozen=True):
    """What gives things their meaning in this run, and nothing else does. None: the pack has none.

    `ontology`: The ontology in its version, such as ont.support@1.0.0.
    `snapshot`: The snapshot that the run reads.
    `snapshot_pin_rule`: The rule of the pack that names the snapshot.
    `ceid_namespaces`: The namespaces in which subjects have an identity.
    `embedding_keys`: The indexes that retrieval may use.
    """

    ontology: str | None
    snapshot: str | None
    snapshot_pin_rule: str | None
    ceid_namespaces: tuple[str, ...]
    embedding_keys: tuple[str, ...]


class EnvironmentValue(Document, frozen=True):
    """Language, timezone, currency or region, and who said so.

    `value`: The value that holds in this run.
    `source`: Who said so: the request, the run context or the pack.
    """

    value: str
    source: DefaultSource


class StageRecord(Document, frozen=True, omit_defaults=True):
    """The hash of what one stage produced, and what it noticed.

    `stage`: The name of the stage.
    `hash`: The SHA-256 of what it produced.
    `notes`: What it noticed, for people.
    """

    stage: str
    hash: str
    notes: tuple[str, ...] = ()


class ContextLedger(Document, frozen=True, omit_defaults=True):
    """`inputs` holds a digest of every input, so that a change of any of them moves the hash.

    `fixed_tokens` counts what stands in no bucket: system, developer, task and what frames the blocks. `prefix_hash`
    and `prefix_length` (in bytes) are of the part that only the pack decides.

    `pack_ref`: The pack that was compiled, pack_id@X.Y.Z.
    `request_id`: The request. It shapes nothing.
    `policy_bundles`: The bundles whose rules were evaluated.
    `tools`: The capabilities that are surfaced.
    `evidence_refs`: The evidence that was admitted.
    `memory_refs`: The memories that were recalled.
    `budget`: What the blocks used of the budget.
    `compiled_context_hash`: The hash of this document, without this member and without correlation ids.
    `compiler_version`: The version of the compiler.
    `token_counter`: The counter that sized the blocks.
    `fixed_tokens`: The tokens that stand in no bucket.
    `prefix_hash`: The SHA-256 of the part of the prompt that only the pack decides.
    `prefix_length`: The length of that part, in bytes.
    `lineage`: The documents that the resolved view was made from, each with its digest.
    `scope`: The ontology, graph and namespaces of the run.
    `environment`: Language, timezone, currency and region, each with its source.
    `inputs`: The digest of every input, by its name.
    `stages`: The hash of every stage, in their order.
    """

    pack_ref: str
    request_id: str
    policy_bundles: tuple[str, ...]
    tools: tuple[str, ...]
    evidence_refs: tuple[str, ...]
    memory_refs: tuple[str, ...]
    budget: LedgerBudget
    compiled_context_hash: str
    compiler_version: str | None = None
    token_counter: str | None = None
    fixed_tokens: int | None = None
    prefix_hash: str | None = None
    prefix_length: int | None = None
    lineage: tuple[Lineage, ...] = ()
    scope: IntelligenceScope | None = None
    environment: dict[str, EnvironmentValue] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageRecord, ...] = ()


class RequiredApproval(Document, frozen=True):
    """An active approval gate. Calls of these capabilities wait for so many approvers of the role.

    The one who asks for the call is never one of them. `because` names the rules and tools that require the gate.

    `gate_id`: The approval gate.
    `capabilities`: The capabilities whose calls wait for it.
    `required_approver_role`: The role that approves.
    `approvers`: How many people must approve.
    `approver_not_requester`: Whether the requester may not approve; always true.
    `ttl_seconds`: How long an approval is valid.
    `because`: The rules and tools that require it.
    """

    gate_id: str
    capabilities: tuple[str, ...]
    required_approver_role: str
    approvers: int
    approver_not_requester: bool
    ttl_seconds: int
    because: tuple[str, ...]


class RuntimeControls(Document, frozen=True, omit_defaults=True):
    """The guardrails, gates and redactions that the runtime executes.

    `approval_gates_active` names the active gates; `approval_gates` says which calls wait for each, and for whom.

    `must_refuse`: The labels of all refusals that the pack declares.
    `must_escalate`: The labels of all escalations that the pack declares.
    `approval_gates_active`: The gates that are active in this run.
    `redaction_rules_active`: The redactions that are active in this run.
    `approval_gates`: The active gates, with the calls that wait for them.
    `guardrail_messages`: What to say when a guardrail is triggered, by its label.
    """

    must_refuse: tuple[str, ...]
    must_escalate: tuple[str, ...]
    approval_gates_active: tuple[str, ...]
    redaction_rules_active: tuple[str, ...]
    approval_gates: tuple[RequiredApproval, ...] = ()
    guardrail_messages: dict[str, str] = field(default_factory=dict)


class BudgetReport(Document, frozen=True):
    """What was allotted and used, by bucket, and every block that did not fit.

    `tokens_allocated`: The tokens that each bucket was allotted.
    `tokens_used_at_compile`: The tokens of all blocks that were kept.
    `tokens_used_by_bucket`: The tokens that each bucket used.
    `bucket_truncations`: Whether each bucket lost a block.
    `dropped_block_ids`: The blocks that did not fit, by bucket.
    `warnings`: What a person should know, such as a budget that is too small.
    """

    tokens_allocated: dict[Bucket, int]
    tokens_used_at_compile: int
    tokens_used_by_bucket: dict[Bucket, int]
    bucket_truncations: dict[Bucket, bool]
    dropped_block_ids: dict[Bucket, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class ActiveGuardrail(Document, frozen=True, omit_defaults=True):
    """A triggered guardrail: every way `by` which it was triggered, and what to say.

    `missing` are the facts that its `when` read and that are missing; `error` is why its `when` cannot be evaluated.

    `id`: The label of the guardrail.
    `kind`: Whether it refuses or escalates.
    `by`: Every way by which it was triggered.
    `message`: What to say to the caller.
    `missing`: The facts that its condition read and that are missing.
    `error`: Why its condition cannot be evaluated.
    """

    id: str
    kind: Literal["must_refuse", "must_escalate"]
    by: tuple[str, ...]
    message: str | None = None
    missing: tuple[str, ...] = ()
    error: str | None = None


class PolicyVerdict(Document, frozen=True, omit_defaults=True):
    """What policy decided of the request. `denials` are all its reasons when it is not allowed.

    `missing_facts` were read by a rule or a guardrail, or are what a rule applies by, and not there; `refused` and
    `escalated` are the guardrails that were triggered, and `guardrails` says of each how, and what to say.

    `allowed`: Whether the request is allowed.
    `policy_decision_id`: The id of the decision, by the rules that took part.
    `reason`: The first reason of the decision.
    `effective_approval_mode`: The strictest approval mode of the rules that took effect.
    `requires_approval_gates`: The gates that rules require.
    `requires`: The evidence that rules require.
    `prohibits`: The capabilities that rules prohibit.
    `matched_rule_ids`: The rules that took effect.
    `denials`: Every reason of a denial.
    `missing_facts`: The facts that were read and are missing.
    `refused`: The refusals that were triggered.
    `escalated`: The escalations that were triggered.
    `guardrails`: How each of those was triggered.
    """

    allowed: bool
    policy_decision_id: str
    reason: str | None = None
    effective_approval_mode: ApprovalMode | None = None
    requires_approval_gates: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    prohibits: tuple[str, ...] = ()
    matched_rule_ids: tuple[str, ...] = ()
    denials: tuple[str, ...] = ()
    missing_facts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    escalated: tuple[str, ...] = ()
    guardrails: tuple[ActiveGuardrail, ...] = ()


class CompiledContext(Document, frozen=True, omit_defaults=True):
    """All that shaped or was kept from the model. The same inputs always give the same one.

    `compiled_prompt`: What the model reads.
    `manifests`: What was used, and what was left out.
    `runtime_controls`: The guardrails, gates and redactions that the runtime executes.
    `budget_report`: What the prompt uses of its budget.
    `context_ledger`: The hashes of all inputs and stages.
    `policy_decision`: What policy decided of the request.
    `evidence_gate`: What the evidence is enough for.
    """

    compiled_prompt: CompiledPrompt
    manifests: Manifests
    runtime_controls: RuntimeControls
    budget_report: BudgetReport
    context_ledger: ContextLedger
    policy_decision: PolicyVerdict | None = None
    evidence_gate: EvidenceGate | None = None
