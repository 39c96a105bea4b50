"""Stage `seal`: the ledger, and the hash over everything but itself."""

from msgspec.structs import replace

from contextplane.compiler.draft import Draft
from contextplane.compiler.hashing import digest, digest_of_plain
from contextplane.model.compiled_context import CompiledContext, ContextLedger, LedgerBudget

__all__ = ["COMPILER_VERSION", "compiled_context_hash", "seal"]

COMPILER_VERSION = "1.2.0"
"""Moves whenever the same inputs would compile to other bytes."""


def seal(draft: Draft) -> Draft:
    """The ledger holds a digest of every input, and of what every stage produced."""
    assembled, report = draft.assemble, draft.budget.report
    manifests = assembled.manifests
    ledger = ContextLedger(
        pack_ref=draft.inputs.view.ref,
        request_id=draft.inputs.request_id,
        policy_bundles=tuple(manifest_entry.bundle_id for manifest_entry in manifests.policy_manifest),
        tools=tuple(
            f"{manifest_entry.adapter_id}.{name}"
            for manifest_entry in manifests.tool_manifest
            for name in manifest_entry.capabilities
        ),
        evidence_refs=tuple(manifest_entry.evidence_ref for manifest_entry in manifests.evidence_manifest),
        memory_refs=tuple(manifest_entry.memory_ref for manifest_entry in manifests.memory_manifest),
        budget=LedgerBudget(
            tokens_used_at_compile=report.tokens_used_at_compile, truncated_buckets=tuple(report.bucket_truncations)
        ),
        compiled_context_hash="",
        compiler_version=COMPILER_VERSION,
        token_counter=draft.inputs.tokens.name,
        fixed_tokens=assembled.fixed_tokens,
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
    of = digest_of_plain if draft.inputs.view.is_plain else digest
    sealed = replace(ledger, compiled_context_hash=of(_without_ids(compiled)))
    return replace(draft, seal=replace(compiled, context_ledger=sealed))


def compiled_context_hash(compiled: CompiledContext) -> str:
    """The hash of a compiled context, whatever it says of itself. Its request id only connects records."""
    return digest(_without_ids(compiled))


def _without_ids(compiled: CompiledContext) -> CompiledContext:
    ledger = replace(compiled.context_ledger, request_id="", compiled_context_hash="")
    return replace(compiled, context_ledger=ledger)
