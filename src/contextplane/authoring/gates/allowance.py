"""Laws of the policy gate about what is allowed: for some request, each branch and each intent is.

A branch allows where its condition is decided. Where the condition read a missing fact, its `allow` does not count.
"""

from collections.abc import Callable, Iterator

from contextplane.authoring.conditions import PlacedCondition, conditions_by_place, values_of
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import PlacedEffect, Subject
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import RequestFact
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.diagram import Diagrams, DiagramTooLarge, state_of, truth_of
from contextplane.policy.request_facts import has_type, request_facts_by_intent
from contextplane.policy.rules import restricts

__all__ = ["LAWS"]

_MOST_GUARDRAILS = 8


def allowing_branches_can_allow(subject: Subject) -> Iterator[Violation]:
    """Every branch that allows does so for some request: its condition is not only met by missing facts."""
    for placed in subject.compute_once(dead_allowances).values():
        rule = placed.of.rule
        name = f"{rule.rule_id}.{'then' if placed.branch else 'else'}"
        yield Violation(
            at=placed.at,
            cause=f"{name} never allows: where its condition is {'true' if placed.branch else 'false'}, "
            "a fact is missing, a guardrail denies, or no request can be",
            cure="fix the condition, or give the facts that may be missing a default",
        )


def some_rule_allows_every_intent(subject: Subject) -> Iterator[Violation]:
    """For every intent that rules apply to, one of them allows: where none does, everything is denied."""
    dead = subject.compute_once(dead_allowances)
    allowing = [placed for placed in subject.effects if placed.effect.allow is True]
    live = [placed.of for placed in allowing if placed.at not in dead]
    if any(not placed.intents for placed in live):
        return
    allowed = {intent for placed in live for intent in placed.intents}
    for placed in subject.rules:
        for intent in placed.intents:
            if intent not in allowed:
                allowed.add(intent)
                is_spoken_of = any(intent in allows.of.intents for allows in allowing)
                why = "that says allow: true ever does so" if is_spoken_of else "says allow: true"
                cause = f"no rule of the intent {intent!r} {why}, so it is always denied"
                yield Violation(at=placed.at, cause=cause, cure="write where it is allowed, or remove the intent")


def dead_allowances(subject: Subject) -> dict[str, PlacedEffect]:
    """Return the branches that are proven never to allow, by their place."""
    placed_at = subject.compute_once(conditions_by_place)
    guardrails = [
        condition for condition in placed_at.values() if condition.kind == "guardrail" and not condition.problems
    ]
    is_declared = bool(subject.pack.policy_layer.request_facts)
    dead: dict[str, PlacedEffect] = {}
    for placed in subject.effects:
        if placed.effect.allow is not True or _allows_either_way(placed):
            continue
        condition = placed_at[f"{placed.of.at}/if"]
        if not condition.problems:
            near = [guardrail for guardrail in guardrails if guardrail.reads and guardrail.reads <= condition.reads]
            is_open = not condition.free or near or (is_declared and _possible_values(subject, placed) is not None)
            if is_open and _never_allows(subject, placed, condition, near[:_MOST_GUARDRAILS]):
                dead[placed.at] = placed
    return dead


def _allows_either_way(placed: PlacedEffect) -> bool:
    """Whether the other branch allows as well: then the condition decides nothing about it."""
    other = placed.of.rule.otherwise if placed.branch else placed.of.rule.then
    return other is not None and other.allow is True


def _never_allows(
    subject: Subject, placed: PlacedEffect, condition: PlacedCondition, guardrails: list[PlacedCondition]
) -> bool:
    """Whether it is proven that no request comes to this branch with all facts and without a guardrail."""
    scope = {
        SCOPE_FACTS[key]: values_of(named) for key, named in placed.of.rule.applies_to.items() if key in SCOPE_FACTS
    }
    expressions = [condition.expression, *(guardrail.expression for guardrail in guardrails)]
    try:
        diagrams = Diagrams(expressions, scope, is_possible=_possible_values(subject, placed))
        root, *others = diagrams.roots
        demands = [
            (root, _is_state("true" if placed.branch else "false")),
            *((other, _is_state("false")) for other in others),
        ]
        if diagrams.find(demands) is not None:
            return False
        # A branch that restricts and never takes effect is an error of another law.
        reached = diagrams.find([(root, lambda result: truth_of(result) is placed.branch)])
    except DiagramTooLarge:
        return False
    return reached is not None or not restricts(placed.effect)


def _is_state(state: str) -> Callable[[int], bool]:
    return lambda result: state_of(result) == state


def _possible_values(subject: Subject, placed: PlacedEffect) -> Callable[[str, Json], bool] | None:
    """Return whether a fact can have a value in a request with the declared facts of its intent."""
    declared = request_facts_by_intent(subject.pack.policy_layer)
    if not placed.of.intents or not all(intent in declared for intent in placed.of.intents):
        return None
    by_intent = [{fact.path: fact for fact in declared[intent]} for intent in placed.of.intents]
    return lambda path, value: any(_fits(facts.get(path), value) for facts in by_intent)


def _fits(fact: RequestFact | None, value: Json) -> bool:
    if fact is None:
        return True
    return not fact.required if value in (None, "") else has_type(value, fact.type)


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="policy", code="rule_never_allows", check=allowing_branches_can_allow, severity="warning"),
    Law(gate="policy", code="intent_never_allowed", check=some_rule_allows_every_intent, severity="warning"),
)
