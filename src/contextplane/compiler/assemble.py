"""Stage `assemble`: builds prompt, manifests, controls and evidence gate from the kept blocks.

The evidence gate says which required names are answered, by what, and whether a decision may rest on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.authoring.evidence import POLICY_EVAL
from contextplane.compiler.digests import text_digest
from contextplane.compiler.draft import AdmittedEvidence, AssemblePart, Draft, EvidencePart
from contextplane.compiler.prompt import prompt_prefix
from contextplane.compiler.tools import copy_entry
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import (
    CompiledPrompt,
    DecisionManifestEntry,
    EvidenceManifestEntry,
    Manifests,
    MemoryManifestEntry,
    Omission,
    OmissionKind,
    RequiredApproval,
    RuntimeControls,
    ToolManifestEntry,
)
from contextplane.model.context_pack import DecisionSpec
from contextplane.model.evidence import EvidenceGate, RejectedEvidence, Satisfied, Sufficiency, Unanswering, Unresolved
from contextplane.model.value import Value
from contextplane.policy.guardrails import placed_guardrails

__all__ = ["EvidenceSources", "assemble", "evidence_gate"]


class EvidenceSources(Value, frozen=True):
    """What can answer a required name: the request's context, the policy, evidence; and tools, later on.

    `produced`: the names that something in the pack produces, which a request therefore cannot attest.
    """

    context: Mapping[str, object]
    produced: frozenset[str]
    policy_evaluated: bool
    evidence: tuple[AdmittedEvidence, ...]
    obtainable: Mapping[str, tuple[str, ...]]


def evidence_gate(part: EvidencePart, sources: EvidenceSources, omitted: Iterable[Omission]) -> EvidenceGate:
    """Build the evidence gate: the request, the policy engine or evidence satisfies each required name.

    The request attests a name by the value true, but only if nothing in the pack produces it: otherwise a caller would
    attest its own evidence. A tool that can produce a name does not satisfy it: only its result will.
    """
    by_name = {piece.closes: piece.evidence_ref for piece in reversed(sources.evidence) if piece.closes is not None}
    satisfied: list[Satisfied] = []
    unresolved: list[Unresolved] = []
    dropped = _find_dropped(part, omitted)
    for name in part.required:
        if name == POLICY_EVAL and sources.policy_evaluated:
            satisfied.append(Satisfied(name=name, by="policy"))
        elif name not in sources.produced and sources.context.get(name) is True:
            satisfied.append(Satisfied(name=name, by="attested_by_request"))
        elif name in by_name:
            satisfied.append(Satisfied(name=name, by=by_name[name]))
        else:
            unresolved.append(_unresolved_name(name, part, dropped, sources))
    is_open = any(conflict.required and conflict.selected is None for conflict in part.conflicts)
    return EvidenceGate(
        required=part.required,
        satisfied=tuple(satisfied),
        unresolved=tuple(unresolved),
        rejected=tuple(
            RejectedEvidence(evidence_ref=omission.id, reason=omission.reason)
            for omission in omitted
            if omission.kind == "evidence"
        ),
        conflicts=part.conflicts,
        sufficiency=_sufficiency(unresolved, is_open=is_open),
        commit_allowed=not unresolved and not is_open,
    )


def _unresolved_name(
    name: str, part: EvidencePart, dropped: Mapping[str, list[Unanswering]], sources: EvidenceSources
) -> Unresolved:
    """Why nothing answers a name. The nearest piece gives the reason; every piece has its own as well."""
    nearest = (*part.doubtful.get(name, ()), *dropped.get(name, ()))
    pieces = (*nearest, *part.refused.get(name, ()))
    if nearest:
        reason = nearest[0].reason
    elif pieces:
        reason = "refused"
    elif name == POLICY_EVAL:
        reason = "policy_failed"
    elif name in sources.produced:
        reason = "request_cannot_attest" if name in sources.context else "no_evidence"
    else:
        reason = "not_true" if name in sources.context else "no_evidence"
    return Unresolved(name=name, reason=reason, obtainable_by=sources.obtainable.get(name, ()), evidence=pieces)


def _find_dropped(part: EvidencePart, omitted: Iterable[Omission]) -> dict[str, list[Unanswering]]:
    """Find the evidence that would have closed a name, had it not been omitted afterwards."""
    reasons = {omission.at: omission.reason for omission in omitted if omission.kind == "evidence"}
    dropped: dict[str, list[Unanswering]] = {}
    for piece in part.admitted:
        if piece.closes is not None and piece.at in reasons:
            unanswering = Unanswering(evidence_ref=piece.evidence_ref, reason=reasons[piece.at], at=piece.at)
            dropped.setdefault(piece.closes, []).append(unanswering)
    return dropped


def _sufficiency(unresolved: list[Unresolved], *, is_open: bool) -> Sufficiency:
    if not unresolved and not is_open:
        return "sufficient"
    return (
        "obtainable" if not is_open and all(requirement.obtainable_by for requirement in unresolved) else "insufficient"
    )


def assemble(draft: Draft) -> Draft:
    """Assemble the prompt and the manifests. A dropped block is in no manifest.

    What a model cannot see, it may neither call nor rest on.
    """
    view = draft.inputs.view
    controls = RuntimeControls(
        must_refuse=draft.decision.guardrails.must_refuse,
        must_escalate=draft.decision.guardrails.must_escalate,
        approval_gates_active=tuple(approval.gate_id for approval in draft.tools.approvals),
        approval_gates=tuple(_approvals(draft)),
        redaction_rules_active=draft.inputs.view.pack.policy_layer.guardrails.redaction_rules,
        guardrail_messages={**view.memoize("guardrail_messages", lambda: _guardrail_messages(view))},
    )
    dropped = {omission.id: omission.reason for omission in draft.budget.omitted}
    prompt = draft.prompt
    prefix = draft.inputs.view.memoize("prefix", lambda: _describe_prefix(prompt))
    manifests = _manifests(draft, dropped)
    part = AssemblePart(
        developer=prompt.developer,
        task=prompt.task,
        manifests=manifests,
        controls=controls,
        gate=evidence_gate(draft.evidence, _evidence_sources(draft, manifests, dropped), manifests.omission_manifest),
        prefix_hash=prefix.hash,
        prefix_length=prefix.length,
    )
    return replace(draft, assemble=part)


def _guardrail_messages(view: PackView) -> dict[str, str]:
    """The messages of the guardrails that have one, by label; of two with one label, the first."""
    messages: dict[str, str] = {}
    for _, _, guardrail in placed_guardrails(view.pack.policy_layer.guardrails):
        if guardrail.message is not None:
            messages.setdefault(guardrail.id, guardrail.message)
    return messages


def _approvals(draft: Draft) -> Iterator[RequiredApproval]:
    """Yield the required approvals. No call of a tool that was dropped can wait for one."""
    if not draft.budget.omitted:
        yield from draft.tools.approvals
        return
    dropped = {omission.id for omission in draft.budget.omitted}
    kept = {ref for block in draft.tools.blocks if block.block_id not in dropped for ref in block.provenance_refs}
    for approval in draft.tools.approvals:
        yield replace(approval, capabilities=tuple(name for name in approval.capabilities if name in kept))


class _Prefix(NamedTuple):
    hash: str
    length: int


def _describe_prefix(prompt: CompiledPrompt) -> _Prefix:
    text = prompt_prefix(prompt)
    return _Prefix(hash=text_digest(text), length=len(text.encode()))


def _manifests(draft: Draft, dropped: dict[str, str]) -> Manifests:
    tools: list[ToolManifestEntry] = []
    evidence: list[EvidenceManifestEntry] = []
    memories: list[MemoryManifestEntry] = []
    omissions: list[Omission] = []
    for adapter, block in zip(draft.tools.manifest, draft.tools.blocks, strict=True):
        if block.block_id in dropped:
            omissions += _omissions("tool", block.provenance_refs, dropped[block.block_id])
        else:
            tools.append(copy_entry(adapter))
    for piece, block in zip(draft.evidence.admitted, draft.evidence.blocks, strict=True):
        if block.block_id in dropped:
            omissions += _omissions("evidence", (piece.evidence_ref,), dropped[block.block_id], piece.at)
        else:
            entry = EvidenceManifestEntry(
                evidence_ref=piece.evidence_ref, source_id=piece.source, hash=piece.hash or block.content_hash
            )
            evidence.append(entry)
    for recalled, block in zip(draft.memory.recalled, draft.memory.blocks, strict=True):
        if block.block_id in dropped:
            omissions += _omissions("memory", (recalled.entry.memory_ref,), dropped[block.block_id], recalled.at)
        else:
            memories.append(recalled.entry)
    view = draft.inputs.view
    earlier = (draft.redaction, draft.policy, draft.tools, draft.evidence, draft.memory, draft.budget)
    return Manifests(
        policy_manifest=draft.policy.manifest,
        tool_manifest=tuple(tools),
        evidence_manifest=tuple(evidence),
        memory_manifest=tuple(memories),
        decision_manifest=view.memoize(
            ("decision_manifest", draft.intent.intent),
            lambda: tuple(map(_decision_entry, view.intent(draft.intent.intent).decisions)),
        ),
        omission_manifest=(*(omission for part in earlier for omission in part.omitted), *omissions),
    )


def _decision_entry(spec: DecisionSpec) -> DecisionManifestEntry:
    return DecisionManifestEntry(
        decision_key=spec.decision_key,
        decision_right=spec.decision_right,
        allowed_outcomes=spec.allowed_outcomes,
        approval_mode=spec.approval_mode,
    )


def _omissions(kind: OmissionKind, ids: tuple[str, ...], reason: str, at: str | None = None) -> Iterator[Omission]:
    return (Omission(kind=kind, id=item_id, stage="budget", reason=reason, at=at) for item_id in ids)


def _evidence_sources(draft: Draft, manifests: Manifests, dropped: dict[str, str]) -> EvidenceSources:
    pairs = zip(draft.evidence.admitted, draft.evidence.blocks, strict=True)
    surfaced = {f"{adapter.adapter_id}.{name}" for adapter in manifests.tool_manifest for name in adapter.capabilities}
    producers = draft.inputs.view.evidence_producers.tools
    return EvidenceSources(
        context=draft.inputs.request.input.context,
        produced=draft.inputs.view.evidence_producers.names,
        policy_evaluated=not draft.decision.errors,
        evidence=tuple(piece for piece, block in pairs if block.block_id not in dropped),
        obtainable={
            name: tuple(tool for tool in producers.get(name, ()) if tool in surfaced)
            for name in draft.evidence.required
        },
    )
