"""Laws of the policy gate about facts: what the clock can show, and what a caller must send.

A pack may declare the facts of requests for an intent. Then every fact that its rules and the guardrails need is among
them, or has a default.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, assert_never

from contextplane.authoring.conditions import PlacedCondition, conditions, conditions_by_place, facts_read
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject, enumerate_places
from contextplane.model.arguments import placed_constraints
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import FactType, RequestFact, RequestFacts
from contextplane.model.suggestion import did_you_mean
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.policy.clock import CLOCK_FACTS, CLOCK_NUMBERS, CLOCK_TEXTS, LOCAL_CLOCK, is_timezone
from contextplane.policy.logic.condition import required_paths
from contextplane.policy.logic.solver import path_of, solve
from contextplane.policy.logic.strict import COMPARISONS, ORDERINGS, operation
from contextplane.policy.request_facts import has_type, request_facts_by_intent

__all__ = ["DECISION_LAWS", "LAWS"]

_COMPARING = COMPARISONS | {"in"}

_CLOCK_VALUES = (
    'compare run.as_of with a moment in UTC ("2026-12-01T00:00:00Z"), run.date with a date ("2026-12-24"), '
    "run.weekday with 1 (Monday) to 7, run.hour with 0 to 23"
)


def clocks_are_compared_with_times(subject: DecisionDocument) -> Iterator[Violation]:
    """Every clock fact is compared with what a clock can show: all else is never so, or an error."""
    for condition in subject.compute_once(_clock_conditions):
        for at, path, constant in _clock_comparisons(condition.expression):
            cause = f"the condition of {condition.name} compares {path} with {ascii(constant)[:60]}, which it never is"
            yield Violation(at=condition.at + at, cause=cause, cure=_CLOCK_VALUES)


def clocks_have_a_timezone(subject: Subject) -> Iterator[Violation]:
    """A pack that reads the weekday, the hour or the date has a timezone whose rules are known."""
    timezone = subject.pack.pack_meta.environment_defaults.timezone
    readers = [
        condition.name
        for condition in subject.compute_once(_clock_conditions)
        if not LOCAL_CLOCK.isdisjoint(condition.reads)
    ]
    if readers and not is_timezone(timezone):
        yield Violation(
            at="/pack_meta/environment_defaults/timezone",
            cause=f"the rules of the timezone {timezone!r} are unknown, so what {readers[0]} reads is always missing",
            cure="name a timezone of IANA, such as Asia/Kolkata",
        )


def _clock_conditions(subject: DecisionDocument) -> Sequence[PlacedCondition]:
    """Return the sound conditions that read the clock."""
    if CLOCK_FACTS.isdisjoint(subject.compute_once(facts_read)):
        return ()
    return [
        condition
        for condition in subject.compute_once(conditions)
        if not condition.problems and not CLOCK_FACTS.isdisjoint(condition.reads)
    ]


def _clock_comparisons(expression: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield each impossible comparison of a clock fact: its place, the fact, and the constant."""
    for at, path, operator, constant in _comparisons(expression, CLOCK_FACTS):
        if not _can_show(path, constant, ordered=operator in ORDERINGS):
            yield at, path, constant


def _comparisons(expression: Json, paths: frozenset[str], at: str = "") -> Iterator[tuple[str, str, str, Json]]:
    """Yield each comparison of one of these facts with a constant: place, fact, operator, constant."""
    operator, operands = operation(expression)
    if operator in _COMPARING:
        for path in filter(None, map(path_of, operands)):
            if path in paths:
                yield from ((at, path, operator, constant) for constant in _constants(operator, operands))
    if isinstance(expression, dict):
        for name, value in expression.items():
            yield from _comparisons(value, paths, at + pointer([name]))
    elif isinstance(expression, list):
        for n, value in enumerate(expression):
            yield from _comparisons(value, paths, f"{at}/{n}")


def _constants(operator: str, operands: list[Json]) -> list[Json]:
    """The constants that a fact is compared with. A search within the text of a fact compares with none."""
    if operator == "in":
        return operands[1] if len(operands) > 1 and isinstance(operands[1], list) else []
    return [operand for operand in operands if not isinstance(operand, dict)]


