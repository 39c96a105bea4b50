"""What a golden case must compile to: manifests, controls, budget and hashes, or the refusal that it must meet."""

from typing import Self

import msgspec

from contextplane.model.canonical import Json
from contextplane.model.compiled_context import (
    BudgetReport,
    CompiledContext,
    Manifests,
    PolicyVerdict,
    RuntimeControls,
)
from contextplane.model.context_block import CompiledPrompt
from contextplane.model.context_ledger import ContextLedger, LedgerBudget, Lineage
from contextplane.model.evidence_gate import EvidenceGate
from contextplane.model.value import Document

__all__ = ["Expected", "Refused", "as_expected", "comparable"]

_NO_PROMPT = CompiledPrompt(system="", developer="", task="", context_blocks=())
_NO_LEDGER = ContextLedger(
    pack_ref="",
    request_id="",
    policy_bundles=(),
    tools=(),
    evidence_refs=(),
    memory_refs=(),
    budget=LedgerBudget(tokens_used_at_compile=0, truncated_buckets=()),
    compiled_context_hash="",
)


class Refused(Document, frozen=True):
    """The code of the error that refuses the case, and the stage."""

    refused: str
    stage: str


class Expected(Document, frozen=True):
    """What was compiled. `lineage` names the documents, `stages` the hash of what each stage produced."""

    lineage: tuple[Lineage, ...]
    compiled_context_hash: str
    stages: dict[str, str]
    policy_decision: PolicyVerdict | None
    manifests: Manifests
    runtime_controls: RuntimeControls
    evidence_gate: EvidenceGate | None
    budget_report: BudgetReport

    @classmethod
    def of(cls, compiled: CompiledContext) -> Self:
        ledger = compiled.context_ledger
        return cls(
            lineage=ledger.lineage,
            compiled_context_hash=ledger.compiled_context_hash,
            stages={one.stage: one.hash for one in ledger.stages},
            policy_decision=compiled.policy_decision,
            manifests=compiled.manifests,
            runtime_controls=compiled.runtime_controls,
            evidence_gate=compiled.evidence_gate,
            budget_report=compiled.budget_report,
        )


def as_expected(value: Json) -> Expected | Refused:
    """What a file says; msgspec's error when it has neither form."""
    if isinstance(value, dict) and "refused" in value:
        return msgspec.convert(value, type=Refused)
    return msgspec.convert(value, type=Expected)


def comparable(expected: Expected) -> CompiledContext:
    """A compiled context of what is recorded, so that two can be told apart by name."""
    return CompiledContext(
        compiled_prompt=_NO_PROMPT,
        manifests=expected.manifests,
        runtime_controls=expected.runtime_controls,
        budget_report=expected.budget_report,
        context_ledger=_NO_LEDGER,
        policy_decision=expected.policy_decision,
        evidence_gate=expected.evidence_gate,
    )
