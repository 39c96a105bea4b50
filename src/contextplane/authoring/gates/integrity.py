"""Referential integrity: every name that one part of a pack uses is declared by another, exactly once."""

from collections.abc import Iterable, Iterator

from contextplane.authoring.evidence import sources
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack.policy_layer import Guardrail

__all__ = ["LAWS"]


def _unknown(at: str, what: str, name: str, known: Iterable[str]) -> Broken:
    """A name that leads nowhere, and the declared one that is nearest to it."""
    return Broken(at=at, cause=f"{what} {name!r} is not declared", cure=nearest(name, known, "declare it"))


def decision_bindings_resolve(subject: Subject) -> Iterator[Broken]:
    """Every decision_binding of a rule names a decision of decision_layer."""
    for placed in subject.rules:
        name = placed.rule.decision_binding
        if name is not None and name not in subject.decisions:
            yield _unknown(f"{placed.at}/decision_binding", "the decision", name, subject.decisions)


def rule_gates_resolve(subject: Subject) -> Iterator[Broken]:
    """Every approval gate that a rule requires is declared in approval_gates."""
    for placed in subject.effects:
        name = placed.effect.requires_approval_gate
        if name is not None and name not in subject.gates:
            yield _unknown(f"{placed.at}/requires_approval_gate", "the approval gate", name, subject.gates)


def permission_gates_resolve(subject: Subject) -> Iterator[Broken]:
    """Every approval gate that a permission requires is declared in approval_gates."""
    for at, permission in subject.permissions:
        name = permission.requires_approval_gate
        if name is not None and name not in subject.gates:
            yield _unknown(f"{at}/requires_approval_gate", "the approval gate", name, subject.gates)


def permissions_name_an_adapter(subject: Subject) -> Iterator[Broken]:
    """Every permission is for an adapter of the registry."""
    for at, permission in subject.permissions:
        if permission.adapter_id not in subject.adapters:
            yield _unknown(f"{at}/adapter_id", "the adapter", permission.adapter_id, subject.adapters)


def permissions_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every permission is for a capability that its adapter declares."""
    for at, permission in subject.permissions:
        _, adapter = subject.adapters.get(permission.adapter_id, ("", None))
        if adapter is not None and permission.capability not in adapter.capabilities:
            what = f"of {adapter.adapter_id} the capability"
            yield _unknown(f"{at}/capability", what, permission.capability, adapter.capabilities)


def prohibitions_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every capability that a rule prohibits is one that an adapter declares: policy makes no capabilities."""
    declared = {f"{a.adapter_id}.{c}" for _, a in subject.adapters.values() for c in a.capabilities}
    for placed in subject.effects:
        for n, name in enumerate(placed.effect.prohibits):
            if name not in declared:
                yield _unknown(f"{placed.at}/prohibits/{n}", "the capability", name, declared)


def capability_specs_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every entry of capability_specs, and every reversal_op in it, is a declared capability of that adapter."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            if name not in adapter.capabilities:
                yield _unknown(f"{at}/capability_specs/{name}", "the capability", name, adapter.capabilities)
            if spec.reversal_op is not None and spec.reversal_op not in adapter.capabilities:
                place = f"{at}/capability_specs/{name}/reversal_op"
                yield _unknown(place, "the capability", spec.reversal_op, adapter.capabilities)


def required_evidence_can_be_had(subject: Subject) -> Iterator[Broken]:
    """Every name of required evidence can be satisfied by a tool, by policy, by the request or by the graph."""
    known = subject.once(sources)
    for at, spec in subject.decisions.values():
        for n, name in enumerate(spec.required_evidence):
            if name not in known:
                yield _without_source(f"{at}/required_evidence/{n}", name, known)


def _without_source(at: str, name: str, known: Iterable[str]) -> Broken:
    cause = f"nothing can satisfy {name!r}: no tool, no fact of the request that a condition reads, no entity"
    return Broken(at=at, cause=cause, cure=nearest(name, known, "let a permission name it in produces"))


def rule_requirements_can_be_had(subject: Subject) -> Iterator[Broken]:
    """Every name that a rule requires is evidence that its decision requires, or that something can satisfy."""
    known = subject.once(sources)
    for placed in subject.effects:
        for n, name in enumerate(placed.effect.requires):
            _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
            if name not in known and (spec is None or name not in spec.required_evidence):
                yield _without_source(f"{placed.at}/requires/{n}", name, known)


def ids_are_unique(subject: Subject) -> Iterator[Broken]:
    """No two parts of one kind have the same id."""
    for kind, places in _ids(subject).items():
        seen: dict[str, str] = {}
        for at, name in places:
            first = seen.setdefault(name, at)
            if first != at:
                yield Broken(at=at, cause=f"the {kind} {name!r} is already at {first}", cure="give each its own")


