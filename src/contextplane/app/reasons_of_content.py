"""Why a piece of evidence, a memory, a required name, a block or a bucket is in or out: what is known of it."""

from collections.abc import Iterator

from contextplane.app.compile_case import CompileCase
from contextplane.compiler.budget import NEVER_DROPPED
from contextplane.compiler.draft import Draft
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.evidence import Evidence

__all__ = ["of_block", "of_bucket", "of_evidence", "of_memory", "of_requirement"]

_MOST = 20


def of_requirement(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """Who asks for it, and every piece of evidence of this name that does not answer it; of very many, the first."""
    decisions = (draft.inputs.view.intent(case.request.input.intent)).decisions
    for spec in decisions:
        if name in spec.required_evidence:
            yield f"decision {spec.decision_key} requires it"
    for effect in draft.decision.effects:
        if name in effect.effect.requires:
            yield f"rule {effect.rule_id} requires it"
    gate = compiled.evidence_gate
    pieces = [one for open_ in gate.unresolved if open_.name == name for one in open_.evidence] if gate else []
    for one in pieces[:_MOST]:
        yield f"{one.evidence_ref} does not answer it: {one.reason} (/{one.at.replace('#', '')})"
    if len(pieces) > _MOST:
        yield f"and {len(pieces) - _MOST} more"


def of_evidence(case: CompileCase, draft: Draft, compiled: CompiledContext, ref: str) -> Iterator[str]:
    """What is said of it, at which moment that was judged, and what it answers."""
    del draft
    for n, one in enumerate(case.evidence):
        if isinstance(one, Evidence):
            if one.evidence_ref == ref:
                yield f"of type {one.type}, from {one.source}, trust {one.trust}, {one.classification} (/evidence/{n})"
                yield _aged(one, case)
        elif one == ref:
            yield f"a bare reference: it is shown, and can answer nothing (/evidence/{n})"
    gate = compiled.evidence_gate
    answered = [met.name for met in gate.satisfied if met.by == ref] if gate else []
    if answered:
        yield f"it answers {', '.join(answered)}"


def _aged(one: Evidence, case: CompileCase) -> str:
    judged = f"judged at {case.as_of}" if case.as_of is not None else "and no as_of to judge that by"
    if one.freshness is None:
        return f"nobody says when it was observed; {judged}"
    until = f"holds until {one.freshness.expires_at}" if one.freshness.expires_at else "does not age"
    return f"observed at {one.freshness.observed_at}, {until}; {judged}"


def of_memory(case: CompileCase, draft: Draft, compiled: CompiledContext, ref: str) -> Iterator[str]:
    """What is said of it."""
    del draft, compiled
    for n, one in enumerate(case.memories):
        if one.memory_ref == ref:
            whose = f", of {one.subject}" if one.subject else ""
            yield f"{one.state}, {one.tier} {one.write_class}{whose}, {one.classification} (/memories/{n})"
            for what, names in (("intents", one.intents), ("roles", one.roles)):
                if names:
                    yield f"only for the {what} {', '.join(names)}"
            if one.expires_at is not None:
                yield f"it holds until {one.expires_at}"


def of_block(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """What it shows, and what it is weighed by."""
    del case, draft
    found = [
        (one.priority, one.provenance_refs) for one in compiled.compiled_prompt.context_blocks if one.block_id == name
    ] + [
        (one.priority, one.source_refs)
        for one in compiled.manifests.omission_manifest
        if one.kind == "block" and one.id == name
    ]
    for priority, refs in found:
        yield f"priority {priority}, from {', '.join(refs)}"
    if name in NEVER_DROPPED:
        yield "it holds the non-negotiables, and is never dropped"


def of_bucket(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """Every block of it with its size; of very many, the first."""
    del case, draft
    kept = [one for one in compiled.compiled_prompt.context_blocks if one.bucket == name]
    gone = [one for one in compiled.manifests.omission_manifest if one.kind == "block" and one.bucket == name]
    lines = [
        f"{one.block_id} takes {one.tokens or 0:,} tokens"
        + (", and is never dropped" * (one.block_id in NEVER_DROPPED))
        for one in kept
    ]
    lines += [f"{one.id} takes {one.tokens or 0:,} tokens, and is dropped: {one.reason}" for one in gone]
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more"
