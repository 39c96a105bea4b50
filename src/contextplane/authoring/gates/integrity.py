"""Referential integrity: every name that one part of a pack uses is declared by another, exactly once."""

from collections.abc import Iterable, Iterator

from contextplane.authoring.deciding import Deciding, place_in
from contextplane.authoring.evidence import ACTING, from_tools, givers, is_given, sources
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.terms import at_most

__all__ = ["DECIDING_LAWS", "LAWS", "unknown"]


def unknown(at: str, what: str, name: str, known: Iterable[str]) -> Broken:
    """A name that leads nowhere, and the declared one that is nearest to it."""
    return Broken(at=at, cause=f"{what} {name!r} is not declared", cure=nearest(name, known, "declare it"))


def decision_bindings_resolve(subject: Subject) -> Iterator[Broken]:
    """Every decision_binding of a rule names a decision of decision_layer."""
    for placed in subject.rules:
        name = placed.rule.decision_binding
        if name is not None and name not in subject.decisions:
            yield unknown(f"{placed.at}/decision_binding", "the decision", name, subject.decisions)


def rule_gates_resolve(subject: Subject) -> Iterator[Broken]:
    """Every approval gate that a rule requires is declared in approval_gates."""
    for placed in subject.effects:
        name = placed.effect.requires_approval_gate
        if name is not None and name not in subject.gates:
            yield unknown(f"{placed.at}/requires_approval_gate", "the approval gate", name, subject.gates)


def permission_gates_resolve(subject: Subject) -> Iterator[Broken]:
    """Every approval gate that a permission requires is declared in approval_gates."""
    for at, permission in subject.permissions:
        name = permission.requires_approval_gate
        if name is not None and name not in subject.gates:
            yield unknown(f"{at}/requires_approval_gate", "the approval gate", name, subject.gates)


def permissions_name_an_adapter(subject: Subject) -> Iterator[Broken]:
    """Every permission is for an adapter of the registry."""
    for at, permission in subject.permissions:
        if permission.adapter_id not in subject.adapters:
            yield unknown(f"{at}/adapter_id", "the adapter", permission.adapter_id, subject.adapters)


def permissions_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every permission is for a capability that its adapter declares."""
    for at, permission in subject.permissions:
        _, adapter = subject.adapters.get(permission.adapter_id, ("", None))
        if adapter is not None and permission.capability not in adapter.capabilities:
            what = f"of {adapter.adapter_id} the capability"
            yield unknown(f"{at}/capability", what, permission.capability, adapter.capabilities)


def prohibitions_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every capability that a rule prohibits is one that an adapter declares: policy makes no capabilities."""
    prohibiting = [placed for placed in subject.effects if placed.effect.prohibits]
    if not prohibiting:
        return
    declared = {f"{a.adapter_id}.{c}" for _, a in subject.adapters.values() for c in a.capabilities}
    for placed in prohibiting:
        for n, name in enumerate(placed.effect.prohibits):
            if name not in declared:
                yield unknown(f"{placed.at}/prohibits/{n}", "the capability", name, declared)