def _ids(subject: Subject) -> dict[str, list[tuple[str, str]]]:
    """The ids of each kind, each with its place."""
    pack, guardrails = subject.pack, subject.pack.policy_layer.guardrails

    def placed(at: str, field: str, ids: Iterable[str]) -> list[tuple[str, str]]:
        return [(f"{at}/{n}/{field}" if field else f"{at}/{n}", one) for n, one in enumerate(ids)]

    def named(entries: Iterable[str | Guardrail]) -> list[str]:
        return [one if isinstance(one, str) else one.id for one in entries]

    bundles, gates = pack.policy_layer.policy_bundles, pack.policy_layer.approval_gates
    adapters, permissions = pack.tooling_layer.adapter_registry, pack.tooling_layer.permissions
    specs, templates = pack.decision_layer.decision_specs, pack.task_layer.task_templates
    targets, floors = pack.evaluation_layer.eval_targets, pack.evaluation_layer.release_gates
    return {
        "bundle_id": placed("/policy_layer/policy_bundles", "bundle_id", [one.bundle_id for one in bundles]),
        "rule_id": [(f"{one.at}/rule_id", one.rule.rule_id) for one in subject.rules],
        "gate_id": placed("/policy_layer/approval_gates", "gate_id", [one.gate_id for one in gates]),
        "refusal": placed("/policy_layer/guardrails/must_refuse", "", named(guardrails.must_refuse)),
        "escalation": placed("/policy_layer/guardrails/must_escalate", "", named(guardrails.must_escalate)),
        "adapter_id": placed("/tooling_layer/adapter_registry", "adapter_id", [one.adapter_id for one in adapters]),
        "permission_id": placed("/tooling_layer/permissions", "permission_id", [p.permission_id for p in permissions]),
        "decision_key": placed("/decision_layer/decision_specs", "decision_key", [one.decision_key for one in specs]),
        "target for": placed("/evaluation_layer/eval_targets", "intent", [one.intent for one in targets]),
        "release gate for": placed("/evaluation_layer/release_gates", "metric", [one.metric for one in floors]),
        "template_id": placed("/task_layer/task_templates", "template_id", [one.template_id for one in templates]),
    }


def one_permission_per_capability(subject: Subject) -> Iterator[Broken]:
    """No two permissions are for the same capability, so that it is clear which of them holds."""
    seen: dict[tuple[str, str], str] = {}
    for at, permission in subject.permissions:
        first = seen.setdefault((permission.adapter_id, permission.capability), at)
        if first != at:
            yield Broken(
                at=f"{at}/capability",
                cause=f"{permission.adapter_id}.{permission.capability} already has a permission at {first}",
                cure="keep one permission per capability",
            )


def task_templates_resolve(subject: Subject) -> Iterator[Broken]:
    """Every step of a task template calls a permitted capability, and depends on earlier steps only."""
    permitted = {f"{one.adapter_id}.{one.capability}" for _, one in subject.permissions if one.allow}
    for t, template in enumerate(subject.pack.task_layer.task_templates):
        at = f"/task_layer/task_templates/{t}"
        if template.decision_key not in subject.decisions:
            yield _unknown(f"{at}/decision_key", "the decision", template.decision_key, subject.decisions)
        earlier: dict[str, None] = {}
        for s, step in enumerate(template.steps):
            if step.tool not in permitted:
                cause = f"no permission allows {step.tool!r}"
                yield Broken(at=f"{at}/steps/{s}/tool", cause=cause, cure=nearest(step.tool, permitted, "permit it"))
            if step.id in earlier:
                yield Broken(at=f"{at}/steps/{s}/id", cause=f"the step {step.id!r} is there twice", cure="rename one")
            for d, name in enumerate(step.depends_on):
                if name not in earlier:
                    cause = f"no earlier step is called {name!r}"
                    cure = nearest(name, earlier, "put that step before this one")
                    yield Broken(at=f"{at}/steps/{s}/depends_on/{d}", cause=cause, cure=cure)
            earlier[step.id] = None


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="integrity", code="decision_binding_unknown", check=decision_bindings_resolve),
    Law(gate="integrity", code="rule_gate_unknown", check=rule_gates_resolve),
    Law(gate="integrity", code="permission_gate_unknown", check=permission_gates_resolve),
    Law(gate="integrity", code="permission_adapter_unknown", check=permissions_name_an_adapter),
    Law(gate="integrity", code="permission_capability_unknown", check=permissions_name_a_capability),
    Law(gate="integrity", code="prohibition_unknown", check=prohibitions_name_a_capability),
    Law(gate="integrity", code="capability_spec_unknown", check=capability_specs_name_a_capability),
    Law(gate="integrity", code="required_evidence_unobtainable", check=required_evidence_can_be_had),
    Law(gate="integrity", code="rule_requirement_unobtainable", check=rule_requirements_can_be_had),
    Law(gate="integrity", code="id_repeated", check=ids_are_unique),
    Law(gate="integrity", code="permission_repeated", check=one_permission_per_capability),
    Law(gate="integrity", code="task_template_unresolved", check=task_templates_resolve),
)
