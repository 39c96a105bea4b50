"""Why something is in or out of a compiled context: the parts of the pack that had a say, and the facts they read.

Why a piece of evidence, a memory, a required name, a block or a bucket is in or out: what is known of it.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from contextplane.compiler.budget import NEVER_DROPPED
from contextplane.compiler.case import CompileCase
from contextplane.compiler.draft import Draft
from contextplane.compiler.inputs import read
from contextplane.compiler.policy import policy
from contextplane.compiler.report import Item, ItemKind, account_of
from contextplane.compiler.scope import intent, scope
from contextplane.compiler.source import PackSource
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import Guardrail, Rule
from contextplane.model.evidence import Evidence
from contextplane.model.json.canonical import Json
from contextplane.model.tokens import APPROX4
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.policy.facts import Facts
from contextplane.policy.logic.expression import variables

__all__ = [
    "full_account",
    "never_turned",
    "of_block",
    "of_bucket",
    "of_evidence",
    "of_memory",
    "of_requirement",
    "reasons_of",
]

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
    for piece in pieces[:_MOST]:
        yield f"{piece.evidence_ref} does not answer it: {piece.reason} (/{piece.at.replace('#', '')})"
    if len(pieces) > _MOST:
        yield f"and {len(pieces) - _MOST} more"


def of_evidence(case: CompileCase, draft: Draft, compiled: CompiledContext, ref: str) -> Iterator[str]:
    """What is said of it, at which moment that was judged, and what it answers."""
    del draft
    for n, evidence in enumerate(case.evidence):
        if isinstance(evidence, Evidence):
            if evidence.evidence_ref == ref:
                source = f"of type {evidence.type}, from {evidence.source}, trust {evidence.trust}"
                yield f"{source}, {evidence.classification} (/evidence/{n})"
                yield _aged(evidence, case)
        elif evidence == ref:
            yield f"a bare reference: it is shown, and can answer nothing (/evidence/{n})"
    gate = compiled.evidence_gate
    answered = [met.name for met in gate.satisfied if met.by == ref] if gate else []
    if answered:
        yield f"it answers {', '.join(answered)}"


def _aged(evidence: Evidence, case: CompileCase) -> str:
    judged = f"judged at {case.as_of}" if case.as_of is not None else "and no as_of to judge that by"
    if evidence.freshness is None:
        return f"nobody says when it was observed; {judged}"
    until = f"holds until {evidence.freshness.expires_at}" if evidence.freshness.expires_at else "does not age"
    return f"observed at {evidence.freshness.observed_at}, {until}; {judged}"


def of_memory(case: CompileCase, draft: Draft, compiled: CompiledContext, ref: str) -> Iterator[str]:
    """What is said of it."""
    del draft, compiled
    for n, memory in enumerate(case.memories):
        if memory.memory_ref == ref:
            whose = f", of {memory.subject}" if memory.subject else ""
            yield f"{memory.state}, {memory.tier} {memory.write_class}{whose}, {memory.classification} (/memories/{n})"
            for what, names in (("intents", memory.intents), ("roles", memory.roles)):
                if names:
                    yield f"only for the {what} {', '.join(names)}"
            if memory.expires_at is not None:
                yield f"it holds until {memory.expires_at}"


def of_block(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """What it shows, and what it is weighed by."""
    del case, draft
    found = [
        (context_block.priority, context_block.provenance_refs)
        for context_block in compiled.compiled_prompt.context_blocks
        if context_block.block_id == name
    ] + [
        (omission.priority, omission.source_refs)
        for omission in compiled.manifests.omission_manifest
        if omission.kind == "block" and omission.id == name
    ]
    for priority, refs in found:
        yield f"priority {priority}, from {', '.join(refs)}"
    if name in NEVER_DROPPED:
        yield "it holds the non-negotiables, and is never dropped"


def of_bucket(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """Every block of it with its size; of very many, the first."""
    del case, draft
    kept = [context_block for context_block in compiled.compiled_prompt.context_blocks if context_block.bucket == name]
    gone = [
        omission
        for omission in compiled.manifests.omission_manifest
        if omission.kind == "block" and omission.bucket == name
    ]
    lines = [
        f"{block.block_id} takes {block.tokens or 0:,} tokens"
        + (", and is never dropped" * (block.block_id in NEVER_DROPPED))
        for block in kept
    ]
    lines += [
        f"{omission.id} takes {omission.tokens or 0:,} tokens, and is dropped: {omission.reason}" for omission in gone
    ]
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more"


_LONGEST = 300
_ALWAYS: Mapping[ItemKind, str] = {
    "redaction": "the redactions of a pack hold for every request",
    "setting": "it is that of the request, else that of the run, else that of the pack",
    "task": "every prompt ends with it",
}
"""What no request turns round, and why."""


def full_account(source: PackSource, compiled: CompiledContext) -> tuple[Item, ...]:
    """The account, and the gates of the pack that are not active, each with what was noticed of it."""
    items = account_of(compiled)
    active = {item.id for item in items if item.kind == "gate"}
    idle = [
        approval_gate.gate_id
        for approval_gate in source.pack.policy_layer.approval_gates
        if approval_gate.gate_id not in active
    ]
    noticed = [note for stage in compiled.context_ledger.stages for note in stage.notes]
    said = {one: next((note for note in noticed if note.startswith(f"{one} is not active")), "") for one in idle}
    words = {one: note.removeprefix(f"{one} is ") or "not active" for one, note in said.items()}
    return (*items, *(Item(kind="gate", id=one, inside=False, words=words[one], stage="tools") for one in idle))


def never_turned(item: Item) -> bool:
    """Whether no request can turn it round, so that nothing has to be tried."""
    if item.kind == "bucket":
        return item.id == "business"  # it holds nothing but what is never dropped
    return item.kind in _ALWAYS or (item.kind == "block" and item.id in NEVER_DROPPED)


def reasons_of(source: PackSource, case: CompileCase, compiled: CompiledContext, item: Item) -> tuple[str, ...]:
    """What had a say in it, a line each; nothing where the account says all there is."""
    view = source.view(case.environment)
    inputs = read(
        view,
        case.run_context,
        case.request,
        evidence=case.evidence,
        memories=case.memories,
        tokens=APPROX4,
        as_of=case.as_of,
    )
    draft = policy(intent(scope(Draft(inputs=inputs))))
    if item.kind in _OF_CONTENT:
        return tuple(_OF_CONTENT[item.kind](case, draft, compiled, item.id))
    if item.kind in _OF_POLICY:
        return tuple(_OF_POLICY[item.kind](view, draft, item.id))
    return (_ALWAYS[item.kind],)


def _of_decision(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    """Every denial; of what is allowed, the rules that allow it."""
    del view, name
    verdict = draft.policy.verdict
    yield from verdict.denials
    if verdict.allowed and verdict.reason:
        yield verdict.reason
    yield from (f"{missing_fact} is missing" for missing_fact in verdict.missing_facts)


def _of_guardrail(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    """In which ways it was triggered, or which there are."""
    rails = view.pack.policy_layer.guardrails
    triggered = {one.id: one for one in draft.decision.guardrails.triggered}
    idle = ""
    for kind, entries in (("refuse", rails.must_refuse), ("escalate", rails.must_escalate)):
        for entry in entries:
            if (entry.id if isinstance(entry, Guardrail) else entry) != name:
                continue
            yield f"a request that triggers it is one to {kind}"
            if isinstance(entry, Guardrail) and entry.when is not None:
                idle = "its when does not hold, and "
                yield f"when {_shown(entry.when)}"
                yield from _read(entry.when, draft.facts)
    if name not in triggered:
        yield f"nothing triggers it: {idle}neither request.context.{name} nor request.context.signals does"
        return
    guardrail = triggered[name]
    told = {
        "when": "its when holds",
        "error": f"its when cannot be judged: {guardrail.error}",
        "missing": f"its when could hold: {', '.join(guardrail.missing)} is missing",
        "signal": "request.context.signals names it",
        "label": f"request.context.{name} is given, and not false",
    }
    yield from (f"triggered: {told[way]}" for way in guardrail.by)


def _of_rule(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    bundle_id, _, rule_id = name.partition("#")
    for bundle in view.pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            if (bundle.bundle_id, rule.rule_id) == (bundle_id, rule_id):
                yield from _said(rule, draft.facts)


def _said(rule: Rule, facts: Facts) -> Iterator[str]:
    for key, wanted in rule.applies_to.items():
        names = wanted if isinstance(wanted, str) else ", ".join(wanted)
        yield f"applies to {key} {names}; here it is {_shown(facts.matched(key))}"
    yield f"if {_shown(rule.condition)}"
    yield from _read(rule.condition, facts)


def _of_gate(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    surface = view.tooling.surface(draft.decision, draft.facts.safety_mode)
    verdict = active_gates(view.policy, draft.decision, surface, draft.facts)
    for active in verdict.active:
        if active.gate_id == name:
            yield from (f"{one} asks for it" for one in active.because)
            if active.undecided:
                yield active.undecided
    yield from (inactive_gate.why for inactive_gate in verdict.inactive if inactive_gate.gate_id == name)
    when = view.policy.gates[name].when
    if when is not None:
        yield f"when {_shown(when)}"
        yield from _read(when, draft.facts)


def _of_tool(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    surface = view.tooling.surface(draft.decision, draft.facts.safety_mode)
    for tool in surface.tools:
        if tool.capability_id == name:
            yield f"permitted by {', '.join(tool.permission_ids)}"
            yield f"it is {tool.declared_mode}, and the run's ceiling is {draft.facts.safety_mode}"
    for out in surface.left_out:
        if out.capability_id == name:
            for reason in out.reasons:
                by = f" (by {', '.join(reason.by)})" if reason.by and reason.kind != "above_ceiling" else ""
                yield f"{reason.kind}: {reason.message}{by}"
    yield from (f"policy: {denial}" for denial in draft.policy.verdict.denials)


def _read(condition: Json, facts: Facts) -> Iterator[str]:
    for path in sorted(variables(condition)):
        here: Json = facts.data
        for step in path.split("."):
            here = here.get(step) if isinstance(here, dict) else None
        yield f"{path} is {_shown(here) if here is not None else 'missing'}"


def _shown(value: object) -> str:
    """A value in a line: short, and no secret."""
    data = msgspec.json.encode(value)
    if secret_shapes(data):
        return "something that looks like a secret"
    text = msgspec.json.format(data, indent=0).decode()  # on one line, with blanks at which it can be broken
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_OF_POLICY: Mapping[ItemKind, Callable[[PackView, Draft, str], Iterator[str]]] = {
    "decision": _of_decision,
    "rule": _of_rule,
    "gate": _of_gate,
    "guardrail": _of_guardrail,
    "tool": _of_tool,
}
_OF_CONTENT: Mapping[ItemKind, Callable[[CompileCase, Draft, CompiledContext, str], Iterator[str]]] = {
    "requirement": of_requirement,
    "evidence": of_evidence,
    "memory": of_memory,
    "block": of_block,
    "bucket": of_bucket,
}
