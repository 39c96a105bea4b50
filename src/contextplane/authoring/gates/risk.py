"""Risk: nothing can do more than somebody agreed to, and nothing is done twice.

What a pack says of the arguments and the schemas of its tools, which the Tool Gateway checks each call by.

Plans: every parameter of a step can be computed, and what stands there outright is what the tool may be given.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextplane.authoring.conditions import PATHS, is_fact
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Deciding, Subject
from contextplane.authoring.suggest import nearest
from contextplane.authoring.tool_arguments import leaves_nothing, refuses_objects, schema_problems
from contextplane.model.context_pack import Adapter, Permission, TaskStep, TaskTemplate
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.policy.logic.expression import logic_problems, variables
from contextplane.policy.regex_safety import pattern_problem

__all__ = ["DECIDING_LAWS", "LAWS"]

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
        if not any(effect.effect.requires for effect in subject.effects if effect.of.rule.decision_binding == key):
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


_APPROVAL_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="risk", code="tool_above_ceiling", check=tools_are_below_the_ceiling),
    Law(gate="risk", code="destructive_without_gate", check=destructive_tools_have_a_gate),
    Law(gate="risk", code="write_without_idempotency", check=writes_require_idempotency),
    Law(gate="risk", code="decision_below_tool", check=decisions_cover_their_tools),
    Law(gate="risk", code="rule_above_decision", check=rules_stay_below_the_declared_maximum),
    Law(gate="risk", code="destructive_without_evidence", check=destructive_decisions_rest_on_evidence),
    Law(gate="risk", code="destructive_irreversible", check=destructive_capabilities_can_be_undone, severity="warning"),
)


def argument_bounds_leave_something(subject: Subject) -> Iterator[Broken]:
    """The constraints of an argument leave at least one value, and its pattern is one that is matched fast."""
    places = [(at, permission.arg_constraints) for at, permission in subject.permissions]
    places += [
        (effect.at, effect.effect.arg_constraints) for effect in subject.effects if effect.effect.arg_constraints
    ]
    for at, constraints in places:
        for name, arg_constraint in constraints.items():
            place = f"{at}/arg_constraints/{name}"
            if arg_constraint.pattern is not None and (problem := pattern_problem(arg_constraint.pattern)):
                cure = "repeat nothing that matches one text in two ways, refer to nothing and look at nothing around"
                yield Broken(at=f"{place}/pattern", cause=f"the pattern {problem}", cure=cure)
            elif problem := leaves_nothing(arg_constraint):
                yield Broken(at=place, cause=f"no value is left: {problem}", cure="loosen one of its constraints")


def schemas_can_be_used(subject: Subject) -> Iterator[Broken]:
    """Every input_schema and output_schema is a JSON Schema of 2020-12, complete in itself, with fast patterns."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            for field, schema in (("input_schema", spec.input_schema), ("output_schema", spec.output_schema)):
                for place, problem in schema_problems(schema) if schema else ():
                    yield Broken(
                        at=f"{at}/capability_specs/{name}/{field}{place}",
                        cause=f"the {field} of {adapter.adapter_id}.{name} {problem}",
                        cure="mend it: no call could be checked by it",
                    )


