"""Risk: nothing can do more than somebody agreed to, and nothing is done twice."""

from collections.abc import Iterator, Mapping, Sequence

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.model.context_pack.tooling_layer import Adapter, Permission

__all__ = ["LAWS"]

_IDEMPOTENCY = "idempotency_key"


def _allowed(subject: Subject) -> Sequence[tuple[str, Permission, Adapter]]:
    """Every permission that exposes a capability of a known adapter."""
    return [
        (at, permission, subject.adapters[permission.adapter_id][1])
        for at, permission in subject.permissions
        if permission.allow and permission.adapter_id in subject.adapters
    ]


def tools_are_below_the_ceiling(subject: Subject) -> Iterator[Broken]:
    """No exposed tool has an approval mode above what the environment allows."""
    ceiling = subject.surroundings.approval_ceiling
    for at, permission, adapter in subject.once(_allowed):
        if ceiling is not None and not at_most(adapter.approval_mode, ceiling):
            yield Broken(
                at=f"{at}/capability",
                cause=f"{adapter.adapter_id}.{permission.capability} is {adapter.approval_mode}, above {ceiling}",
                cure="take the permission out, or ask for a higher ceiling",
            )


def destructive_tools_have_a_gate(subject: Subject) -> Iterator[Broken]:
    """Every exposed capability of a destructive adapter names an approval gate."""
    for at, permission, adapter in subject.once(_allowed):
        if adapter.approval_mode == "destructive" and permission.requires_approval_gate is None:
            yield Broken(
                at=at,
                cause=f"{adapter.adapter_id}.{permission.capability} is destructive and nobody has to approve it",
                cure="name an approval gate in requires_approval_gate",
            )


def writes_require_idempotency(subject: Subject) -> Iterator[Broken]:
    """Every exposed capability that can change something requires an idempotency key, so that a retry is harmless."""
    for at, permission, adapter in subject.once(_allowed):
        constraint = permission.arg_constraints.get(_IDEMPOTENCY)
        spec = adapter.capability_specs.get(permission.capability)
        # A key that an approval lifts is not always there, and one of a closed set is not a new one for each call.
        key = constraint is not None and constraint.required and not constraint.unless_approved and not constraint.enum
        given = key or (spec is not None and spec.idempotency_header)
        if adapter.approval_mode != "read_only" and not given:
            yield Broken(
                at=f"{at}/arg_constraints",
                cause=f"{adapter.adapter_id}.{permission.capability} can change something and needs no idempotency key",
                cure=f'add "{_IDEMPOTENCY}": {{"required": true}} to its arg_constraints',
            )


def decisions_cover_their_tools(subject: Subject) -> Iterator[Broken]:
    """The approval mode of a decision is at least that of every tool it may use, and every tool is for one that is."""
    acting = subject.once(_acting)
    if all(
        at_most(mode, spec.approval_mode) for mode in set(acting.values()) for _, spec in subject.decisions.values()
    ):
        return
    told: set[tuple[str, ApprovalMode]] = set()
    for tool, mode, key in (*_planned_above(subject), *_above_all(subject)):
        at, spec = subject.decisions[key]
        # Of each mode one tool: it stands for all that are like it.
        if (key, mode) not in told:
            told.add((key, mode))
            yield Broken(
                at=f"{at}/approval_mode",
                cause=f"{spec.approval_mode} is below {tool}, which is {mode}",
                cure=f"raise it to {mode}, or take the tool out",
            )


def _acting(subject: Subject) -> Mapping[str, ApprovalMode]:
    """The exposed tools that can do more than read, with their modes."""
    return {
        f"{adapter.adapter_id}.{permission.capability}": adapter.approval_mode
        for _, permission, adapter in subject.once(_allowed)
        if adapter.approval_mode != APPROVAL_MODES[0]
    }


def _planned_above(subject: Subject) -> Iterator[tuple[str, ApprovalMode, str]]:
    """The tools that a plan calls and that are above the decision which it leads to."""
    acting = subject.once(_acting)
    for _, template in subject.templates:
        if template.decision_key not in subject.decisions:
            continue
        ceiling = subject.decisions[template.decision_key][1].approval_mode
        for step in template.steps:
            if step.tool in acting and not at_most(acting[step.tool], ceiling):
                yield step.tool, acting[step.tool], template.decision_key


