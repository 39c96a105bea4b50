"""What the stages pass on: the inputs, and what each stage before made of them."""

from typing import Any

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
    "Admitted",
    "AssemblePart",
    "BudgetPart",
    "Draft",
    "EvidencePart",
    "Inputs",
    "IntentPart",
    "MemoryPart",
    "Part",
    "PolicyPart",
    "Recalled",
    "ScopePart",
    "ToolsPart",
]

_LATER: Any = None
"""What a stage further down the table will produce; the order of the table is what makes it safe to read."""


class Inputs(Value, frozen=True):
    """All that a context is compiled from, each with its digest. Only `request_id` still connects records."""

    view: PackView
    run_context: RunContext
    request: InvokeRequest
    evidence: tuple[EvidenceInput, ...]
    memories: tuple[Memory, ...]
    tokens: Tokens
    as_of: Timestamp | None
    request_id: str
    digests: dict[str, str]


class Part(Value, frozen=True, kw_only=True):
    """What one stage produced. Its hash is taken over all of it, what it left out and what it noticed included."""

    notes: tuple[str, ...] = ()
    omitted: tuple[Omission, ...] = ()


class ScopePart(Part, frozen=True, kw_only=True):
    scope: IntelligenceScope
    environment: dict[str, EnvironmentValue]


class IntentPart(Part, frozen=True, kw_only=True):
    intent: str
    decisions: tuple[str, ...]
    required_evidence: tuple[str, ...]


class PolicyPart(Part, frozen=True, kw_only=True):
    verdict: PolicyVerdict
    manifest: tuple[PolicyManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]


class ToolsPart(Part, frozen=True, kw_only=True):
    """One block for each entry of the manifest, in the same order."""

    manifest: tuple[ToolManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]
    gates_active: tuple[str, ...]


class Admitted(Value, frozen=True):
    """Evidence that may be shown. `closes` is the required name that it answers, None when it can answer none.

    `hash` is that of something which is only referred to; of all else, what is shown is hashed.
    """

    evidence_ref: str
    source: str | None
    at: str
    closes: str | None
    hash: str | None = None


class EvidencePart(Part, frozen=True, kw_only=True):
    """One block for each piece that was admitted, in the same order.

    `doubtful`: required names, and the pieces of that name that are shown and cannot close the gate. `refused`: the
    same of those that are not shown.
    """

    required: tuple[str, ...]
    admitted: tuple[Admitted, ...]
    blocks: tuple[ContextBlock, ...]
    conflicts: tuple[EvidenceConflictMarker, ...]
    doubtful: dict[str, tuple[Unanswering, ...]]
    refused: dict[str, tuple[Unanswering, ...]]


class Recalled(Value, frozen=True):
    """A memory that may be shown."""

    entry: MemoryManifestEntry
    at: str


class MemoryPart(Part, frozen=True, kw_only=True):
    recalled: tuple[Recalled, ...]
    blocks: tuple[ContextBlock, ...]


class BudgetPart(Part, frozen=True, kw_only=True):
    """The ids of the blocks that fit, in the order of the prompt, and the report."""

    kept: tuple[str, ...]
    report: BudgetReport


class AssemblePart(Part, frozen=True, kw_only=True):
    """All of the compiled context but its blocks, which stages before it hashed, and its ledger."""

    developer: str
    task: str
    manifests: Manifests
    controls: RuntimeControls
    gate: EvidenceGate
    fixed_tokens: int
    prefix_hash: str
    prefix_length: int


class Draft(Value, frozen=True):
    """What is known so far. A stage reads what the ones before it left, and adds the part of its own name."""

    inputs: Inputs
    stages: tuple[StageRecord, ...] = ()
    scope: ScopePart = _LATER
    intent: IntentPart = _LATER
    facts: Facts = _LATER
    decision: PolicyDecision = _LATER
    policy: PolicyPart = _LATER
    tools: ToolsPart = _LATER
    evidence: EvidencePart = _LATER
    memory: MemoryPart = _LATER
    blocks: tuple[ContextBlock, ...] = ()
    budget: BudgetPart = _LATER
    prompt: CompiledPrompt = _LATER
    assemble: AssemblePart = _LATER
    seal: CompiledContext = _LATER
