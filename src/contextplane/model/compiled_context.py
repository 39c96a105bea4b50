"""The CompiledContext: what the compiler makes of a pack, a run context, a request and evidence.

It consists of the prompt, in blocks that belong to buckets; manifests of what was used and what was left out; the
controls for the runtime; and the ledger, which holds the hash of every input and of every stage.
"""

from typing import Any, Literal

from msgspec import field

from contextplane.model.arguments import BoundName, CallLimit, ResolvedConstraint
from contextplane.model.evidence import EvidenceGate, Trust
from contextplane.model.terms import ApprovalMode, DataClassification
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

Bucket = Literal["business", "policy", "tool", "evidence", "memory", "session"]

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
    """One block. `tokens` counts it as it stands in the prompt, data with its label and source."""

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
    """What a model is told. `context_blocks` stand in the order of the buckets."""

    system: str
    developer: str
    task: str
    context_blocks: tuple[ContextBlock, ...]


DefaultSource = Literal["request", "run_context", "pack"]


class LedgerBudget(Document, frozen=True):
    tokens_used_at_compile: int
    truncated_buckets: tuple[Bucket, ...]


class Lineage(Document, frozen=True):
    """A document that the resolved view was made from, and its digest."""

    ref: str
    digest: str


class IntelligenceScope(Document, frozen=True):
    """What gives things their meaning in this run, and nothing else does. None: the pack has none."""

    ontology: str | None
    snapshot: str | None
    snapshot_pin_rule: str | None
    ceid_namespaces: tuple[str, ...]
    embedding_keys: tuple[str, ...]


class EnvironmentValue(Document, frozen=True):
    """Language, timezone, currency or region, and who said so."""

    value: str
    source: DefaultSource


class StageRecord(Document, frozen=True, omit_defaults=True):
    """The hash of what one stage produced, and what it noticed."""

    stage: str
    hash: str
    notes: tuple[str, ...] = ()


