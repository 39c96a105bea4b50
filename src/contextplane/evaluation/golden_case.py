"""The outcome of a golden case: the parts of the compiled context that it used, or the refusal."""

from collections.abc import Iterator, Sequence
from typing import Self, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import replace

from contextplane.model.compiled_context import (
    BudgetReport,
    CompiledContext,
    CompiledPrompt,
    ContextLedger,
    EnvironmentValue,
    IntelligenceScope,
    LedgerBudget,
    Lineage,
    Manifests,
    Omission,
    OmissionKind,
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
    "drifted_stage",
    "read_outcome",
    "to_compiled_context",
]

_HASHES = frozenset({"lineage", "compiled_context_hash", "stages", "recorded"})
_OUT_OF_SCOPE = "out_of_scope"
_FIXED_TEXTS = ("system", "developer", "task")
_OMITTED_KINDS: tuple[OmissionKind, ...] = get_args(OmissionKind)
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


class GoldenContext(_RecordedOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """A compiled context, by the parts that the case used.

    `prompt` has a digest of each part of the text. Rules of other intents and tools that were not surfaced are not
    recorded. `lineage` and `compiled_context_hash`, which cover the whole pack, are compared only with the same pack.
    """

    compiler_version: str
    lineage: tuple[Lineage, ...]
    compiled_context_hash: str
    policy_decision: PolicyVerdict | None
    manifests: Manifests
    runtime_controls: RuntimeControls
    evidence_gate: EvidenceGate | None
    budget_report: BudgetReport
    scope: IntelligenceScope | None = None
    environment: dict[str, EnvironmentValue] = msgspec.field(default_factory=dict)
    prompt: dict[str, str] = msgspec.field(default_factory=dict)
    stages: dict[str, str] = msgspec.field(default_factory=dict)
    """Of results that an older compiler recorded; no longer written."""

    @classmethod
    def of(cls, compiled: CompiledContext, case: Json) -> Self:
        ledger, manifests = compiled.context_ledger, compiled.manifests
        used = tuple(_without_place(omission) for omission in manifests.omission_manifest if _is_used(omission))
        return cls(
            compiler_version=ledger.compiler_version or "",
            lineage=ledger.lineage,
            compiled_context_hash=ledger.compiled_context_hash,
            policy_decision=compiled.policy_decision,
            manifests=replace(manifests, omission_manifest=used),
            runtime_controls=compiled.runtime_controls,
            evidence_gate=compiled.evidence_gate,
            budget_report=compiled.budget_report,
            scope=ledger.scope,
            environment=ledger.environment,
            prompt=_prompt_digests(compiled.compiled_prompt),
        ).record_for(case)


def _is_used(omission: Omission) -> bool:
    """Whether an omission is about something that the case has, or that was evaluated for it."""
    if omission.kind == "rule":
        return omission.reason != _OUT_OF_SCOPE
    return omission.kind != "tool" or omission.stage == "budget"


def _without_place(omission: Omission) -> Omission:
    """The omission without its place in the pack, which moves with other parts of the pack."""
    return replace(omission, at=None) if (omission.at or "").startswith("pack#") else omission


def _prompt_digests(prompt: CompiledPrompt) -> dict[str, str]:
    """Return a digest of each fixed text, and of the texts of each bucket."""
    texts: dict[str, list[str]] = {name: [getattr(prompt, name)] for name in _FIXED_TEXTS}
    for block in prompt.context_blocks:
        texts.setdefault(block.bucket, []).append(block.content)
    return {name: str(Digest.of(canonical(parts))) for name, parts in texts.items()}


GoldenOutcome: TypeAlias = GoldenContext | GoldenRefusal


def read_outcome(value: Json) -> GoldenOutcome:
    """Read a recorded outcome. A value that has neither form raises msgspec's error."""
    if isinstance(value, dict) and "refused" in value:
        return msgspec.convert(value, type=GoldenRefusal)
    return msgspec.convert(value, type=GoldenContext)


def to_compiled_context(outcome: GoldenContext, omitted: Sequence[Omission] = ()) -> CompiledContext:
    """A compiled context of what is recorded, so that the items of two can be compared.

    `omitted`: omissions that are not recorded, for items of which the other context has one.
    """
    manifests = outcome.manifests
    return CompiledContext(
        compiled_prompt=_NO_PROMPT,
        manifests=replace(manifests, omission_manifest=(*manifests.omission_manifest, *omitted)),
        runtime_controls=outcome.runtime_controls,
        budget_report=outcome.budget_report,
        context_ledger=_NO_LEDGER,
        policy_decision=outcome.policy_decision,
        evidence_gate=outcome.evidence_gate,
    )


def drifted_stage(expected: GoldenContext, actual: GoldenContext) -> str:
    """Return the first stage whose used parts differ; empty if none do."""
    before, after = _parts_by_stage(expected), _parts_by_stage(actual)
    return next((stage for stage in after if before[stage] != after[stage]), "")


def _parts_by_stage(outcome: GoldenContext) -> dict[str, object]:
    """Return what each stage contributed, in the order of the stages."""
    manifests, prompt, controls = outcome.manifests, outcome.prompt, outcome.runtime_controls
    omitted = {kind: [row for row in manifests.omission_manifest if row.kind == kind] for kind in _OMITTED_KINDS}
    gates = (controls.approval_gates_active, controls.approval_gates)
    return {
        "redaction": (controls.redaction_rules_active, omitted["redaction"]),
        "scope": (outcome.scope, outcome.environment),
        "policy": (
            outcome.policy_decision,
            manifests.policy_manifest,
            omitted["rule"],
            prompt.get("policy"),
            controls.must_refuse,
            controls.must_escalate,
        ),
        "tools": (manifests.tool_manifest, omitted["tool"], prompt.get("tool"), gates),
        "evidence": (manifests.evidence_manifest, omitted["evidence"], prompt.get("evidence")),
        "memory": (manifests.memory_manifest, omitted["memory"], prompt.get("memory")),
        "budget": (outcome.budget_report, omitted["block"]),
        "assemble": (prompt, controls, outcome.evidence_gate, manifests),
    }


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
