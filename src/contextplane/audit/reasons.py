"""Finds the reasons why an item is in or out: the parts of the pack, and the facts that they read.

Items of content (evidence, memories, required names, blocks, buckets) are explained from the case and the result; items
of policy (decision, rules, gates, guardrails, tools) by evaluating the policy again.
"""

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec.structs import replace

from contextplane.compiler.budget import NEVER_DROPPED
from contextplane.compiler.case import CompileCase
from contextplane.compiler.draft import Draft
from contextplane.compiler.inputs import read_inputs
from contextplane.compiler.policy import evaluate_policy
from contextplane.compiler.redaction import redact_inputs
from contextplane.compiler.report import ContextItem
from contextplane.compiler.scope import resolve_intent, resolve_scope
from contextplane.compiler.source import PackSource
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.evidence import Evidence
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import Guardrail, Rule
from contextplane.model.tokens import CALIBRATED1
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.decision import TriggeredGuardrail, TriggerKind
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.policy.logic.expression import variables
from contextplane.policy.tool_surface import Surface

__all__ = ["find_reasons", "is_fixed"]

_LISTED_LINES = 20
_VALUE_LENGTH = 300


def _requirement_reasons(case: CompileCase, draft: Draft, compiled: CompiledContext, name: str) -> Iterator[str]:
    """Yield what requires a name, and the pieces of that name that do not answer it."""
    decisions = (draft.inputs.view.intent(case.request.input.intent)).decisions
    for spec in decisions:
        if name in spec.required_evidence:
            yield f"decision {spec.decision_key} requires it"
    for effect in draft.decision.effects:
        if name in effect.effect.requires:
            doubt = "" if effect.undecided is None else ", which is undecided, so both of its branches hold,"
            yield f"rule {effect.rule_id}{doubt} requires it"
    gate = compiled.evidence_gate
    unresolved = gate.unresolved if gate else ()
    pieces = [piece for requirement in unresolved if requirement.name == name for piece in requirement.evidence]
    for piece in pieces[:_LISTED_LINES]:
        yield f"{piece.evidence_ref} does not answer it: {piece.reason} (/{piece.at.replace('#', '')})"
    if len(pieces) > _LISTED_LINES:
        yield f"and {len(pieces) - _LISTED_LINES} more"


def _evidence_reasons(case: CompileCase, compiled: CompiledContext, ref: str) -> Iterator[str]:
    """Yield the type, source, trust and age of a piece of evidence, and the names that it answers."""
    for n, evidence in enumerate(case.evidence):
        if isinstance(evidence, Evidence):
            if evidence.evidence_ref == ref:
                source = f"of type {evidence.type}, from {evidence.source}, trust {evidence.trust}"
                yield f"{source}, {evidence.classification} (/evidence/{n})"
                yield _describe_age(evidence, case)
        elif evidence == ref:
            yield f"a bare reference: it is shown, and can answer nothing (/evidence/{n})"
    gate = compiled.evidence_gate
    answered = [satisfied.name for satisfied in gate.satisfied if satisfied.by == ref] if gate else []
    if answered:
        yield f"it answers {', '.join(answered)}"


def _describe_age(evidence: Evidence, case: CompileCase) -> str:
    judged = f"judged at {case.as_of}" if case.as_of is not None else "and no as_of to judge that by"
    if evidence.freshness is None:
        return f"it has no time of observation; {judged}"
    until = f"holds until {evidence.freshness.expires_at}" if evidence.freshness.expires_at else "does not age"
    return f"observed at {evidence.freshness.observed_at}, {until}; {judged}"


def _memory_reasons(case: CompileCase, ref: str) -> Iterator[str]:
    """Yield the state, tier, subject and limits of a memory."""
    for n, memory in enumerate(case.memories):
        if memory.memory_ref == ref:
            kind = f"{memory.state}, {memory.tier} {memory.write_class}"
            subject = f", of {memory.subject}" if memory.subject else ""
            yield f"{kind}{subject}, {memory.classification} (/memories/{n})"
            for what, names in (("intents", memory.intents), ("roles", memory.roles)):
                if names:
                    yield f"only for the {what} {', '.join(names)}"
            if memory.expires_at is not None:
                yield f"it holds until {memory.expires_at}"


