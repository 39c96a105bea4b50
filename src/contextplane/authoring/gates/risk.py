"""Risk: nothing can do more than somebody agreed to, and nothing is done twice."""

import re
from collections.abc import Iterator, Mapping

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.model.context_pack.tooling_layer import Adapter, Permission

__all__ = ["LAWS"]

_IDEMPOTENCY = "idempotency_key"


def _allowed(subject: Subject) -> tuple[tuple[str, Permission, Adapter], ...]:
    """Every permission that exposes a capability of a known adapter."""
    return tuple(
        (at, permission, subject.adapters[permission.adapter_id][1])
        for at, permission in subject.permissions
        if permission.allow and permission.adapter_id in subject.adapters
    )


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
    """The approval mode of a decision is at least that of every tool it may use."""
    planned, exposed = subject.once(_planned), subject.once(_tools)
    for at, spec in subject.decisions.values():
        # Those of its task templates; without any, all that are exposed.
        tools = planned.get(spec.decision_key, exposed)
        for tool, mode in tools.items():
            if not at_most(mode, spec.approval_mode):
                yield Broken(
                    at=f"{at}/approval_mode",
                    cause=f"{spec.approval_mode} is below {tool}, which is {mode}",
                    cure=f"raise it to {mode}, or take the tool out",
                )


def _tools(subject: Subject) -> Mapping[str, ApprovalMode]:
    """The exposed tools, strictest first, with their modes. Of each mode one: it stands for all that are like it."""
    found: dict[ApprovalMode, str] = {}
    for _, permission, adapter in subject.once(_allowed):
        found.setdefault(adapter.approval_mode, f"{adapter.adapter_id}.{permission.capability}")
    return {found[mode]: mode for mode in reversed(APPROVAL_MODES) if mode in found}


def _planned(subject: Subject) -> Mapping[str, Mapping[str, ApprovalMode]]:
    """The tools that the task templates of each decision call, with their modes."""
    modes = {f"{a.adapter_id}.{one.capability}": a.approval_mode for _, one, a in subject.once(_allowed)}
    planned: dict[str, dict[str, ApprovalMode]] = {}
    for template in subject.pack.task_layer.task_templates:
        steps = {step.tool: modes[step.tool] for step in template.steps if step.tool in modes}
        planned.setdefault(template.decision_key, {}).update(steps)
    return planned


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


def argument_bounds_leave_something(subject: Subject) -> Iterator[Broken]:
    """The bounds of an argument leave at least one value, and its pattern is a regular expression."""
    places = [(f"{at}/arg_constraints", permission.arg_constraints) for at, permission in subject.permissions]
    places += [(f"{placed.at}/arg_constraints", placed.effect.arg_constraints) for placed in subject.effects]
    for at, constraints in places:
        for name, one in constraints.items():
            if one.min is not None and one.max is not None and one.min > one.max:
                yield Broken(at=f"{at}/{name}", cause=f"min {one.min} is above max {one.max}", cure="swap them")
            elif one.pattern is not None and not _compiles(one.pattern):
                yield Broken(at=f"{at}/{name}/pattern", cause="this is no regular expression", cure="mend it")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


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
    Law(gate="risk", code="argument_bounds_wrong", check=argument_bounds_leave_something),
    Law(gate="risk", code="destructive_irreversible", check=destructive_capabilities_can_be_undone, severity="warning"),
)
