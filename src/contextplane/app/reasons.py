"""Why something is in or out of a compiled context: the parts of the pack that had a say, and the facts they read."""

from collections.abc import Iterator

import msgspec

from contextplane.app.account import Item, account_of
from contextplane.app.compile_case import CompileCase
from contextplane.app.compiling import PackSource
from contextplane.compiler.draft import Draft
from contextplane.compiler.inputs import read
from contextplane.compiler.intent import intent
from contextplane.compiler.policy import policy
from contextplane.compiler.scope import scope
from contextplane.compiler.view import PackView
from contextplane.model.canonical import Json
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack.policy_layer import Rule
from contextplane.model.tokens import APPROX4
from contextplane.policy.facts import Facts
from contextplane.policy.gates import active_gates
from contextplane.policy.logic import variables
from contextplane.policy.secrets import secret_shapes

__all__ = ["full_account", "reasons_of"]

_LONGEST = 300


def full_account(source: PackSource, compiled: CompiledContext) -> tuple[Item, ...]:
    """The account, and the gates of the pack that are not active."""
    found = account_of(compiled)
    active = {one.id for one in found if one.kind == "gate"}
    idle = [one.gate_id for one in source.pack.policy_layer.approval_gates if one.gate_id not in active]
    return (*found, *(Item(kind="gate", id=one, inside=False, words="not active", stage="tools") for one in idle))


def reasons_of(source: PackSource, case: CompileCase, item: Item) -> tuple[str, ...]:
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
    told = {"rule": _of_rule, "gate": _of_gate, "tool": _of_tool}.get(item.kind)
    return tuple(told(view, draft, item.id)) if told else ()


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
            yield from (
                f"{one.kind}: {one.message}" + (f" (by {', '.join(one.by)})" if one.by else "") for one in out.reasons
            )
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
    text = data.decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