def _can_show(path: str, constant: Json, *, ordered: bool) -> bool:
    """Whether the clock can show this value, or be ordered with it. Null asks whether there is a clock."""
    if constant is None or isinstance(constant, dict):
        return True
    if path in CLOCK_NUMBERS:
        if isinstance(constant, bool) or not isinstance(constant, int | float):
            return False
        return ordered or constant in CLOCK_NUMBERS[path]
    return isinstance(constant, str) and re.fullmatch(CLOCK_TEXTS[path], constant) is not None and _exists(constant)


def _exists(text: str) -> bool:
    """Whether a date, or a moment, is one of the calendar."""
    try:
        date.fromisoformat(text[:10])
        Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")
    except (ValueError, InvalidTimestamp):
        return False
    return True


# --- what a caller must send ---


def declared_facts_are_for_intents(subject: Subject) -> Iterator[Violation]:
    """Every list of request facts is for an intent that the pack serves, and names each fact once."""
    for at, declared in _fact_lists(subject):
        if declared.intent not in subject.intents:
            cause = f"the pack serves no intent {declared.intent!r}"
            yield Violation(
                at=f"{at}/intent", cause=cause, cure=did_you_mean(declared.intent, subject.intents, "name an intent")
            )
        paths = [fact.path for fact in declared.facts]
        for n, path in enumerate(paths):
            if path in paths[:n]:
                cause = f"{path} is declared twice for {declared.intent}"
                yield Violation(at=f"{at}/facts/{n}/path", cause=cause, cure="declare it once")


def needed_facts_are_declared(subject: Subject) -> Iterator[Violation]:
    """Where facts are declared for an intent, so is each fact of requests that a condition or bound needs."""
    declared = request_facts_by_intent(subject.pack.policy_layer)
    reported: set[tuple[str, str]] = set()
    for at, name, path, intents in _needed_facts(subject, frozenset(declared)):
        for intent in sorted(intents) if path.startswith(_CALLER_FACTS) else ():
            if (intent, path) not in reported and not _covers(declared[intent], path):
                reported.add((intent, path))
                yield Violation(
                    at=at,
                    cause=f"{name} needs {path}, which is not declared for {intent}",
                    cure="declare it in request_facts, or give it a default",
                )


def _needed_facts(subject: Subject, declared: frozenset[str]) -> Iterator[tuple[str, str, str, frozenset[str]]]:
    """Yield each fact that a condition or a bound needs: place, name, path, declared intents."""
    for condition, intents in _needing_conditions(subject, declared):
        for path in sorted(set(required_paths(condition.expression))):
            yield condition.at, condition.name, path, intents
    owners: list[tuple[str, Mapping[str, Any], tuple[str, ...]]] = [
        (at, permission.arg_constraints, permission.intents) for at, permission in subject.permissions
    ]
    owners += [(placed.at, placed.effect.arg_constraints, placed.of.intents) for placed in subject.effects]
    for at, constraints, named in owners:
        for bound in placed_constraints(constraints):
            for _, reference in bound.constraint.references:
                if reference.default is None:
                    intents = declared.intersection(named) if named else declared
                    yield at + bound.at, f"the bound of {bound.argument}", reference.path, intents


def declared_types_are_compared(subject: Subject) -> Iterator[Violation]:
    """No condition compares a declared fact with a value of another kind: that is an error in every run."""
    declared = request_facts_by_intent(subject.pack.policy_layer)
    for condition, intents in _needing_conditions(subject, frozenset(declared)):
        kinds = {fact.path: fact.type for intent in sorted(intents) for fact in declared[intent]}
        for at, path, _, constant in _comparisons(condition.expression, frozenset(kinds)):
            if constant is not None and not _same_kind(constant, kinds[path]):
                cause = f"{condition.name} compares {path}, a {kinds[path]}, with {ascii(constant)[:60]}"
                yield Violation(at=condition.at + at, cause=cause, cure="compare it with a value of its type")


