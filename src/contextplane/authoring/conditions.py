"""The conditions of a pack or a catalog, each with its place: of rules, gates, guardrails, decisions.

Beside them, what the gates ask of a condition: which facts it may read, which values the scope of a rule leaves to a
fact, whether it can take effect there, and whether it evaluates to true or false. A run takes anything else for a
denial.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

from contextplane.authoring.subject import DecisionDocument, Subject
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value
from contextplane.policy.clock import CLOCK_FACTS
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.expression import (
    LogicFailed,
    LogicProblem,
    compile_expression,
    logic_problems,
    simple_comparisons,
    variables,
)
from contextplane.policy.logic.solver import Answer, are_clearly_contingent, can_be, is_clearly_contingent, solve
from contextplane.policy.logic.strict import COMPARISONS, operation, possible_kinds

__all__ = [
    "PATHS",
    "AppliesTo",
    "PlacedCondition",
    "can_take_effect",
    "conditions",
    "conditions_by_place",
    "facts_read",
    "invalid_condition_places",
    "is_fact",
    "returns_boolean",
    "scope_constraints",
    "values_of",
]

Kind = Literal["rule", "gate", "guardrail", "decision"]


class PlacedCondition(Value, frozen=True):
    """An expression, the kind and the name of what it is the condition of, and its JSON Pointer.

    A `plain` one only compares facts with constants. A `free` one can be true and can be false, by its form alone.
    """

    kind: Kind
    name: str
    at: str
    expression: Json
    problems: tuple[LogicProblem, ...]
    reads: frozenset[str]
    plain: bool
    free: bool


def conditions(subject: DecisionDocument) -> tuple[PlacedCondition, ...]:
    """Return every condition, in the order of the document."""
    placed_conditions = []
    for kind, name, at, expression in _expressions(subject):
        comparisons = simple_comparisons(expression)
        if comparisons is not None:
            problems: tuple[LogicProblem, ...] = ()
            reads = frozenset([path for path, _, _ in comparisons])
            free = are_clearly_contingent(comparisons)
        else:
            problems, reads = logic_problems(expression), variables(expression)
            free = not problems and is_clearly_contingent(expression)
        placed_conditions.append(
            PlacedCondition(
                kind=kind,
                name=name,
                at=at,
                expression=expression,
                problems=problems,
                reads=reads,
                plain=comparisons is not None,
                free=free,
            )
        )
    return tuple(placed_conditions)


def invalid_condition_places(subject: DecisionDocument) -> frozenset[str]:
    """Return the places of conditions that cannot be evaluated. Other laws leave those out."""
    return frozenset(condition.at for condition in subject.compute_once(conditions) if condition.problems)


def facts_read(subject: DecisionDocument) -> frozenset[str]:
    """Return every fact that some condition reads, or that some bound of an argument is the value of."""
    read = frozenset[str]().union(*[condition.reads for condition in subject.compute_once(conditions)])
    references = subject.references if isinstance(subject, Subject) else ()
    return read.union([reference.path for *_, reference in references]) if references else read


def conditions_by_place(subject: DecisionDocument) -> Mapping[str, PlacedCondition]:
    """Map the place of each condition to the condition."""
    return {condition.at: condition for condition in subject.compute_once(conditions)}


def _expressions(subject: DecisionDocument) -> list[tuple[Kind, str, str, Json]]:
    expressions = _policy_expressions(subject) if isinstance(subject, Subject) else []
    for at, spec in subject.decisions.values():
        if spec.eligibility_rules is not None:
            expressions.append(("decision", spec.decision_key, f"{at}/eligibility_rules", spec.eligibility_rules))
    return expressions


def _policy_expressions(subject: Subject) -> list[tuple[Kind, str, str, Json]]:
    expressions: list[tuple[Kind, str, str, Json]] = [
        ("rule", placed.rule.rule_id, f"{placed.at}/if", placed.rule.condition) for placed in subject.rules
    ]
    for at, guardrail in subject.conditional_guardrails:
        expressions.append(("guardrail", guardrail.id, f"{at}/when", guardrail.when))
    for at, gate in subject.gates.values():
        if gate.when is not None:
            expressions.append(("gate", gate.gate_id, f"{at}/when", gate.when))
    return expressions


# --- where a condition is evaluated ---

_SCOPE_PATHS = frozenset(SCOPE_FACTS.values())
"""The facts that `applies_to` can restrict."""

AppliesTo = Mapping[str, str | tuple[str, ...]]
"""The scope of a rule: by key, the value or the values that a run must have."""


def can_take_effect(condition: PlacedCondition, applies_to: AppliesTo, *, outcome: bool = True) -> Answer:
    """Whether the condition can evaluate to `outcome` for any facts within `applies_to`."""
    if not condition.reads and b'"var"' not in canonical(condition.expression):
        return _constant_answer(condition.expression, outcome=outcome)
    within = () if _SCOPE_PATHS.isdisjoint(condition.reads) else tuple(scope_constraints(applies_to, condition.reads))
    if not within:
        return "yes" if condition.free else can_be(condition.expression, outcome)
    return solve([(condition.expression, outcome), *((constraint, True) for _, constraint in within)]).answer


def _constant_answer(condition: Json, *, outcome: bool) -> Answer:
    """Whether a condition that reads no fact evaluates to `outcome`: it does so in every run or in none."""
    try:
        return "yes" if compile_expression(condition).holds({}) is outcome else "no"
    except LogicFailed:
        return "no"


def scope_constraints(applies_to: AppliesTo, reads: frozenset[str] = _SCOPE_PATHS) -> Iterator[tuple[str, Json]]:
    """Yield a condition on each of these facts that holds wherever the rule applies, after the fact."""
    if "safety_mode" in reads:
        yield "safety_mode", {"in": [{"var": "safety_mode"}, list(APPROVAL_MODES)]}
    for key, named in applies_to.items():
        if key in SCOPE_FACTS and SCOPE_FACTS[key] in reads:
            yield SCOPE_FACTS[key], {"in": [{"var": SCOPE_FACTS[key]}, [*sorted(values_of(named))]]}


def values_of(named: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset((named,) if isinstance(named, str) else named)


# --- facts ---

_FACT_ROOTS = frozenset({"request", "user", "agent", "tenant_id", "intent", "safety_mode", "run"})
"""The first steps of all facts that JSONLogic can read."""

_REQUEST_FIELDS = ("context", "intent", "message", "channel", "locale", "attachments")
"""The fields of a request."""

_RUN_FIELDS = frozenset({"budget", "metadata", *(path.removeprefix("run.") for path in CLOCK_FACTS)})
"""The fields of a run."""

_TEXT_FACTS = (
    *("tenant_id.", "intent.", "safety_mode."),
    *("request.intent.", "request.message.", "request.channel.", "request.locale."),
    *(f"{path}." for path in CLOCK_FACTS),
)
"""Facts that are a text or a number: no path leads below them."""

_FIELDS = {"request": _REQUEST_FIELDS, "run": tuple(sorted(_RUN_FIELDS))}
_ROOTS = (
    *(f"request.{name}" for name in _REQUEST_FIELDS),
    *sorted(_FACT_ROOTS - _FIELDS.keys()),
    *(f"run.{name}" for name in _FIELDS["run"]),
)
PATHS = f"a path begins with one of: {', '.join(_ROOTS)}"


@lru_cache(1024)
def is_fact(path: str) -> bool:
    """Whether a run can have a value at this path. The empty path leads to all facts."""
    root, *steps = path.split(".")
    if not path.isascii() or path.startswith(_TEXT_FACTS):
        return False
    if not path or root in _FACT_ROOTS - _FIELDS.keys():
        return True
    return root in _FIELDS and (not steps or steps[0] in _FIELDS[root])


# --- true or false ---

_DECIDES = COMPARISONS | {"!", "!!", "in", "all", "none", "some"}
_MAY_DECIDE = frozenset({"var", "reduce"})


def returns_boolean(expression: Json) -> Answer:
    """Whether an expression evaluates to a boolean, by its form alone. "unknown": the facts decide."""
    operator, operands = operation(expression)
    if not operator:
        return "yes" if isinstance(expression, bool) else "no"
    if not possible_kinds(expression):
        return "no"  # it compares, orders or goes through what no fact can mend
    if operator in _DECIDES:
        return "yes"
    if operator in _MAY_DECIDE:
        return "unknown"
    # Each operand of and and or may be the result: the first that decides it, or the last.
    results = operands if operator in {"and", "or"} else _branches(operands) if operator in {"if", "?:"} else []
    return _combine_answers([returns_boolean(result) for result in results])


def _branches(operands: list[Json]) -> list[Json]:
    """Return the possible results of an `if`: every second operand, and the last, or null without one."""
    branches = operands[1::2]
    return [*branches, operands[-1] if len(operands) % 2 else None]


def _combine_answers(parts: list[Answer]) -> Answer:
    if all(part == "yes" for part in parts) and parts:
        return "yes"
    return "no" if all(part == "no" for part in parts) else "unknown"
