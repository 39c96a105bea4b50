"""The outcome of a golden case: manifests, controls, budget and hashes, or the refusal."""

from collections.abc import Iterator
from typing import Self, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from contextplane.model.compiled_context import (
    BudgetReport,
    CompiledContext,
    CompiledPrompt,
    ContextLedger,
    LedgerBudget,
    Lineage,
    Manifests,
    PolicyVerdict,
    RuntimeControls,
)
from contextplane.model.evidence import EvidenceGate
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Document

__all__ = [
    "GoldenContext",
    "GoldenOutcome",
    "GoldenRefusal",
    "describe_difference",
    "read_outcome",
    "to_compiled_context",
]

_HASHES = frozenset({"lineage", "compiled_context_hash", "stages", "recorded"})
_NAMED_PLACES = 3

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


class _RecordedOutcome(Document, frozen=True, kw_only=True):
    """An outcome. `recorded`: the digest of the case and all other fields, so that edits are noticed."""

    recorded: str = ""

    def record_for(self, case: Json) -> Self:
        """The outcome with the digest for this case."""
        return replace(self, recorded=self.digest_for(case))

    def digest_for(self, case: Json) -> str:
        """The value of `recorded` for this case."""
        return str(Digest.of(canonical([case, cast("Json", msgspec.to_builtins(replace(self, recorded="")))])))


class GoldenRefusal(_RecordedOutcome, frozen=True, kw_only=True):
    """A refusal: the code of the error, and the stage."""

    refused: str
    stage: str


class GoldenContext(_RecordedOutcome, frozen=True, kw_only=True):
    """A compiled context. `lineage`: the documents; `stages`: the hash of what each stage produced."""

    compiler_version: str
    lineage: tuple[Lineage, ...]
    compiled_context_hash: str
    stages: dict[str, str]
    policy_decision: PolicyVerdict | None
    manifests: Manifests
    runtime_controls: RuntimeControls
    evidence_gate: EvidenceGate | None
    budget_report: BudgetReport

    @classmethod
    def of(cls, compiled: CompiledContext, case: Json) -> Self:
        ledger = compiled.context_ledger
        return cls(
            compiler_version=ledger.compiler_version or "",
            lineage=ledger.lineage,
            compiled_context_hash=ledger.compiled_context_hash,
            stages={stage.stage: stage.hash for stage in ledger.stages},
            policy_decision=compiled.policy_decision,
            manifests=compiled.manifests,
            runtime_controls=compiled.runtime_controls,
            evidence_gate=compiled.evidence_gate,
            budget_report=compiled.budget_report,
        ).record_for(case)


GoldenOutcome: TypeAlias = GoldenContext | GoldenRefusal


def read_outcome(value: Json) -> GoldenOutcome:
    """Read a recorded outcome. A value that has neither form raises msgspec's error."""
    if isinstance(value, dict) and "refused" in value:
        return msgspec.convert(value, type=GoldenRefusal)
    return msgspec.convert(value, type=GoldenContext)


def to_compiled_context(outcome: GoldenContext) -> CompiledContext:
    """A compiled context of what is recorded, so that the items of two can be compared."""
    return CompiledContext(
        compiled_prompt=_NO_PROMPT,
        manifests=outcome.manifests,
        runtime_controls=outcome.runtime_controls,
        budget_report=outcome.budget_report,
        context_ledger=_NO_LEDGER,
        policy_decision=outcome.policy_decision,
        evidence_gate=outcome.evidence_gate,
    )


def describe_difference(expected: GoldenContext, actual: GoldenContext) -> str:
    """Name the first members in which two outcomes with equal items differ; hashes only if nothing else."""
    places = list(_differing_places(msgspec.to_builtins(expected), msgspec.to_builtins(actual), ""))
    shown = [place for place in places if place.partition(".")[0] not in _HASHES] or [
        place for place in places if place != "recorded"
    ]
    more = f" and {len(shown) - _NAMED_PLACES} more" if len(shown) > _NAMED_PLACES else ""
    return f"{', '.join(shown[:_NAMED_PLACES])}{more} {'is' if len(shown) == 1 else 'are'} not as recorded"


def _differing_places(a: object, b: object, at: str) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in {**a, **b}:
            yield from _differing_places(a.get(name), b.get(name), f"{at}.{name}" if at else str(name))
    elif a != b:
        yield at