def branches_are_for_complete_requests(subject: Subject) -> Iterator[Violation]:
    """Every branch of a rule can take effect for a request that has the declared facts of its intents."""
    declared = request_facts_by_intent(subject.pack.policy_layer)
    placed_at = subject.compute_once(conditions_by_place)
    for placed in subject.effects:
        condition = placed_at[f"{placed.of.at}/if"]
        facts = _facts_of_all(declared, placed.of.intents)
        constraints = [_holds_if_declared(fact) for fact in facts if fact.path in condition.reads]
        if condition.problems or not constraints:
            continue
        goal = (condition.expression, placed.branch)
        if (
            solve([goal, *((constraint, True) for constraint in constraints)]).answer == "no"
            and solve([goal]).answer == "yes"
        ):
            name = f"{placed.of.rule.rule_id}.{'then' if placed.branch else 'else'}"
            cause = f"{name} can take effect only for a request that is refused before, for lack of a declared fact"
            yield Violation(at=placed.at, cause=cause, cure="remove the branch, or declare the fact as not required")


def _facts_of_all(declared: Mapping[str, Sequence[RequestFact]], intents: Sequence[str]) -> list[RequestFact]:
    """The required facts that are declared for each of these intents."""
    first, *others = [list(declared.get(intent, ())) for intent in intents] or [[]]
    return [fact for fact in first if fact.required and all(_declares(other, fact) for other in others)]


def _declares(facts: Sequence[RequestFact], fact: RequestFact) -> bool:
    return any((other.path, other.type, other.required) == (fact.path, fact.type, True) for other in facts)


def _holds_if_declared(fact: RequestFact) -> Json:
    """A condition that holds exactly where a request has a fact as it is declared."""
    variable: Json = {"var": fact.path}
    match fact.type:
        case "boolean":
            return {"in": [variable, [True, False]]}
        case "number" | "integer":
            return {"or": [{"<": [variable, 0]}, {">=": [variable, 0]}]}
        case "string":
            return {">": [variable, ""]}
        case "array" | "object":
            return {"!==": [variable, None]}
        case unreachable:
            assert_never(unreachable)


_CALLER_FACTS = ("request.context.", "request.channel", "request.locale")


def _fact_lists(subject: Subject) -> Iterator[tuple[str, RequestFacts]]:
    return enumerate_places("/policy_layer/request_facts", subject.request_facts)


def _needing_conditions(subject: Subject, declared: frozenset[str]) -> Iterator[tuple[PlacedCondition, frozenset[str]]]:
    """Yield the conditions of rules and guardrails, each with the declared intents that it is for."""
    intents = {f"{placed.at}/if": placed.intents for placed in subject.rules}
    for condition in subject.compute_once(conditions):
        if not condition.problems and condition.kind in {"rule", "guardrail"}:
            named = intents.get(condition.at, ())
            yield condition, declared.intersection(named) if named else declared


def _covers(facts: Sequence[RequestFact], path: str) -> bool:
    """Whether a fact is declared, or lies in an object that is."""
    return any(
        path == fact.path or (path.startswith(f"{fact.path}.") and fact.type in {"object", "array"}) for fact in facts
    )


def _same_kind(constant: Json, type_name: FactType) -> bool:
    return has_type(constant, "number" if type_name == "integer" else type_name)


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="policy", code="clock_value_impossible", check=clocks_are_compared_with_times),
)
"""The laws that hold for a decision catalog as well."""

LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="policy", code="clock_timezone_unknown", check=clocks_have_a_timezone),
    Law(gate="policy", code="request_facts_invalid", check=declared_facts_are_for_intents, about="request_facts"),
    Law(gate="policy", code="request_fact_mistyped", check=declared_types_are_compared, about="request_facts"),
    Law(
        gate="policy",
        code="request_facts_contradicted",
        check=branches_are_for_complete_requests,
        severity="warning",
        about="request_facts",
    ),
    Law(
        gate="policy",
        code="request_fact_undeclared",
        check=needed_facts_are_declared,
        severity="warning",
        about="request_facts",
    ),
)
