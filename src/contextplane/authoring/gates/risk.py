"""The risk gate: no tool can do more than was approved, and no write is done twice.

Also: the parameters of every step of a task template can be computed and are allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from contextplane.authoring.conditions import PATHS, is_fact
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject
from contextplane.authoring.tool_arguments import literal_bound
from contextplane.model.context_pack import TaskStep, TaskTemplate
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import Adapter, CapabilitySpec, Permission
from contextplane.model.suggestion import did_you_mean
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.policy.logic.expression import logic_problems, variables
from contextplane.policy.regex_safety import pattern_problem

__all__ = ["DECISION_LAWS", "LAWS"]

_IDEMPOTENCY = "idempotency_key"


def tools_are_below_the_ceiling(subject: Subject) -> Iterator[Violation]:
    """No exposed tool has an approval mode above what the environment allows."""
    ceiling = subject.environment.approval_ceiling
    for tool in subject.exposed_tools if ceiling is not None else ():
        if ceiling is not None and not at_most(tool.mode, ceiling):
            yield Violation(
                at=f"{tool.at}/capability",
                cause=f"{tool.capability_id} is {tool.mode}, above {ceiling}",
                cure="remove the permission, or request a higher ceiling",
            )


def destructive_tools_have_a_gate(subject: Subject) -> Iterator[Violation]:
    """Every exposed capability that is destructive names an approval gate."""
    for tool in subject.writing_tools:
        if tool.mode == "destructive" and not tool.permission.gate_ids:
            yield Violation(
                at=tool.at,
                cause=f"{tool.capability_id} is destructive and names no approval gate",
                cure="name an approval gate in requires_approval_gate",
            )


def writes_require_idempotency(subject: Subject) -> Iterator[Violation]:
    """Every exposed capability that can change something needs an idempotency key, so a retry is harmless."""
    for tool in subject.writing_tools:
        constraint = tool.permission.arg_constraints.get(_IDEMPOTENCY)
        spec = tool.adapter.capability_specs.get(tool.permission.capability)
        # A key that an approval lifts may be absent, and one of a closed set is not new for each call.
        has_key = (
            constraint is not None and constraint.required and not constraint.unless_approved and not constraint.enum
        ) and constraint.equals is None
        if not has_key and (spec is None or not spec.idempotency_header):
            yield Violation(
                at=f"{tool.at}/arg_constraints",
                cause=f"{tool.capability_id} can change something and needs no idempotency key",
                cure=f'add "{_IDEMPOTENCY}": {{"required": true}} to its arg_constraints',
            )


def decisions_cover_their_tools(subject: Subject) -> Iterator[Violation]:
    """A decision has at least the approval mode of every tool it may use, and every tool such a decision."""
    acting = subject.compute_once(_acting_tools)
    if all(
        at_most(mode, spec.approval_mode) for mode in set(acting.values()) for _, spec in subject.decisions.values()
    ):
        return
    reported: set[tuple[str, ApprovalMode]] = set()
    for tool, mode, key in (*_planned_above(subject), *_above_all(subject)):
        at, spec = subject.decisions[key]
        # One tool of each mode stands for all of them.
        if (key, mode) not in reported:
            reported.add((key, mode))
            yield Violation(
                at=f"{at}/approval_mode",
                cause=f"{spec.approval_mode} is below {tool}, which is {mode}",
                cure=f"raise it to {mode}, or remove the tool",
            )


def _acting_tools(subject: Subject) -> Mapping[str, ApprovalMode]:
    """Map each exposed tool that can do more than read to its approval mode."""
    return {tool.capability_id: tool.mode for tool in subject.writing_tools}


def _planned_above(subject: Subject) -> Iterator[tuple[str, ApprovalMode, str]]:
    """Yield each tool that a task template calls and that is above its decision: tool, mode, decision."""
    acting = subject.compute_once(_acting_tools)
    for _, template in subject.templates:
        if template.decision_key not in subject.decisions:
            continue
        ceiling = subject.decisions[template.decision_key][1].approval_mode
        for step in template.steps:
            if step.tool in acting and not at_most(acting[step.tool], ceiling):
                yield step.tool, acting[step.tool], template.decision_key


def _above_all(subject: Subject) -> Iterator[tuple[str, ApprovalMode, str]]:
    """Yield each tool that is above every decision that could allow it: tool, mode, strictest decision.

    A tool belongs to the decisions that share its approval gate, or whose task templates call it; a tool that belongs
    to none, to every decision that a rule or a task template leads to.
    """
    shared, planned = subject.compute_once(_decisions_by_gate), _decisions_by_tool(subject)
    bound = {placed.rule.decision_binding for placed in subject.rules}
    bound |= {template.decision_key for _, template in subject.templates}
    reached = [key for key in subject.decisions if key in bound] or list(subject.decisions)
    for exposed in subject.exposed_tools:
        tool, mode = exposed.capability_id, exposed.mode
        own = planned.get(tool, set()).union(*(shared.get(gate, set()) for gate in exposed.permission.gate_ids))
        could = [key for key in subject.decisions if key in own] if own else reached
        strictest = max(could, key=lambda key: APPROVAL_MODES.index(subject.decisions[key][1].approval_mode))
        if not at_most(mode, subject.decisions[strictest][1].approval_mode):
            yield tool, mode, strictest


def _decisions_by_gate(subject: Subject) -> Mapping[str, set[str]]:
    """Map each approval gate to the decisions whose rules require it."""
    decisions: dict[str, set[str]] = {}
    for placed in subject.effects:
        key = placed.of.rule.decision_binding
        for gate in placed.effect.gate_ids if key is not None and key in subject.decisions else ():
            decisions.setdefault(gate, set()).add(key or "")
    return decisions


def _decisions_by_tool(subject: Subject) -> Mapping[str, set[str]]:
    """Map each tool to the decisions whose task templates call it."""
    decisions: dict[str, set[str]] = {}
    for _, template in subject.templates:
        for step in template.steps if template.decision_key in subject.decisions else ():
            decisions.setdefault(step.tool, set()).add(template.decision_key)
    return decisions


def rules_stay_below_the_declared_maximum(subject: Subject) -> Iterator[Violation]:
    """No rule asks for an approval mode above that of the decision it is bound to."""
    for placed in subject.effects:
        mode = placed.effect.approval_mode
        _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
        if mode is not None and spec is not None and not at_most(mode, spec.approval_mode):
            yield Violation(
                at=f"{placed.at}/approval_mode",
                cause=f"{mode} is above {spec.decision_key}, whose maximum is {spec.approval_mode}",
                cure=f"lower it to {spec.approval_mode}, or raise the decision's",
            )


def destructive_decisions_rest_on_evidence(subject: Subject) -> Iterator[Violation]:
    """Every destructive decision requires evidence, itself or by a rule: an approval freezes its evidence."""
    for key, (at, spec) in subject.decisions.items():
        if spec.approval_mode != APPROVAL_MODES[-1] or spec.required_evidence:
            continue
        if not any(effect.effect.requires for effect in subject.effects if effect.of.rule.decision_binding == key):
            yield Violation(
                at=f"{at}/required_evidence",
                cause=f"{key} is destructive and requires no evidence: its approver would see none",
                cure="name what must be known before, such as policy_eval",
            )


def destructive_capabilities_can_be_undone(subject: Subject) -> Iterator[Violation]:
    """A destructive capability that is described to the Tool Gateway says how it is reversed."""
    for placed in subject.capability_specs:
        spec = placed.spec
        if spec.reversal_op is not None or placed.adapter.mode_of(placed.capability) != APPROVAL_MODES[-1]:
            continue
        # What only a model reads says nothing of how the gateway calls it.
        for_gateway = replace(spec, approval_mode=None, description=None, arguments=None)
        if for_gateway != CapabilitySpec() or spec == CapabilitySpec():
            yield Violation(
                at=placed.at,
                cause=f"{placed.capability_id} is destructive and names no reversal_op",
                cure="name the capability that reverses it, or write in the runbook that none does",
            )


_APPROVAL_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="risk", code="tool_above_ceiling", check=tools_are_below_the_ceiling, about="described_environment"),
    Law(gate="risk", code="destructive_without_gate", check=destructive_tools_have_a_gate, about="writing_tools"),
    Law(gate="risk", code="write_without_idempotency", check=writes_require_idempotency, about="writing_tools"),
    Law(gate="risk", code="decision_below_tool", check=decisions_cover_their_tools, about="writing_tools"),
    Law(gate="risk", code="rule_above_decision", check=rules_stay_below_the_declared_maximum),
    Law(gate="risk", code="destructive_without_evidence", check=destructive_decisions_rest_on_evidence),
    Law(
        gate="risk",
        code="destructive_irreversible",
        check=destructive_capabilities_can_be_undone,
        severity="warning",
        about="capability_specs",
    ),
)


# --- capabilities ---


def nothing_is_understated(subject: Subject) -> Iterator[Violation]:
    """A capability of one endpoint has one approval mode in all adapters: a lower one would bypass gates."""
    if len({adapter.endpoint_ref for _, adapter in subject.adapters.values()}) == len(subject.adapters):
        return
    highest: dict[tuple[str, str], Adapter] = {}
    for _, adapter in subject.adapters.values():
        for name in adapter.capabilities:
            other = highest.setdefault((adapter.endpoint_ref, name), adapter)
            if not at_most(adapter.mode_of(name), other.mode_of(name)):
                highest[adapter.endpoint_ref, name] = adapter
    for at, adapter in subject.adapters.values():
        for name in adapter.capabilities:
            other = highest[adapter.endpoint_ref, name]
            if other.mode_of(name) != adapter.mode_of(name):
                yield Violation(
                    at=_mode_place(at, adapter, name),
                    cause=f"{adapter.adapter_id}.{name} is {adapter.mode_of(name)}, and {other.adapter_id} declares "
                    f"it {other.mode_of(name)} at the same endpoint",
                    cure=f"declare it in one adapter, as {other.mode_of(name)}",
                )


def _mode_place(at: str, adapter: Adapter, capability: str) -> str:
    """The place of the approval mode that holds for a capability of the adapter at `at`."""
    spec = adapter.capability_specs.get(capability)
    if spec is None or spec.approval_mode is None:
        return f"{at}/approval_mode"
    return f"{at}/capability_specs/{capability}/approval_mode"


def capabilities_stay_below_their_adapter(subject: Subject) -> Iterator[Violation]:
    """No capability has an approval mode above that of its adapter, which is the highest of all of them."""
    for placed in subject.capability_specs:
        mode, highest = placed.spec.approval_mode, placed.adapter.approval_mode
        if mode is not None and not at_most(mode, highest):
            yield Violation(
                at=f"{placed.at}/approval_mode",
                cause=f"{placed.capability_id} is {mode}, above its adapter, which is {highest}",
                cure=f"lower it to {highest}, or raise the adapter's",
            )


def nothing_is_its_own_reversal(subject: Subject) -> Iterator[Violation]:
    """The reversal_op of a capability is another capability: doing the same again undoes nothing."""
    for placed in subject.capability_specs:
        if placed.spec.reversal_op == placed.capability:
            yield Violation(
                at=f"{placed.at}/reversal_op",
                cause=f"{placed.capability_id} is named as its own reversal",
                cure="name the capability that undoes it, or leave it out",
            )


_TOOL_LAWS: tuple[Law[Subject], ...] = (
    Law(
        gate="risk",
        code="capability_above_adapter",
        check=capabilities_stay_below_their_adapter,
        about="capability_specs",
    ),
    Law(gate="risk", code="capability_understated", check=nothing_is_understated),
    Law(gate="risk", code="reversal_circular", check=nothing_is_its_own_reversal, about="capability_specs"),
)


# --- task templates ---

_RESULTS = "results."
_GIVEN_BY_GATEWAY = frozenset({"idempotency_key"})
"""Arguments that no task template writes: the Tool Gateway makes one for each call."""


def parameters_can_be_computed(subject: DecisionDocument) -> Iterator[Violation]:
    """Every expression in a parameter is JSONLogic over facts and over results of steps that it waits for."""
    for at, template in subject.templates:
        if any(step.params for step in template.steps):
            yield from _parameter_violations(at, template)


def _parameter_violations(at: str, template: TaskTemplate) -> Iterator[Violation]:
    for s, step in enumerate(template.steps):
        for place, expression in _expressions(f"{at}/steps/{s}/params", step.params):
            problems = logic_problems(expression)
            for problem in problems:
                cause = f"the parameter of the step {step.id} {problem.message}"
                yield Violation(at=place + problem.at, cause=cause, cure="an object with one key is JSONLogic: fix it")
            for path in () if problems else sorted(variables(expression)):
                yield from _path_violations(place, path, step)


def _path_violations(place: str, path: str, step: TaskStep) -> Iterator[Violation]:
    if not path.startswith(_RESULTS):
        if not is_fact(path):
            cause = f"the step {step.id} reads {path[:80]!a}, which no run has"
            yield Violation(at=place, cause=cause, cure=f"{PATHS}, or with results.<step>")
        return
    awaited = path.split(".")[1]
    if awaited not in step.depends_on:
        cause = f"the step {step.id} reads the result of {awaited[:80]!a}, for which it does not wait"
        yield Violation(at=place, cause=cause, cure=did_you_mean(awaited, step.depends_on, "name it in depends_on"))


def _expressions(at: str, value: object) -> Iterator[tuple[str, Json]]:
    """Yield every expression in the parameters after its place. Any object with one key is an expression."""
    todo: list[tuple[str, Any]] = [(f"{at}{pointer([name])}", part) for name, part in _members(value)]
    while todo:
        place, part = todo.pop()
        if isinstance(part, Mapping) and len(part) == 1:
            yield place, dict(part)
        else:
            todo += [(f"{place}{pointer([name])}", member) for name, member in _members(part)]


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from enumerate(value)


def parameters_keep_the_constraints(subject: Subject) -> Iterator[Violation]:
    """No step omits an argument that its permission requires, or gives one a value that it forbids."""
    if not subject.templates:
        return
    permissions = {
        f"{permission.adapter_id}.{permission.capability}": permission
        for _, permission in subject.permissions
        if permission.allow
    }
    for at, template in subject.templates:
        for s, step in enumerate(template.steps):
            if step.tool in permissions:
                yield from _constraint_violations(f"{at}/steps/{s}", step, permissions[step.tool])


def _constraint_violations(at: str, step: TaskStep, permission: Permission) -> Iterator[Violation]:
    # Imported here: few packs hold task templates, and the checks of calls take a while to load.
    from contextplane.policy.arguments import violations  # noqa: PLC0415

    for name, constraint in permission.arg_constraints.items():
        # A computed value is checked at run time, an approval may lift a constraint, and another law reports patterns.
        if _is_computed(step.params, name) or constraint.unless_approved:
            continue
        if constraint.pattern is not None and pattern_problem(constraint.pattern):
            continue
        bound = literal_bound(name, constraint, origin=permission.permission_id, at=at)
        for violation in violations((bound,), step.params, approved=False, changes=True):
            if violation.broken != "required" or name not in _GIVEN_BY_GATEWAY:
                place = (
                    f"{at}/params"
                    if violation.broken == "required"
                    else f"{at}/params{pointer(_argument_path(step.params, name))}"
                )
                cause = f"{name} of the step {step.id} {violation.message}, by {permission.permission_id}"
                yield Violation(at=place, cause=cause, cure=f"give {name} a value that is allowed")


def _is_computed(params: Mapping[str, Any], name: str) -> bool:
    """Whether an argument, or a part around it, is an expression."""
    value: Any = params
    for step in _argument_path(params, name):
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
        if isinstance(value, Mapping) and len(value) == 1:
            return True
    return False


def _argument_path(params: Mapping[str, Any], name: str) -> list[str]:
    """Return the steps to an argument: its name, or the parts of its name between dots."""
    return [name] if name in params else name.split(".")


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="integrity", code="task_parameter_invalid", check=parameters_can_be_computed, about="templates"),
)
"""The laws that hold for a decision catalog as well."""

_PLAN_LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="risk", code="task_argument_forbidden", check=parameters_keep_the_constraints, about="templates"),
)

LAWS: tuple[Law[Subject], ...] = (*_PLAN_LAWS, *_APPROVAL_LAWS, *_TOOL_LAWS)
