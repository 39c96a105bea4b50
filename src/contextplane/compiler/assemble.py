"""Stage `assemble`: prompt, manifests, controls and evidence gate, from what was kept."""

from collections.abc import Iterator

from msgspec.structs import replace

from contextplane.compiler.draft import AssemblePart, Draft
from contextplane.compiler.gate import Answers, evidence_gate
from contextplane.compiler.hashing import text_digest
from contextplane.compiler.instructions import developer_text, task_text
from contextplane.compiler.prompt import SYSTEM, prefix_of
from contextplane.model.compiled_context import (
    EvidenceManifestEntry,
    Manifests,
    MemoryManifestEntry,
    Omission,
    OmissionKind,
    RuntimeControls,
    ToolManifestEntry,
)
from contextplane.model.context_block import CompiledPrompt

__all__ = ["assemble"]


def assemble(draft: Draft) -> Draft:
    """What the budget dropped is in no manifest: what a model cannot see it may neither call nor rest on."""
    controls = RuntimeControls(
        must_refuse=draft.decision.guardrails.must_refuse,
        must_escalate=draft.decision.guardrails.must_escalate,
        approval_gates_active=draft.tools.gates_active,
        redaction_rules_active=draft.inputs.view.pack.policy_layer.guardrails.redaction_rules,
    )
    prompt = CompiledPrompt(
        system=SYSTEM,
        developer=developer_text(draft, controls),
        task=task_text(draft),
        context_blocks=draft.blocks,
    )
    prefix = prefix_of(prompt)
    dropped = {one.id: one.reason for one in draft.budget.omitted}
    manifests = _manifests(draft, dropped)
    part = AssemblePart(
        developer=prompt.developer,
        task=prompt.task,
        manifests=manifests,
        controls=controls,
        gate=evidence_gate(draft.evidence, _answers(draft, manifests, dropped), manifests.omission_manifest),
        fixed_tokens=sum(map(draft.inputs.tokens.count, (prompt.system, prompt.developer, prompt.task))),
        prefix_hash=text_digest(prefix),
        prefix_length=len(prefix.encode()),
    )
    return replace(draft, prompt=prompt, assemble=part)


def _manifests(draft: Draft, dropped: dict[str, str]) -> Manifests:
    tools: list[ToolManifestEntry] = []
    evidence: list[EvidenceManifestEntry] = []
    memories: list[MemoryManifestEntry] = []
    gone: list[Omission] = []
    for adapter, block in zip(draft.tools.manifest, draft.tools.blocks, strict=True):
        if block.block_id in dropped:
            gone += _dropped("tool", block.provenance_refs, dropped[block.block_id])
        else:
            tools.append(adapter)
    for piece, block in zip(draft.evidence.admitted, draft.evidence.blocks, strict=True):
        if block.block_id in dropped:
            gone += _dropped("evidence", (piece.evidence_ref,), dropped[block.block_id], piece.at)
        else:
            entry = EvidenceManifestEntry(
                evidence_ref=piece.evidence_ref, source_id=piece.source, hash=piece.hash or block.content_hash
            )
            evidence.append(entry)
    for recalled, block in zip(draft.memory.recalled, draft.memory.blocks, strict=True):
        if block.block_id in dropped:
            gone += _dropped("memory", (recalled.entry.memory_ref,), dropped[block.block_id], recalled.at)
        else:
            memories.append(recalled.entry)
    earlier = (draft.policy, draft.tools, draft.evidence, draft.memory, draft.budget)
    return Manifests(
        policy_manifest=draft.policy.manifest,
        tool_manifest=tuple(tools),
        evidence_manifest=tuple(evidence),
        memory_manifest=tuple(memories),
        omission_manifest=(*(one for part in earlier for one in part.omitted), *gone),
    )


def _dropped(kind: OmissionKind, ids: tuple[str, ...], reason: str, at: str | None = None) -> Iterator[Omission]:
    return (Omission(kind=kind, id=one, stage="budget", reason=reason, at=at) for one in ids)


def _answers(draft: Draft, manifests: Manifests, dropped: dict[str, str]) -> Answers:
    pairs = zip(draft.evidence.admitted, draft.evidence.blocks, strict=True)
    surfaced = {f"{one.adapter_id}.{name}" for one in manifests.tool_manifest for name in one.capabilities}
    producers = draft.inputs.view.producers
    return Answers(
        said=draft.inputs.request.input.context,
        policy_evaluated=not draft.decision.errors,
        evidence=tuple(piece for piece, block in pairs if block.block_id not in dropped),
        obtainable={
            name: tuple(tool for tool in producers.get(name, ()) if tool in surfaced)
            for name in draft.evidence.required
        },
    )