def capability_specs_name_a_capability(subject: Subject) -> Iterator[Broken]:
    """Every entry of capability_specs, and every reversal_op in it, is a declared capability of that adapter."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            if name not in adapter.capabilities:
                yield unknown(f"{at}/capability_specs/{name}", "the capability", name, adapter.capabilities)
            if spec.reversal_op is not None and spec.reversal_op not in adapter.capabilities:
                place = f"{at}/capability_specs/{name}/reversal_op"
                yield unknown(place, "the capability", spec.reversal_op, adapter.capabilities)


def required_evidence_can_be_had(subject: Subject) -> Iterator[Broken]:
    """Every name of required evidence can be satisfied before the decision: by tools, policy, request or graph."""
    for at, spec in subject.decisions.values():
        for n, name in enumerate(spec.required_evidence):
            if problem := _unobtainable(subject, f"{at}/required_evidence/{n}", name, spec):
                yield problem


def _unobtainable(subject: Subject, at: str, name: str, spec: DecisionSpec | None) -> Broken | None:
    """Why a name of evidence cannot be had before a decision."""
    if is_given(subject, name):
        return None
    tool = subject.once(from_tools).get(name)
    if tool is None:
        cause = f"nothing can satisfy {name!r}: no tool, no fact of the request that a condition reads, no entity"
        return Broken(at=at, cause=cause, cure=nearest(name, sources(subject), "let a permission name it in produces"))
    if spec is None or tool[1] not in ACTING or not at_most(spec.approval_mode, tool[1]):
        return None
    cause = f"only {tool[0]} gives {name!r}, and that is called when the decision has been made, which authorises it"
    return Broken(at=at, cause=cause, cure="let a tool that reads produce it, or have the request say it")


def rule_requirements_can_be_had(subject: Subject) -> Iterator[Broken]:
    """Every name that a rule requires is evidence that its decision requires, or that something can satisfy."""
    for placed in subject.effects:
        for n, name in enumerate(placed.effect.requires):
            _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
            if spec is not None and name in spec.required_evidence:
                continue
            if problem := _unobtainable(subject, f"{placed.at}/requires/{n}", name, spec):
                yield problem


def no_rule_prohibits_what_it_needs(subject: Subject) -> Iterator[Broken]:
    """No rule that lets a run go on prohibits every tool that gives evidence which it or its decision requires."""
    for placed in subject.effects:
        prohibited = frozenset(placed.effect.prohibits)
        if not prohibited or placed.effect.allow is False:
            continue
        _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
        needed = (*placed.effect.requires, *(spec.required_evidence if spec is not None else ()))
        for name in dict.fromkeys(needed):
            giving = subject.once(givers).get(name, frozenset())
            if giving and giving <= prohibited:
                yield Broken(
                    at=f"{placed.at}/prohibits",
                    cause=f"{placed.of.rule.rule_id} prohibits all that gives {name!r}, which the decision waits for",
                    cure="deny there, or leave one of the tools that give it",
                )


def ids_are_unique(subject: Deciding) -> Iterator[Broken]:
    """No two parts of one kind have the same id."""
    for kind, found in subject.ids.items():
        parts, _, field = found
        if len(parts) < 2:  # noqa: PLR2004  it is no list of one
            continue
        ids = [one if isinstance(one, str) else getattr(one, field or "id") for one in parts]
        if len(set(ids)) < len(ids):
            seen: dict[str, int] = {}
            for n, name in enumerate(ids):
                first = seen.setdefault(name, n)
                if first != n:
                    cause = f"the {kind} {name!r} is already at {place_in(found, first)}"
                    yield Broken(at=place_in(found, n), cause=cause, cure="give each its own")


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


def task_templates_resolve(subject: Deciding) -> Iterator[Broken]:
    """Every step of a task template calls a permitted capability, and depends on earlier steps only."""
    permitted = subject.permitted if subject.templates else None
    for at, template in subject.templates:
        if template.decision_key not in subject.decisions:
            yield unknown(f"{at}/decision_key", "the decision", template.decision_key, subject.decisions)
        earlier: dict[str, None] = {}
        for s, step in enumerate(template.steps):
            if permitted is not None and step.tool not in permitted:
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


DECIDING_LAWS: tuple[Law[Deciding], ...] = (
    Law(gate="integrity", code="id_repeated", check=ids_are_unique),
    Law(gate="integrity", code="task_template_unresolved", check=task_templates_resolve),
)
"""What holds in a catalog as well."""

LAWS: tuple[Law[Subject], ...] = (
    *DECIDING_LAWS,
    Law(gate="integrity", code="decision_binding_unknown", check=decision_bindings_resolve),
    Law(gate="integrity", code="rule_gate_unknown", check=rule_gates_resolve),
    Law(gate="integrity", code="permission_gate_unknown", check=permission_gates_resolve),
    Law(gate="integrity", code="permission_adapter_unknown", check=permissions_name_an_adapter),
    Law(gate="integrity", code="permission_capability_unknown", check=permissions_name_a_capability),
    Law(gate="integrity", code="prohibition_unknown", check=prohibitions_name_a_capability),
    Law(gate="integrity", code="capability_spec_unknown", check=capability_specs_name_a_capability),
    Law(gate="integrity", code="required_evidence_unobtainable", check=required_evidence_can_be_had),
    Law(gate="integrity", code="rule_requirement_unobtainable", check=rule_requirements_can_be_had),
    Law(gate="integrity", code="evidence_prohibited", check=no_rule_prohibits_what_it_needs),
    Law(gate="integrity", code="permission_repeated", check=one_permission_per_capability),
)
