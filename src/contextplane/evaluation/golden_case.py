"""What a golden case must compile to: manifests, controls, budget and hashes, or the refusal that it must meet."""

from collections.abc import Iterator
from typing import Self, cast

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

__all__ = ["Expected", "Refused", "as_expected", "comparable", "differing"]

_HASHES = frozenset({"lineage", "compiled_context_hash", "stages", "recorded"})
_TOLD = 3

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


class _Recorded(Document, frozen=True, kw_only=True):
    """`recorded` is the digest of the case and of all the rest: so nobody changes either by hand unnoticed."""

    recorded: str = ""

    def recorded_of(self, case: Json) -> Self:
        """The same, with the digest that it has when it was recorded of this case."""
        return replace(self, recorded=self.digest_with(case))

    def digest_with(self, case: Json) -> str:
        """What `recorded` is, when this was recorded of the case."""
        return str(Digest.of(canonical([case, cast("Json", msgspec.to_builtins(replace(self, recorded="")))])))


class Refused(_Recorded, frozen=True, kw_only=True):
    """The code of the error that refuses the case, and the stage."""

    refused: str
    stage: str


class Expected(_Recorded, frozen=True, kw_only=True):
    """What was compiled. `lineage` names the documents, `stages` the hash of what each stage produced."""

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
        ).recorded_of(case)


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


def differing(one: Expected, other: Expected) -> str:
    """In which members two differ that are the same by name: of many the first, and hashes only when they alone do."""
    places = list(_differing(msgspec.to_builtins(one), msgspec.to_builtins(other), ""))
    shown = [place for place in places if place.partition(".")[0] not in _HASHES] or [
        place for place in places if place != "recorded"
    ]
    more = f" and {len(shown) - _TOLD} more" if len(shown) > _TOLD else ""
    return f"{', '.join(shown[:_TOLD])}{more} {'is' if len(shown) == 1 else 'are'} not as recorded"


def _differing(one: object, other: object, at: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            yield from _differing(one.get(name), other.get(name), f"{at}.{name}" if at else str(name))
    elif one != other:
        yield at