class ContextLedger(Document, frozen=True, omit_defaults=True):
    """`inputs` holds a digest of every input, so that a change of any of them moves the hash.

    `fixed_tokens` counts what stands in no bucket: system, developer, task and what frames the blocks. `prefix_hash`
    and `prefix_length` (in bytes) are of the part that only the pack decides.
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


OmissionKind = Literal["tool", "rule", "evidence", "memory", "block", "redaction"]


class PolicyManifestEntry(Document, frozen=True, omit_defaults=True):
    """The rules of one bundle that took effect.

    `undecided` are rules that failed or miss a fact: neither branch took effect, and the restrictions of both hold.
    """

    bundle_id: str
    rule_ids: tuple[str, ...]
    undecided: tuple[str, ...] = ()


class CapabilityMetadata(Document, frozen=True, omit_defaults=True):
    """How much one capability can do, and where that is declared.

    `supplied_by_runtime`: the arguments that the runtime adds to a call. The model is not asked for them.
    """

    kind: Literal["read", "write"]
    risk_level: str
    approval_mode: ApprovalMode
    source: Literal["adapter_registry"]
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    supplied_by_runtime: tuple[str, ...] = ()


class LimitFact(Document, frozen=True, omit_defaults=True):
    """A bound that is the value of a fact, which stands in the constraint.

    `problem`: the fact is missing or has a wrong type, so that no call keeps the bound. `masked`: a redaction hides the
    value, or it is a text that is no word, so that it is not in the constraint.
    """

    bound: BoundName
    fact: str
    problem: str | None = None
    masked: bool = False


class ArgumentLimit(Document, frozen=True, omit_defaults=True):
    """What one argument must be, and who says so: `permission:<id>` or `rule:<bundle>#<rule>`.

    The `required` of a rule holds only for tools that write, unless it is `scoped`: the rule names this capability.
    `facts`: the bounds that are values of facts of this request.
    """

    argument: str
    constraint: ResolvedConstraint
    origin: str
    scoped: bool = False
    facts: tuple[LimitFact, ...] = ()


class CallLimitEntry(Document, frozen=True):
    """How often a tool may be called, or how much in all, and who says so: `permission:<id>`."""

    limit: CallLimit
    origin: str


class ToolManifestEntry(Document, frozen=True, omit_defaults=True):
    """The capabilities of one adapter that the run may use. `constraints` bound their arguments.

    `limits` bound how often they are called, and how much in all. The runtime holds them.
    """

    adapter_id: str
    capabilities: tuple[str, ...]
    constraints: dict[str, tuple[ArgumentLimit, ...]] = field(default_factory=dict)
    capability_metadata: dict[str, CapabilityMetadata] = field(default_factory=dict)
    limits: dict[str, tuple[CallLimitEntry, ...]] = field(default_factory=dict)


class EvidenceManifestEntry(Document, frozen=True, omit_defaults=True):
    """Evidence that was admitted."""

    evidence_ref: str
    source_id: str | None = None
    hash: str | None = None


class MemoryManifestEntry(Document, frozen=True):
    """A memory that was recalled."""

    memory_ref: str
    hash: str


class Omission(Document, frozen=True, omit_defaults=True):
    """A candidate that is not in the result: the stage that left it out, and why. `at` is its place in the input.

    A redaction is a masked value: `id` is the rule, `count` how many there are at this place, and `places` where they
    stand in it, at most 20. The value itself is nowhere.
    """

    kind: OmissionKind
    id: str
    stage: str
    reason: str
    detail: str | None = None
    at: str | None = None
    bucket: Bucket | None = None
    tokens: int | None = None
    priority: int | None = None
    source_refs: tuple[str, ...] = ()
    count: int | None = None
    places: tuple[str, ...] = ()


class DecisionManifestEntry(Document, frozen=True):
    """A decision that the request can end in: all of its outcomes, and how far it may go."""

    decision_key: str
    decision_right: str
    allowed_outcomes: tuple[str, ...]
    approval_mode: ApprovalMode


class Manifests(Document, frozen=True):
    """What shaped the run, what it may use, what it rests on, what it remembers, and all that was left out."""

    policy_manifest: tuple[PolicyManifestEntry, ...]
    tool_manifest: tuple[ToolManifestEntry, ...]
    evidence_manifest: tuple[EvidenceManifestEntry, ...]
    memory_manifest: tuple[MemoryManifestEntry, ...] = ()
    decision_manifest: tuple[DecisionManifestEntry, ...] = ()
    omission_manifest: tuple[Omission, ...] = ()


class RequiredApproval(Document, frozen=True):
    """An active approval gate. Calls of these capabilities wait for so many approvers of the role.

    The one who asks for the call is never one of them. `because` names the rules and tools that require the gate.
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
    `guardrail_messages`: what to say when a guardrail is triggered, by its label, for those that have a message.
    """

    must_refuse: tuple[str, ...]
    must_escalate: tuple[str, ...]
    approval_gates_active: tuple[str, ...]
    redaction_rules_active: tuple[str, ...]
    approval_gates: tuple[RequiredApproval, ...] = ()
    guardrail_messages: dict[str, str] = field(default_factory=dict)


class BudgetReport(Document, frozen=True):
    """What was allotted and used, by bucket, and every block that did not fit."""

    tokens_allocated: dict[Bucket, int]
    tokens_used_at_compile: int
    tokens_used_by_bucket: dict[Bucket, int]
    bucket_truncations: dict[Bucket, bool]
    dropped_block_ids: dict[Bucket, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class ActiveGuardrail(Document, frozen=True, omit_defaults=True):
    """A triggered guardrail: every way `by` which it was triggered, and what to say.

    `missing` are the facts that its `when` read and that are missing; `error` is why its `when` cannot be evaluated.
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
    """All that shaped or was kept from the model. The same inputs always give the same one."""

    compiled_prompt: CompiledPrompt
    manifests: Manifests
    runtime_controls: RuntimeControls
    budget_report: BudgetReport
    context_ledger: ContextLedger
    policy_decision: PolicyVerdict | None = None
    evidence_gate: EvidenceGate | None = None
