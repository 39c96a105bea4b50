"""What a pack says of the arguments and the schemas of its tools, which the Tool Gateway checks each call by."""

from collections.abc import Iterator

from contextplane.authoring.argument_bounds import leaves_nothing
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject
from contextplane.authoring.tool_schemas import refuses_objects, schema_problems
from contextplane.model.context_pack.terms import APPROVAL_MODES
from contextplane.policy.patterns import pattern_problem

__all__ = ["LAWS"]


def argument_bounds_leave_something(subject: Subject) -> Iterator[Broken]:
    """The constraints of an argument leave at least one value, and its pattern is one that is matched fast."""
    places = [(at, permission.arg_constraints) for at, permission in subject.permissions]
    places += [(one.at, one.effect.arg_constraints) for one in subject.effects if one.effect.arg_constraints]
    for at, constraints in places:
        for name, one in constraints.items():
            place = f"{at}/arg_constraints/{name}"
            if one.pattern is not None and (problem := pattern_problem(one.pattern)):
                cure = "repeat nothing that matches one text in two ways, refer to nothing and look at nothing around"
                yield Broken(at=f"{place}/pattern", cause=f"the pattern {problem}", cure=cure)
            elif problem := leaves_nothing(one):
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
    for _, adapter in sorted(subject.adapters.values(), key=lambda one: APPROVAL_MODES.index(one[1].approval_mode)):
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


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="risk", code="argument_bounds_wrong", check=argument_bounds_leave_something),
    Law(gate="risk", code="capability_understated", check=nothing_is_understated),
    Law(gate="risk", code="reversal_circular", check=nothing_is_its_own_reversal),
    Law(gate="integrity", code="tool_schema_invalid", check=schemas_can_be_used),
    Law(gate="integrity", code="tool_schema_without_object", check=arguments_are_objects),
)
