"""Compiles a pack and a request into a compiled context, by running the table of stages.

Each stage is a function from draft to draft. Pure: the same values always give the same bytes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.compiler.assemble import assemble
from contextplane.compiler.budget import fit_budget
from contextplane.compiler.digests import digest, digest_of_plain
from contextplane.compiler.draft import Draft
from contextplane.compiler.errors import TokensNotGiven
from contextplane.compiler.evidence import admit_evidence
from contextplane.compiler.inputs import read_inputs
from contextplane.compiler.memory import recall_memories
from contextplane.compiler.policy import evaluate_policy
from contextplane.compiler.redaction import redact_inputs
from contextplane.compiler.scope import resolve_intent, resolve_scope
from contextplane.compiler.tools import surface_tools
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext, ContextLedger, LedgerBudget, StageRecord
from contextplane.model.evidence import EvidenceInput, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import CALIBRATED1, OFFLINE, Tokens

__all__ = ["COMPILER_VERSION", "STAGES", "Stage", "compile_draft", "compiled_context_hash", "seal"]


COMPILER_VERSION = "1.4.0"
"""Changes whenever the same inputs would compile to other bytes."""


class Stage(NamedTuple):
    """A stage. Its name is also that of the part it adds to the draft, and of its record in the ledger."""

    name: str
    run: Callable[[Draft], Draft]


def seal(draft: Draft) -> Draft:
    """Add the ledger, with a digest of every input and stage, and the hash of the compiled context."""
    assembled, report = draft.assemble, draft.budget.report
    manifests = assembled.manifests
    ledger = ContextLedger(
        pack_ref=draft.inputs.view.ref,
        request_id="",
        policy_bundles=tuple(bundle.bundle_id for bundle in manifests.policy_manifest),
        tools=tuple(
            f"{adapter.adapter_id}.{name}" for adapter in manifests.tool_manifest for name in adapter.capabilities
        ),
        evidence_refs=tuple(entry.evidence_ref for entry in manifests.evidence_manifest),
        memory_refs=tuple(entry.memory_ref for entry in manifests.memory_manifest),
        budget=LedgerBudget(
            tokens_used_at_compile=report.tokens_used_at_compile, truncated_buckets=tuple(report.bucket_truncations)
        ),
        compiled_context_hash="",
        compiler_version=COMPILER_VERSION,
        token_counter=draft.inputs.tokens.name,
        fixed_tokens=draft.budget.fixed_tokens,
        prefix_hash=assembled.prefix_hash,
        prefix_length=assembled.prefix_length,
        lineage=draft.inputs.view.lineage,
        scope=draft.scope.scope,
        environment=draft.scope.environment,
        inputs=draft.inputs.digests,
        stages=draft.stages,
    )
    compiled = CompiledContext(
        compiled_prompt=draft.prompt,
        manifests=manifests,
        runtime_controls=assembled.controls,
        budget_report=report,
        context_ledger=ledger,
        policy_decision=draft.policy.verdict,
        evidence_gate=assembled.gate,
    )
    hash_context = digest_of_plain if draft.inputs.view.is_plain else digest
    # As `_without_ids`: neither the id of the request nor the hash is in the ledger yet.
    sealed = replace(ledger, request_id=draft.inputs.request_id, compiled_context_hash=hash_context(compiled))
    return replace(draft, seal=replace(compiled, context_ledger=sealed))


STAGES: tuple[Stage, ...] = (
    # Masks come before everything: no later stage repeats a value that a redaction rule hides.
    Stage("redaction", redact_inputs),
    # Tenant and principals come before every decision: nothing is evaluated for a stranger.
    Stage("scope", resolve_scope),
    # Rules and decisions are looked up by intent.
    Stage("intent", resolve_intent),
    # Guardrails and rules come before the tools: the tool surface depends on what they prohibit.
    Stage("policy", evaluate_policy),
    Stage("tools", surface_tools),
    # What a decision requires is known from intent and policy; that decides which conflicts matter.
    Stage("evidence", admit_evidence),
    Stage("memory", recall_memories),
    # All blocks exist now.
    Stage("budget", fit_budget),
    # A dropped block is in no manifest, so manifests and the evidence gate come after the budget.
    Stage("assemble", assemble),
    # Last, because it covers all the others.
    Stage("seal", seal),
)


def compile_draft(  # noqa: PLR0913  the inputs, each of which shapes what is compiled
    view: PackView,
    run_context: RunContext,
    request: InvokeRequest,
    evidence: Sequence[EvidenceInput] = (),
    memories: Sequence[Memory] = (),
    *,
    tokens: Tokens | None = None,
    as_of: Timestamp | None = None,
) -> Draft:
    """Compile a context, or raise with the stage and the place. The context is the `seal` of the draft.

    The draft has the parts of all stages. `as_of`: the moment to judge freshness. `tokens`: the counter; by default the
    one that the pack names.
    """
    counter = _own_counter(view) if tokens is None else tokens
    inputs = read_inputs(view, run_context, request, evidence=evidence, memories=memories, tokens=counter, as_of=as_of)
    draft = Draft(inputs=inputs)
    records: list[StageRecord] = []
    for stage in STAGES:
        if stage.name == "seal":
            draft = replace(draft, stages=tuple(records))
        try:
            draft = stage.run(draft)
        except ContextPlaneError as error:
            error.details.setdefault("stage", stage.name)
            raise
        if stage.name != "seal":
            part = getattr(draft, stage.name)
            records.append(StageRecord(stage=stage.name, hash=view.digest_of_part(part), notes=part.notes))
    return draft


def _own_counter(view: PackView) -> Tokens:
    """The counter that the pack names. One that needs a table is handed in, and not replaced by another."""
    name = view.pack.pack_meta.token_counter or CALIBRATED1.name
    if name not in OFFLINE:
        raise TokensNotGiven(
            f"the pack counts with {name}, which was not given",
            at="pack#/pack_meta/token_counter",
            hint=f"pass a counter of this name as tokens, or name one of {', '.join(OFFLINE)} in the pack",
        )
    return OFFLINE[name]


def compiled_context_hash(compiled: CompiledContext) -> str:
    """Compute the hash of a compiled context. The hash in its ledger and its request id are not covered."""
    return digest(_without_ids(compiled))


def _without_ids(compiled: CompiledContext) -> CompiledContext:
    ledger = replace(compiled.context_ledger, request_id="", compiled_context_hash="")
    return replace(compiled, context_ledger=ledger)