def _above_all(subject: Subject) -> Iterator[tuple[str, ApprovalMode, str]]:
    """The tools that are above each decision which could authorise them, and the strictest of those decisions.

    A tool belongs to the decisions that share its approval gate, or whose plans call it; one that belongs to none, to
    every decision that a rule or a plan leads to.
    """
    shared, planned = subject.once(_decisions_by_gate), _decisions_by_tool(subject)
    bound = {placed.rule.decision_binding for placed in subject.rules}
    bound |= {template.decision_key for _, template in subject.templates}
    reached = [key for key in subject.decisions if key in bound] or list(subject.decisions)
    for _, permission, adapter in subject.once(_allowed):
        tool, mode = f"{adapter.adapter_id}.{permission.capability}", adapter.approval_mode
        own = shared.get(permission.requires_approval_gate or "", set()) | planned.get(tool, set())
        could = [key for key in subject.decisions if key in own] if own else reached
        strictest = max(could, key=lambda key: APPROVAL_MODES.index(subject.decisions[key][1].approval_mode))
        if not at_most(mode, subject.decisions[strictest][1].approval_mode):
            yield tool, mode, strictest


def _decisions_by_gate(subject: Subject) -> Mapping[str, set[str]]:
    """For each approval gate the decisions whose rules require it."""
    found: dict[str, set[str]] = {}
    for placed in subject.effects:
        gate, key = placed.effect.requires_approval_gate, placed.of.rule.decision_binding
        if gate is not None and key is not None and key in subject.decisions:
            found.setdefault(gate, set()).add(key)
    return found


def _decisions_by_tool(subject: Subject) -> Mapping[str, set[str]]:
    """For each tool the decisions whose plans call it."""
    found: dict[str, set[str]] = {}
    for _, template in subject.templates:
        for step in template.steps if template.decision_key in subject.decisions else ():
            found.setdefault(step.tool, set()).add(template.decision_key)
    return found


def rules_stay_below_the_declared_maximum(subject: Subject) -> Iterator[Broken]:
    """No rule asks for an approval mode above that of the decision it is bound to."""
    for placed in subject.effects:
        mode = placed.effect.approval_mode
        _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
        if mode is not None and spec is not None and not at_most(mode, spec.approval_mode):
            yield Broken(
                at=f"{placed.at}/approval_mode",
                cause=f"{mode} is above {spec.decision_key}, whose maximum is {spec.approval_mode}",
                cure=f"lower it to {spec.approval_mode}, or raise the decision's",
            )


def destructive_decisions_rest_on_evidence(subject: Subject) -> Iterator[Broken]:
    """Every destructive decision requires evidence, itself or by a rule: an approval freezes what it was given for."""
    for key, (at, spec) in subject.decisions.items():
        if spec.approval_mode != APPROVAL_MODES[-1] or spec.required_evidence:
            continue
        if not any(one.effect.requires for one in subject.effects if one.of.rule.decision_binding == key):
            yield Broken(
                at=f"{at}/required_evidence",
                cause=f"{key} is destructive and rests on nothing: whoever approves it would be shown no evidence",
                cure="name what must be known before, such as policy_eval",
            )


def destructive_capabilities_can_be_undone(subject: Subject) -> Iterator[Broken]:
    """A destructive capability that is described says how it is reversed."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            if adapter.approval_mode == APPROVAL_MODES[-1] and spec.reversal_op is None:
                yield Broken(
                    at=f"{at}/capability_specs/{name}",
                    cause=f"{adapter.adapter_id}.{name} is destructive and names no reversal_op",
                    cure="name the capability that reverses it, or say in the runbook that none does",
                )


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="risk", code="tool_above_ceiling", check=tools_are_below_the_ceiling),
    Law(gate="risk", code="destructive_without_gate", check=destructive_tools_have_a_gate),
    Law(gate="risk", code="write_without_idempotency", check=writes_require_idempotency),
    Law(gate="risk", code="decision_below_tool", check=decisions_cover_their_tools),
    Law(gate="risk", code="rule_above_decision", check=rules_stay_below_the_declared_maximum),
    Law(gate="risk", code="destructive_without_evidence", check=destructive_decisions_rest_on_evidence),
    Law(gate="risk", code="destructive_irreversible", check=destructive_capabilities_can_be_undone, severity="warning"),
)
