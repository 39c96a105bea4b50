"""Stage `assemble`: prompt, manifests, controls and evidence gate, from what was kept.

The evidence gate: which required names are answered, by what, and whether a decision may rest on it.

The texts around the blocks: what the model must honor, and what it is asked.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.evidence import POLICY_EVAL
from contextplane.compiler.draft import Admitted, AssemblePart, Draft, EvidencePart
from contextplane.compiler.hashing import text_digest
from contextplane.compiler.prompt import SYSTEM, prefix_of
from contextplane.compiler.quoting import quoted
from contextplane.model.compiled_context import (
    CompiledPrompt,
    EvidenceManifestEntry,
    Manifests,
    MemoryManifestEntry,
    Omission,
    OmissionKind,
    RuntimeControls,
    ToolManifestEntry,
)
from contextplane.model.evidence import EvidenceGate, RejectedEvidence, Satisfied, Sufficiency, Unanswering, Unresolved
from contextplane.model.value import Value

__all__ = ["Answers", "assemble", "developer_text", "evidence_gate", "task_text"]


class Answers(Value, frozen=True):
    """What can answer a name: the request, policy that was evaluated without error, evidence; and tools, later on."""

    said: Mapping[str, object]
    policy_evaluated: bool
    evidence: tuple[Admitted, ...]
    obtainable: Mapping[str, tuple[str, ...]]


def evidence_gate(part: EvidencePart, answers: Answers, omitted: Iterable[Omission]) -> EvidenceGate:
    """A name is satisfied by a true value of the request, by the policy engine, or by evidence that closes it.

    No request speaks for the policy engine. A tool that can produce a name does not satisfy it: only its result will.
    """
    by_name = {one.closes: one.evidence_ref for one in reversed(answers.evidence) if one.closes is not None}
    satisfied: list[Satisfied] = []
    unresolved: list[Unresolved] = []
    lost = _lost(part, omitted)
    for name in part.required:
        if name == POLICY_EVAL and answers.policy_evaluated:
            satisfied.append(Satisfied(name=name, by="policy"))
        elif name != POLICY_EVAL and answers.said.get(name) is True:
            satisfied.append(Satisfied(name=name, by="request"))
        elif name in by_name:
            satisfied.append(Satisfied(name=name, by=by_name[name]))
        else:
            unresolved.append(_unresolved(name, part, lost, answers))
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


def _unresolved(name: str, part: EvidencePart, lost: Mapping[str, list[Unanswering]], answers: Answers) -> Unresolved:
    """Why nothing answers a name. What came nearest to it gives the reason, and every piece of that name its own."""
    nearest = (*part.doubtful.get(name, ()), *lost.get(name, ()))
    pieces = (*nearest, *part.refused.get(name, ()))
    if nearest:
        reason = nearest[0].reason
    elif pieces:
        reason = "refused"
    elif name == POLICY_EVAL:
        reason = "policy_failed"
    else:
        reason = "not_true" if name in answers.said else "no_evidence"
    return Unresolved(name=name, reason=reason, obtainable_by=answers.obtainable.get(name, ()), evidence=pieces)


def _lost(part: EvidencePart, omitted: Iterable[Omission]) -> dict[str, list[Unanswering]]:
    """Names that evidence would have closed, had it not been left out afterwards, and that evidence."""
    gone = {omission.at: omission.reason for omission in omitted if omission.kind == "evidence"}
    found: dict[str, list[Unanswering]] = {}
    for one in part.admitted:
        if one.closes is not None and one.at in gone:
            piece = Unanswering(evidence_ref=one.evidence_ref, reason=gone[one.at], at=one.at)
            found.setdefault(one.closes, []).append(piece)
    return found


def _sufficiency(unresolved: list[Unresolved], *, is_open: bool) -> Sufficiency:
    if not unresolved and not is_open:
        return "sufficient"
    return (
        "obtainable" if not is_open and all(requirement.obtainable_by for requirement in unresolved) else "insufficient"
    )


_HONOR = "Honor the policy_manifest, tool_manifest, runtime_controls, and required_evidence at every step."


def developer_text(draft: Draft, controls: RuntimeControls) -> str:
    """What holds for this run: the verdict, the controls, the evidence that is needed, and how to speak."""
    controlled = _controls(controls, may_wait=draft.policy.verdict.allowed)
    return "\n".join([_HONOR, *_verdict(draft), *controlled, *_decisions(draft), draft.inputs.view.tone])


def task_text(draft: Draft) -> str:
    """What is asked, quoted, and its intent."""
    return f"Handle: {quoted(draft.inputs.request.input.message)} (intent={draft.intent.intent})."


def _verdict(draft: Draft) -> Iterator[str]:
    verdict = draft.policy.verdict
    if verdict.allowed:
        yield "Policy: allowed, within the controls below."
    else:
        why = f": {quoted(verdict.reason)}" if verdict.reason else ""
        yield f"Policy: denied{why}. Do not carry it out; explain, or escalate."


def _controls(controls: RuntimeControls, *, may_wait: bool) -> Iterator[str]:
    """For what is denied there is nothing to wait for."""
    for words, names in (
        ("Refuse on", controls.must_refuse),
        ("Escalate on", controls.must_escalate),
        ("Wait for approval of", controls.approval_gates_active if may_wait else ()),
        ("Redact", controls.redaction_rules_active),
    ):
        if names:
            yield f"{words}: {', '.join(names)}."


def _decisions(draft: Draft) -> Iterator[str]:
    for spec in draft.inputs.view.intent(draft.intent.intent).decisions:
        yield f"Decision {spec.decision_key} ({spec.decision_right}): {' | '.join(spec.allowed_outcomes)}."
    if draft.evidence.required:
        yield f"Required evidence: {', '.join(draft.evidence.required)}."


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
    dropped = {omission.id: omission.reason for omission in draft.budget.omitted}
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
        omission_manifest=(*(omission for part in earlier for omission in part.omitted), *gone),
    )


def _dropped(kind: OmissionKind, ids: tuple[str, ...], reason: str, at: str | None = None) -> Iterator[Omission]:
    return (Omission(kind=kind, id=identity, stage="budget", reason=reason, at=at) for identity in ids)


def _answers(draft: Draft, manifests: Manifests, dropped: dict[str, str]) -> Answers:
    pairs = zip(draft.evidence.admitted, draft.evidence.blocks, strict=True)
    surfaced = {
        f"{manifest_entry.adapter_id}.{name}"
        for manifest_entry in manifests.tool_manifest
        for name in manifest_entry.capabilities
    }
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