def arguments_are_objects(subject: Subject) -> Iterator[Broken]:
    """Every input_schema takes an object at its root: the arguments of a call are one, and nothing else."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            if spec.input_schema and (place := refuses_objects(spec.input_schema)):
                yield Broken(
                    at=f"{at}/capability_specs/{name}/input_schema{place}",
                    cause=f"the input_schema of {adapter.adapter_id}.{name} refuses every object; no call can keep it",
                    cure="write type: object, and what is given now as one of its properties",
                )


def nothing_is_understated(subject: Subject) -> Iterator[Broken]:
    """What one endpoint can do has one approval mode, by whichever adapter: a lower one would pass by every gate."""
    if len({adapter.endpoint_ref for _, adapter in subject.adapters.values()}) == len(subject.adapters):
        return
    highest = {}
    for _, adapter in sorted(
        subject.adapters.values(), key=lambda adapter: APPROVAL_MODES.index(adapter[1].approval_mode)
    ):
        highest.update({(adapter.endpoint_ref, name): adapter for name in adapter.capabilities})
    for at, adapter in subject.adapters.values():
        for name in adapter.capabilities:
            other = highest[adapter.endpoint_ref, name]
            if other.approval_mode != adapter.approval_mode:
                yield Broken(
                    at=f"{at}/approval_mode",
                    cause=f"{adapter.adapter_id}.{name} is {adapter.approval_mode}, and {other.adapter_id} declares "
                    f"it {other.approval_mode} at the same endpoint",
                    cure=f"declare it in one adapter, as {other.approval_mode}",
                )


def nothing_is_its_own_reversal(subject: Subject) -> Iterator[Broken]:
    """The reversal_op of a capability is another capability: doing the same again undoes nothing."""
    for at, adapter in subject.adapters.values():
        for name, spec in adapter.capability_specs.items():
            if spec.reversal_op == name:
                yield Broken(
                    at=f"{at}/capability_specs/{name}/reversal_op",
                    cause=f"{adapter.adapter_id}.{name} is named as its own reversal",
                    cure="name the capability that undoes it, or leave it out",
                )


_TOOL_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="risk", code="argument_bounds_wrong", check=argument_bounds_leave_something),
    Law(gate="risk", code="capability_understated", check=nothing_is_understated),
    Law(gate="risk", code="reversal_circular", check=nothing_is_its_own_reversal),
    Law(gate="integrity", code="tool_schema_invalid", check=schemas_can_be_used),
    Law(gate="integrity", code="tool_schema_without_object", check=arguments_are_objects),
)


_RESULTS = "results."
_GIVEN_BY_GATEWAY = frozenset({"idempotency_key"})
"""Arguments that no plan writes: the Tool Gateway makes one for each call."""


def parameters_can_be_computed(subject: Deciding) -> Iterator[Broken]:
    """Every expression in a parameter is JSONLogic over the facts and over results of steps that it waits for."""
    for at, template in subject.templates:
        if any(step.params for step in template.steps):
            yield from _computed(at, template)


def _computed(at: str, template: TaskTemplate) -> Iterator[Broken]:
    for s, step in enumerate(template.steps):
        for place, expression in _expressions(f"{at}/steps/{s}/params", step.params):
            problems = logic_problems(expression)
            for problem in problems:
                cause = f"the parameter of the step {step.id} {problem.message}"
                yield Broken(at=place + problem.at, cause=cause, cure="an object with one key is JSONLogic: mend it")
            for path in () if problems else sorted(variables(expression)):
                yield from _readable(place, path, step)


def _readable(place: str, path: str, step: TaskStep) -> Iterator[Broken]:
    if not path.startswith(_RESULTS):
        if not is_fact(path):
            cause = f"the step {step.id} reads {path[:80]!a}, which no run has"
            yield Broken(at=place, cause=cause, cure=f"{PATHS}, or with results.<step>")
        return
    wanted = path.split(".")[1]
    if wanted not in step.depends_on:
        cause = f"the step {step.id} reads the result of {wanted[:80]!a}, for which it does not wait"
        yield Broken(at=place, cause=cause, cure=nearest(wanted, step.depends_on, "name it in depends_on"))


def _expressions(at: str, value: object) -> Iterator[tuple[str, Json]]:
    """Every expression in the parameters with its place. An object with one key is one, whatever the key."""
    todo: list[tuple[str, Any]] = [(f"{at}{pointer([name])}", one) for name, one in _members(value)]
    while todo:
        place, one = todo.pop()
        if isinstance(one, Mapping) and len(one) == 1:
            yield place, dict(one)
        else:
            todo += [(f"{place}{pointer([name])}", part) for name, part in _members(one)]


def _members(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from enumerate(value)


def parameters_keep_the_constraints(subject: Subject) -> Iterator[Broken]:
    """No step leaves out an argument that its permission requires, or gives one a value that its permission forbids."""
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
                yield from _forbidden(f"{at}/steps/{s}", step, permissions[step.tool])


def _forbidden(at: str, step: TaskStep, permission: Permission) -> Iterator[Broken]:
    # Here and not above: few packs hold plans, and what checks calls takes a while to load.
    from contextplane.policy.arguments import violations  # noqa: PLC0415
    from contextplane.policy.decision import ArgumentBound  # noqa: PLC0415

    for name, constraint in permission.arg_constraints.items():
        # What is computed is seen when it is, what an approval lifts may be so, and a bad pattern is told elsewhere.
        if _is_computed(step.params, name) or constraint.unless_approved:
            continue
        if constraint.pattern is not None and pattern_problem(constraint.pattern):
            continue
        bound = ArgumentBound(argument=name, constraint=constraint, origin=permission.permission_id, at=at)
        for violation in violations((bound,), step.params, approved=False, changes=True):
            if violation.broken != "required" or name not in _GIVEN_BY_GATEWAY:
                place = (
                    f"{at}/params"
                    if violation.broken == "required"
                    else f"{at}/params{pointer(_way(step.params, name))}"
                )
                cause = f"{name} of the step {step.id} {violation.message}, by {permission.permission_id}"
                yield Broken(at=place, cause=cause, cure=f"give {name} a value that is allowed")


def _is_computed(params: Mapping[str, Any], name: str) -> bool:
    """Whether an argument, or what it is a part of, is an expression."""
    value: Any = params
    for step in _way(params, name):
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
        if isinstance(value, Mapping) and len(value) == 1:
            return True
    return False


def _way(params: Mapping[str, Any], name: str) -> list[str]:
    """Where an argument is: under its name, or where the dots in its name lead."""
    return [name] if name in params else name.split(".")


DECIDING_LAWS: tuple[Law[Deciding], ...] = (
    Law(gate="integrity", code="task_parameter_invalid", check=parameters_can_be_computed),
)
"""What holds in a catalog as well."""

_PLAN_LAWS: tuple[Law[Subject], ...] = (
    *DECIDING_LAWS,
    Law(gate="risk", code="task_argument_forbidden", check=parameters_keep_the_constraints),
)

LAWS: tuple[Law[Subject], ...] = (*_PLAN_LAWS, *_APPROVAL_LAWS, *_TOOL_LAWS)
