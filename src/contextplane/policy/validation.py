"""Problems of a policy layer that make it impossible to enforce, each with its place.

A policy or a tooling layer that a run could not enforce is refused before the run.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.arguments import ArgConstraints, RuleConstraints, placed_constraints
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import PolicyLayer
from contextplane.model.value import Value
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.guardrails import placed_guardrails
from contextplane.policy.logic.expression import computed_names, logic_problems
from contextplane.policy.regex_safety import pattern_problem
from contextplane.policy.rules import placed_rules

__all__ = [
    "AmbiguousPart",
    "ConditionUnusable",
    "GateUnknown",
    "ModeAboveAdapter",
    "PatternUnusable",
    "PolicyProblem",
    "PolicyRefused",
    "ScopeUnclear",
    "ScopeUnusable",
    "duplicate_ids",
    "pattern_problems",
    "policy_problems",
    "refuse_all",
]


class PolicyRefused(ContextPlaneError):
    """A policy that cannot be held to.

    The error is that of its first problem; `details.problems` lists all of them.
    """

    code: ClassVar[str] = "policy_refused"
    family: ClassVar[Family] = "refused"


class ConditionUnusable(PolicyRefused):
    """A condition that cannot be evaluated safely.

    It has an unknown operator, is too large or too deep, or computes what it reads.
    """

    code: ClassVar[str] = "policy_condition_unusable"


class ScopeUnusable(PolicyRefused):
    """A rule that would never take effect.

    It applies by something that no run is matched by, or to nothing.
    """

    code: ClassVar[str] = "policy_scope_unusable"


class GateUnknown(PolicyRefused):
    """A rule or a permission asks for an approval gate that is not declared: it could never be approved."""

    code: ClassVar[str] = "policy_gate_unknown"


class PatternUnusable(PolicyRefused):
    """The pattern of an argument is no regular expression, or one that could take for ever."""

    code: ClassVar[str] = "policy_pattern_unusable"


class ScopeUnclear(PolicyRefused):
    """A rule constrains an argument with the name of a capability: which of the two is meant is unclear."""

    code: ClassVar[str] = "policy_argument_scope_unclear"


class ModeAboveAdapter(PolicyRefused):
    """The approval mode of a capability is above its adapter's, which is the most that any of them can do."""

    code: ClassVar[str] = "policy_mode_above_adapter"


class AmbiguousPart(PolicyRefused):
    """Two parts have one id, so that a verdict could not say which of them it is about."""

    code: ClassVar[str] = "policy_part_ambiguous"


class PolicyProblem(Value, frozen=True):
    """One problem: its error class, its place as a JSON Pointer into the pack, message and hint."""

    refusal: type[PolicyRefused]
    at: str
    message: str
    hint: str


def refuse_all(problems: Sequence[PolicyProblem]) -> None:
    """Raise the first problem, with all of them in its details; do nothing when there is none."""
    if not problems:
        return
    first, *more = problems
    also = f" (and {len(more)} more)" if more else ""
    problem_details = [
        {"code": problem.refusal.code, "at": problem.at, "message": problem.message} for problem in problems
    ]
    raise first.refusal(f"{first.message}{also}", at=first.at, hint=first.hint, details={"problems": problem_details})


_MAX_QUOTED = 40


def policy_problems(layer: PolicyLayer) -> tuple[PolicyProblem, ...]:
    """Every problem of a policy layer: conditions first, for they decide."""
    return (*_conditions(layer), *_scopes(layer), *_gates(layer), *_patterns(layer), *_duplicates(layer))


def _conditions(layer: PolicyLayer) -> Iterator[PolicyProblem]:
    for at, name, expression in _placed_conditions(layer):
        problems = logic_problems(expression)
        for problem in problems:
            yield PolicyProblem(
                refusal=ConditionUnusable,
                at=at + problem.at,
                message=f"the condition of {name} {problem.message}",
                hint="use the operators of JSONLogic, and split what is too large",
            )
        for place in () if problems else computed_names(expression):
            yield PolicyProblem(
                refusal=ConditionUnusable,
                at=at + place,
                message=f"the condition of {name} computes which fact it reads, so nobody sees when it is missing",
                hint='name it: {"var": "request.context.refund_amount"}',
            )