def _block_reasons(compiled: CompiledContext, name: str) -> Iterator[str]:
    """Yield the priority of a block and its sources."""
    blocks = [
        (block.priority, block.provenance_refs)
        for block in compiled.compiled_prompt.context_blocks
        if block.block_id == name
    ] + [
        (omission.priority, omission.source_refs)
        for omission in compiled.manifests.omission_manifest
        if omission.kind == "block" and omission.id == name
    ]
    for priority, refs in blocks:
        yield f"priority {priority}, from {', '.join(refs)}"
    if name in NEVER_DROPPED:
        yield "it holds the non-negotiables, and is never dropped"


def _bucket_reasons(compiled: CompiledContext, name: str) -> Iterator[str]:
    """Yield the blocks of a bucket with their sizes; of very many, the first."""
    kept = [block for block in compiled.compiled_prompt.context_blocks if block.bucket == name]
    dropped = [
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
        f"{omission.id} takes {omission.tokens or 0:,} tokens, and is dropped: {omission.reason}"
        for omission in dropped
    ]
    yield from lines[:_LISTED_LINES]
    if len(lines) > _LISTED_LINES:
        yield f"and {len(lines) - _LISTED_LINES} more"


def is_fixed(item: ContextItem) -> bool:
    """Whether no request can flip the item, so that no counterfactual has to be tried."""
    match item.kind:
        case "redaction" | "setting" | "task":
            return True
        case "bucket":
            return item.id == "business"  # it holds only blocks that are never dropped
        case "block":
            return item.id in NEVER_DROPPED
        case "decision" | "tool" | "rule" | "gate" | "guardrail" | "evidence" | "memory" | "requirement":
            return False
        case unreachable:
            assert_never(unreachable)


def find_reasons(
    source: PackSource, case: CompileCase, compiled: CompiledContext, item: ContextItem
) -> tuple[str, ...]:
    """The reasons for an item, a line each; empty if the item itself says everything."""
    view = source.view(case.environment)
    inputs = read_inputs(
        view,
        case.run_context,
        case.request,
        evidence=case.evidence,
        memories=case.memories,
        tokens=source.tokens or CALIBRATED1,
        as_of=case.as_of,
    )
    draft = evaluate_policy(resolve_intent(resolve_scope(redact_inputs(Draft(inputs=inputs)))))
    shown = replace(case, evidence=draft.shown.evidence, memories=draft.shown.memories)
    return tuple(_reasons(shown, draft, compiled, item))


def _reasons(  # noqa: C901, PLR0912  one branch for each kind of item
    case: CompileCase, draft: Draft, compiled: CompiledContext, item: ContextItem
) -> Iterator[str]:
    view = draft.inputs.view
    match item.kind:
        case "requirement":
            yield from _requirement_reasons(case, draft, compiled, item.id)
        case "evidence":
            yield from _evidence_reasons(case, compiled, item.id)
        case "memory":
            yield from _memory_reasons(case, item.id)
        case "block":
            yield from _block_reasons(compiled, item.id)
        case "bucket":
            yield from _bucket_reasons(compiled, item.id)
        case "decision":
            yield from _decision_reasons(draft)
        case "rule":
            yield from _rule_reasons(view, draft, item.id)
        case "gate":
            yield from _gate_reasons(view, draft, item.id)
        case "guardrail":
            yield from _guardrail_reasons(view, draft, item.id)
        case "tool":
            yield from _tool_reasons(view, draft, item.id)
        case "redaction":
            yield "the redactions of a pack hold for every request"
        case "setting":
            yield "it is that of the request, else that of the run, else that of the pack"
        case "task":
            yield "every prompt ends with it"
        case unreachable:
            assert_never(unreachable)


def _decision_reasons(draft: Draft) -> Iterator[str]:
    """Yield every denial, or why the request is allowed; and the missing facts."""
    verdict = draft.policy.verdict
    yield from verdict.denials
    if verdict.allowed and verdict.reason:
        yield verdict.reason
    yield from (f"{path} is missing" for path in verdict.missing_facts)


