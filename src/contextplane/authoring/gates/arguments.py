"""Laws of the integrity and the risk gate about the arguments of tools.

The Tool Gateway can check each call by the constraints and schemas of its tool, and what a rule constrains is there.
"""

from collections.abc import Iterator

from contextplane.authoring.conditions import PATHS, is_fact
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.authoring.tool_arguments import contradiction, refuses_objects, schema_problems
from contextplane.model.arguments import CAPABILITY_ID, ArgConstraint
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import IDEMPOTENCY_KEY
from contextplane.model.suggestion import did_you_mean
from contextplane.policy.regex_safety import pattern_problem

__all__ = ["LAWS"]

_EMPTY = ArgConstraint()


def _declared_tools(subject: Subject) -> frozenset[str]:
    """Return every capability that an adapter declares."""
    adapters = subject.pack.tooling_layer.adapter_registry
    return frozenset(f"{adapter.adapter_id}.{name}" for adapter in adapters for name in adapter.capabilities)


def scopes_name_a_capability(subject: Subject) -> Iterator[Violation]:
    """Every capability whose arguments a rule constrains is one that an adapter declares."""
    for at, placed in subject.constraints:
        if placed.capability is not None and placed.capability not in subject.compute_once(_declared_tools):
            cause = f"no adapter declares {placed.capability}, so this binds nothing"
            cure = did_you_mean(placed.capability, subject.compute_once(_declared_tools), "name a declared capability")
            yield Violation(at=at, cause=cause, cure=cure)


def scopes_are_clear(subject: Subject) -> Iterator[Violation]:
    """No argument that a rule constrains for every tool has the name of a capability, or could have one."""
    for at, placed in subject.constraints:
        if placed.capability is not None or not at.startswith("/policy_layer/"):
            continue
        if placed.argument in subject.compute_once(_declared_tools):
            yield Violation(
                at=at,
                cause=f"{placed.argument} is a capability, and is constrained as if it were an argument",
                cure="under a capability, name its arguments, and the constraint of each",
            )
        elif placed.constraint == _EMPTY and CAPABILITY_ID.search(placed.argument):
            yield Violation(
                at=at,
                cause=f"{placed.argument} is empty: it may be an argument of every tool, or a capability",
                cure="say what is constrained, or remove it",
            )


def argument_bounds_leave_something(subject: Subject) -> Iterator[Violation]:
    """The constraints of an argument leave at least one value, and its pattern can be matched fast."""
    for at, placed in subject.constraints:
        constraint = placed.constraint
        for name in _null_bounds(subject.value, at) if subject.may_hold_null else ():
            yield Violation(at=f"{at}/{name}", cause=f"{name} is null, so it bounds nothing", cure="write a value")
        if constraint.pattern is not None and (problem := pattern_problem(constraint.pattern)):
            cure = "repeat nothing that matches one text in two ways, refer to nothing and look at nothing around"
            yield Violation(at=f"{at}/pattern", cause=f"the pattern {problem}", cure=cure)
        elif problem := contradiction(constraint):
            yield Violation(at=at, cause=f"no value is left: {problem}", cure="loosen one of its constraints")


def _null_bounds(pack: Json, at: str) -> list[str]:
    """Return the bounds of the constraint at a place that are written as null, which a pack reads as none."""
    part: Json = pack
    for step in at.split("/")[1:]:
        part = part[int(step)] if isinstance(part, list) else part.get(step) if isinstance(part, dict) else None
    return [name for name, bound in part.items() if bound is None] if isinstance(part, dict) else []


def schemas_can_be_used(subject: Subject) -> Iterator[Violation]:
    """Every input_schema and output_schema is a self-contained JSON Schema of 2020-12 with fast patterns."""
    for at, placed, field, schema in subject.capability_schemas:
        for place, problem in schema_problems(schema):
            cause = f"the {field} of {placed.capability_id} {problem}"
            yield Violation(at=f"{at}{place}", cause=cause, cure="fix it: it cannot check any call")


def arguments_are_objects(subject: Subject) -> Iterator[Violation]:
    """Every input_schema takes an object at its root: the arguments of a call are one, and nothing else."""
    for placed in subject.capability_specs:
        schema = placed.spec.input_schema
        if schema and (place := refuses_objects(schema)):
            yield Violation(
                at=f"{placed.at}/input_schema{place}",
                cause=f"the input_schema of {placed.capability_id} refuses every object; no call can keep it",
                cure="write type: object, and what is given now as one of its properties",
            )


def bounds_refer_to_known_facts(subject: Subject) -> Iterator[Violation]:
    """Every fact that a bound of an argument is the value of is one that a run can have."""
    for at, placed, name, reference in subject.references:
        if not is_fact(reference.path):
            cause = f"{placed.argument} is bounded by {reference.path}, which no run has"
            yield Violation(at=f"{at}/{name}/var", cause=cause, cure=PATHS)


def bounds_by_facts_are_required(subject: Subject) -> Iterator[Violation]:
    """An argument that must equal a fact is required: a call without it would keep the constraint."""
    owners = {f"{at}/arg_constraints": permission for at, permission in subject.permissions}
    for at, placed, name, _ in subject.references:
        owner = owners.get(at.removesuffix(pointer([placed.argument])))
        tool = placed.capability if owner is None else f"{owner.adapter_id}.{owner.capability}"
        required = placed.constraint.required or _is_required_by_schema(subject, tool, placed.argument)
        if name == "equals" and not required:
            cause = f"{placed.argument} must equal a fact, and a call may leave it out"
            yield Violation(at=at, cause=cause, cure="add required: true, unless the tool takes the same without it")


