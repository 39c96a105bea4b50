"""Stage `seal`: writes the ledger, and the hash over everything except itself."""

from msgspec.structs import replace

from contextplane.compiler.digests import digest, digest_of_plain
from contextplane.compiler.draft import Draft
from contextplane.model.compiled_context import CompiledContext, ContextLedger, LedgerBudget

__all__ = ["COMPILER_VERSION", "compiled_context_hash", "seal"]

COMPILER_VERSION = "1.2.0"
"""Changes whenever the same inputs would compile to other bytes."""


def seal(draft: Draft) -> Draft:
    """Add the ledger, with a digest of every input and stage, and the hash of the compiled context."""
    assembled, report = draft.assemble, draft.budget.report
    manifests = assembled.manifests
    ledger = ContextLedger(
        pack_ref=draft.inputs.view.ref,
        request_id=draft.inputs.request_id,
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
    hash_context = digest_of_plain if draft.inputs.view.is_plain else digest
    sealed = replace(ledger, compiled_context_hash=hash_context(_without_ids(compiled)))
    return replace(draft, seal=replace(compiled, context_ledger=sealed))


def compiled_context_hash(compiled: CompiledContext) -> str:
    """Compute the hash of a compiled context. The hash in its ledger and its request id are not covered."""
    return digest(_without_ids(compiled))


def _without_ids(compiled: CompiledContext) -> CompiledContext:
    ledger = replace(compiled.context_ledger, request_id="", compiled_context_hash="")
    return replace(compiled, context_ledger=ledger)