def _guardrail_reasons(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    """Yield how a guardrail was triggered, or how it can be."""
    rails = view.pack.policy_layer.guardrails
    triggered = {guardrail.id: guardrail for guardrail in draft.decision.guardrails.triggered}
    when_words = ""
    for kind, entries in (("refuse", rails.must_refuse), ("escalate", rails.must_escalate)):
        for entry in entries:
            if (entry.id if isinstance(entry, Guardrail) else entry) != name:
                continue
            yield f"a request that triggers it is one to {kind}"
            if isinstance(entry, Guardrail) and entry.when is not None:
                when_words = "its when does not hold, and "
                yield f"when {_format_value(entry.when)}"
                yield from _describe_facts(entry.when, draft)
    if name not in triggered:
        yield f"nothing triggers it: {when_words}neither request.context.{name} nor request.context.signals does"
        return
    guardrail = triggered[name]
    yield from (f"triggered: {_describe_trigger(guardrail, trigger)}" for trigger in guardrail.by)


def _describe_trigger(guardrail: TriggeredGuardrail, trigger: TriggerKind) -> str:
    match trigger:
        case "when":
            return "its when holds"
        case "error":
            return f"its when cannot be judged: {guardrail.error}"
        case "missing":
            return f"its when could hold: {', '.join(guardrail.missing)} is missing"
        case "signal":
            return "request.context.signals names it"
        case "label":
            return f"request.context.{guardrail.id} is given, and not false"
        case unreachable:
            assert_never(unreachable)


def _rule_reasons(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    bundle_id, _, rule_id = name.partition("#")
    for bundle in view.pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            if (bundle.bundle_id, rule.rule_id) == (bundle_id, rule_id):
                yield from _describe_rule(rule, draft)


def _describe_rule(rule: Rule, draft: Draft) -> Iterator[str]:
    for key, scope in rule.applies_to.items():
        names = scope if isinstance(scope, str) else ", ".join(scope)
        yield f"applies to {key} {names}; here it is {_format_fact(key, draft.facts.scope_value(key), draft)}"
    yield f"if {_format_value(rule.condition)}"
    yield from _describe_facts(rule.condition, draft)


def _surface(view: PackView, draft: Draft) -> Surface:
    return view.tooling.surface(draft.decision, draft.facts.safety_mode, view.intent(draft.intent.intent).reach)


def _gate_reasons(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    surface = _surface(view, draft)
    verdict = active_gates(view.policy, draft.decision, surface, draft.facts)
    for active in verdict.active:
        if active.gate_id == name:
            yield from (f"{reason} asks for it" for reason in active.because)
            if active.undecided:
                yield active.undecided
    yield from (gate.why for gate in verdict.inactive if gate.gate_id == name)
    when = view.policy.gates[name].when
    if when is not None:
        yield f"when {_format_value(when)}"
        yield from _describe_facts(when, draft)


def _tool_reasons(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    surface = _surface(view, draft)
    for tool in surface.tools:
        if tool.capability_id == name:
            yield f"permitted by {', '.join(tool.permission_ids)}"
            yield f"it is {tool.declared_mode}, and the run's ceiling is {draft.facts.safety_mode}"
    for omitted in surface.left_out:
        if omitted.capability_id == name:
            for reason in omitted.reasons:
                by = f" (by {', '.join(reason.by)})" if reason.by and reason.kind != "above_ceiling" else ""
                yield f"{reason.kind}: {reason.message}{by}"
    yield from (f"policy: {denial}" for denial in draft.policy.verdict.denials)


def _describe_facts(condition: Json, draft: Draft) -> Iterator[str]:
    for path in sorted(variables(condition)):
        here: Json = draft.facts.data
        for step in path.split("."):
            here = here.get(step) if isinstance(here, dict) else None
        yield f"{path} is {_format_fact(path, here, draft) if here is not None else 'missing'}"


def _format_fact(path: str, value: Json, draft: Draft) -> str:
    """Format the value of a fact with the masks of the pack's redaction rules."""
    return _format_value(draft.inputs.view.redactor.mask_member(path.split("."), value).value)


def _format_value(value: object) -> str:
    """Format a value for a line: shortened, and never a secret."""
    data = msgspec.json.encode(value)
    if secret_shapes(data):
        return "something that looks like a secret"
    text = msgspec.json.format(data, indent=0).decode()  # on one line, with blanks at which it can be wrapped
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}..."