def _is_required_by_schema(subject: Subject, tool: str | None, argument: str) -> bool:
    """Whether the arguments or the input_schema of a capability require this argument of every call."""
    adapter_id, _, capability = (tool or "").rpartition(".")
    if adapter_id not in subject.adapters:
        return False
    schema = subject.adapters[adapter_id][1].schema_of(capability) or {}
    required = schema.get("required")
    return isinstance(required, list) and argument in required


def arguments_are_described_once(subject: Subject) -> Iterator[Violation]:
    """No capability has both arguments and an input_schema: two descriptions of one thing come to differ."""
    for placed in subject.capability_specs:
        if placed.spec.arguments is not None and placed.spec.input_schema is not None:
            yield Violation(
                at=f"{placed.at}/arguments",
                cause=f"{placed.capability_id} has an input_schema as well",
                cure="keep arguments, or the input_schema where they do not say enough",
            )


def constrained_arguments_are_declared(subject: Subject) -> Iterator[Violation]:
    """Every constrained argument, and every one of a step, is among the arguments of its capability."""
    declared = {
        # The runtime supplies the key.
        placed.capability_id: {IDEMPOTENCY_KEY, *placed.spec.arguments}
        for placed in subject.capability_specs
        if placed.spec.arguments is not None
    }
    for at, tool, argument in _named_arguments(subject) if declared else ():
        name = argument.partition(".")[0]
        if tool in declared and name not in declared[tool]:
            cause = f"{tool} has no argument {name}"
            yield Violation(at=at, cause=cause, cure=did_you_mean(name, declared[tool], "declare it in arguments"))


def _named_arguments(subject: Subject) -> Iterator[tuple[str, str, str]]:
    """Yield each argument that is constrained for one capability or given to one: place, capability, name."""
    for at, permission in subject.permissions:
        for name in permission.arg_constraints:
            yield f"{at}/arg_constraints/{name}", f"{permission.adapter_id}.{permission.capability}", name
    for at, placed in subject.constraints:
        if placed.capability is not None:
            yield at, placed.capability, placed.argument
    for at, template in subject.templates:
        for s, step in enumerate(template.steps):
            yield from ((f"{at}/steps/{s}/params{pointer([name])}", step.tool, name) for name in step.params)


def sums_can_be_made(subject: Subject) -> Iterator[Violation]:
    """An argument whose sum is limited is a number of 0 or more in every call."""
    for at, permission in subject.limited_permissions:
        for n, limit in enumerate(permission.limits):
            name = limit.sum_of
            if name is None:
                continue
            constraint = permission.arg_constraints.get(name, _EMPTY)
            required = constraint.required and not constraint.unless_approved
            tool = f"{permission.adapter_id}.{permission.capability}"
            place = f"{at}/limits/{n}/sum_of"
            if not required and not _is_required_by_schema(subject, tool, name):
                yield Violation(
                    at=place,
                    cause=f"a call may leave {name} out",
                    cure="constrain it with required: true, without unless_approved",
                )
            elif not _is_never_negative(constraint):
                yield Violation(
                    at=place,
                    cause=f"a negative {name} would lower the sum",
                    cure="constrain it with a min of 0 or more, without unless_approved",
                )


def _is_never_negative(constraint: ArgConstraint) -> bool:
    """Whether the argument is at least 0, and no approval lifts that."""
    return not constraint.unless_approved and isinstance(constraint.min, int | float) and constraint.min >= 0


def limits_are_said_once(subject: Subject) -> Iterator[Violation]:
    """No permission has two limits of one kind over one period: the lower one holds."""
    for at, permission in subject.limited_permissions:
        seen: set[tuple[str, str | None, str | None]] = set()
        for n, limit in enumerate(permission.limits):
            kind = (limit.per, limit.period, limit.sum_of)
            if kind in seen:
                cause = "there is a limit of this kind over this period already, and the lower one holds"
                yield Violation(at=f"{at}/limits/{n}", cause=cause, cure="keep the one that is meant")
            seen.add(kind)


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="integrity", code="argument_scope_unknown", check=scopes_name_a_capability, about="constraints"),
    Law(gate="integrity", code="argument_scope_unclear", check=scopes_are_clear, about="constraints"),
    Law(
        gate="integrity", code="arguments_described_twice", check=arguments_are_described_once, about="capability_specs"
    ),
    Law(
        gate="integrity", code="argument_undeclared", check=constrained_arguments_are_declared, about="capability_specs"
    ),
    Law(gate="risk", code="call_limit_unsummable", check=sums_can_be_made, about="limited_permissions"),
    Law(gate="risk", code="call_limit_repeated", check=limits_are_said_once, about="limited_permissions"),
    Law(gate="policy", code="argument_fact_unknown", check=bounds_refer_to_known_facts, about="references"),
    Law(
        gate="risk",
        code="argument_omittable",
        check=bounds_by_facts_are_required,
        severity="warning",
        about="references",
    ),
    Law(gate="risk", code="argument_bounds_wrong", check=argument_bounds_leave_something, about="constraints"),
    Law(gate="integrity", code="tool_schema_invalid", check=schemas_can_be_used, about="capability_specs"),
    Law(gate="integrity", code="tool_schema_without_object", check=arguments_are_objects, about="capability_specs"),
)