def _placed_conditions(layer: PolicyLayer) -> Iterator[tuple[str, str, Json]]:
    for _, rule, at in placed_rules(layer):
        yield f"{at}/if", rule.rule_id, rule.condition
    for _, at, guardrail in placed_guardrails(layer.guardrails):
        if guardrail.when is not None:
            yield f"{at}/when", guardrail.id, guardrail.when
    for n, gate in enumerate(layer.approval_gates):
        if gate.when is not None:
            yield f"/policy_layer/approval_gates/{n}/when", gate.gate_id, gate.when


def _scopes(layer: PolicyLayer) -> Iterator[PolicyProblem]:
    for _, rule, at in placed_rules(layer):
        for key, names in rule.applies_to.items():
            place = f"{at}/applies_to{pointer([key])}"
            hint = f"a run is matched by: {', '.join(SCOPE_FACTS)}"
            if key not in SCOPE_FACTS:
                message = f"{rule.rule_id} applies by {ascii(key)[:_MAX_QUOTED]}, which no run is matched by"
                yield PolicyProblem(refusal=ScopeUnusable, at=place, message=message, hint=hint)
            elif not names:
                message = f"{rule.rule_id} never applies: it names no {key}"
                yield PolicyProblem(
                    refusal=ScopeUnusable, at=place, message=message, hint="name one, or leave the key out"
                )


def _gates(layer: PolicyLayer) -> Iterator[PolicyProblem]:
    declared = {gate.gate_id for gate in layer.approval_gates}
    for _, rule, at in placed_rules(layer):
        for branch, effect in (("then", rule.then), ("else", rule.otherwise)):
            for gate in () if effect is None else effect.gate_ids:
                if gate not in declared:
                    yield PolicyProblem(
                        refusal=GateUnknown,
                        at=f"{at}/{branch}/requires_approval_gate",
                        message=f"nobody declared the approval gate {gate}",
                        hint="declare it in approval_gates",
                    )


def _patterns(layer: PolicyLayer) -> Iterator[PolicyProblem]:
    for _, rule, at in placed_rules(layer):
        yield from pattern_problems(f"{at}/then", rule.then.arg_constraints)
        if rule.otherwise is not None:
            yield from pattern_problems(f"{at}/else", rule.otherwise.arg_constraints)


def pattern_problems(at: str, constraints: RuleConstraints | ArgConstraints) -> Iterator[PolicyProblem]:
    """The problems of the patterns among these constraints."""
    for placed in placed_constraints(constraints):
        problem = None if placed.constraint.pattern is None else pattern_problem(placed.constraint.pattern)
        if problem is not None:
            place = f"{at}{placed.at}/pattern"
            message = f"the pattern of {placed.argument} {problem}"
            yield PolicyProblem(
                refusal=PatternUnusable,
                at=place,
                message=message,
                hint="repeat nothing that is repeated, and no choice",
            )


def _duplicates(layer: PolicyLayer) -> Iterator[PolicyProblem]:
    yield from duplicate_ids(
        "/policy_layer/policy_bundles", "bundle_id", [bundle.bundle_id for bundle in layer.policy_bundles]
    )
    yield from duplicate_ids("/policy_layer/approval_gates", "gate_id", [gate.gate_id for gate in layer.approval_gates])
    for n, bundle in enumerate(layer.policy_bundles):
        ids = [rule.rule_id for rule in bundle.policy_dsl.rules]
        yield from duplicate_ids(f"/policy_layer/policy_bundles/{n}/policy_dsl/rules", "rule_id", ids)


def duplicate_ids(at: str, field: str, ids: list[str]) -> Iterator[PolicyProblem]:
    """Ids that an earlier part of the same list has.

    `field` names the id; it is empty where the part itself is the id.
    """
    seen: set[str] = set()
    for n, name in enumerate(ids):
        if name in seen:
            place, message = f"{at}/{n}{pointer([field] if field else [])}", f"{name} is there already"
            yield PolicyProblem(refusal=AmbiguousPart, at=place, message=message, hint="give it an id of its own")
        seen.add(name)
