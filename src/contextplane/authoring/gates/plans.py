"""Plans: every parameter of a step can be computed, and what stands there outright is what the tool may be given."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextplane.authoring.deciding import Deciding
from contextplane.authoring.facts import PATHS, is_fact
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.model.canonical import Json
from contextplane.model.context_pack.task_layer import TaskStep, TaskTemplate
from contextplane.model.context_pack.tooling_layer import Permission
from contextplane.model.pointer import pointer
from contextplane.policy.logic import logic_problems, variables
from contextplane.policy.patterns import pattern_problem

__all__ = ["DECIDING_LAWS", "LAWS"]

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
    permissions = {f"{one.adapter_id}.{one.capability}": one for _, one in subject.permissions if one.allow}
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
        for one in violations((bound,), step.params, approved=False, changes=True):
            if one.broken != "required" or name not in _GIVEN_BY_GATEWAY:
                place = f"{at}/params" if one.broken == "required" else f"{at}/params{pointer(_way(step.params, name))}"
                cause = f"{name} of the step {step.id} {one.message}, by {permission.permission_id}"
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

LAWS: tuple[Law[Subject], ...] = (
    *DECIDING_LAWS,
    Law(gate="risk", code="task_argument_forbidden", check=parameters_keep_the_constraints),
)
