"""Why something is in or out of a compiled context: the parts of the pack that had a say, and the facts they read."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from contextplane.app.account import Item, ItemKind, account_of
from contextplane.app.compile_case import CompileCase
from contextplane.app.compiling import PackSource
from contextplane.app.reasons_of_content import of_block, of_bucket, of_evidence, of_memory, of_requirement
from contextplane.compiler.budget import NEVER_DROPPED
from contextplane.compiler.draft import Draft
from contextplane.compiler.inputs import read
from contextplane.compiler.intent import intent
from contextplane.compiler.policy import policy
from contextplane.compiler.scope import scope
from contextplane.compiler.view import PackView
from contextplane.model.canonical import Json
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack.policy_layer import Guardrail, Rule
from contextplane.model.tokens import APPROX4
from contextplane.policy.facts import Facts
from contextplane.policy.gates import active_gates
from contextplane.policy.logic import variables
from contextplane.policy.secrets import secret_shapes

__all__ = ["full_account", "never_turned", "reasons_of"]

_LONGEST = 300
_ALWAYS: Mapping[ItemKind, str] = {
    "redaction": "the redactions of a pack hold for every request",
    "setting": "it is that of the request, else that of the run, else that of the pack",
    "task": "every prompt ends with it",
}
"""What no request turns round, and why."""


def full_account(source: PackSource, compiled: CompiledContext) -> tuple[Item, ...]:
    """The account, and the gates of the pack that are not active, each with what was noticed of it."""
    found = account_of(compiled)
    active = {one.id for one in found if one.kind == "gate"}
    idle = [one.gate_id for one in source.pack.policy_layer.approval_gates if one.gate_id not in active]
    noticed = [note for stage in compiled.context_ledger.stages for note in stage.notes]
    said = {one: next((note for note in noticed if note.startswith(f"{one} is not active")), "") for one in idle}
    words = {one: note.removeprefix(f"{one} is ") or "not active" for one, note in said.items()}
    return (*found, *(Item(kind="gate", id=one, inside=False, words=words[one], stage="tools") for one in idle))


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
    yield from (f"{one} is missing" for one in verdict.missing_facts)


def _of_guardrail(view: PackView, draft: Draft, name: str) -> Iterator[str]:
    """In which ways it was triggered, or which there are."""
    rails = view.pack.policy_layer.guardrails
    triggered = {one.id: one for one in draft.decision.guardrails.triggered}
    idle = ""
    for kind, entries in (("refuse", rails.must_refuse), ("escalate", rails.must_escalate)):
        for one in entries:
            if (one.id if isinstance(one, Guardrail) else one) != name:
                continue
            yield f"a request that triggers it is one to {kind}"
            if isinstance(one, Guardrail) and one.when is not None:
                idle = "its when does not hold, and "
                yield f"when {_shown(one.when)}"
                yield from _read(one.when, draft.facts)
    if name not in triggered:
        yield f"nothing triggers it: {idle}neither request.context.{name} nor request.context.signals does"
        return
    found = triggered[name]
    told = {
        "when": "its when holds",
        "error": f"its when cannot be judged: {found.error}",
        "missing": f"its when could hold: {', '.join(found.missing)} is missing",
        "signal": "request.context.signals names it",
        "label": f"request.context.{name} is given, and not false",
    }
    yield from (f"triggered: {told[way]}" for way in found.by)


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
    yield from (one.why for one in verdict.inactive if one.gate_id == name)
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
            for one in out.reasons:
                by = f" (by {', '.join(one.by)})" if one.by and one.kind != "above_ceiling" else ""
                yield f"{one.kind}: {one.message}{by}"
    yield from (f"policy: {one}" for one in draft.policy.verdict.denials)


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
