"""Diagrams: what the engine makes of a condition, for every request at once."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.policy.facts import Facts, FactsRefused
from contextplane.policy.logic.condition import CompiledCondition, ConditionFailure
from contextplane.policy.logic.diagram import Diagrams, DiagramTooLarge, State, state_of
from contextplane.policy.logic.expression import logic_problems
from tests.support.cases import cases
from tests.support.policy_cases import drawn_condition, drawn_facts, seeded
from tests.support.samples import sample

Json = Any

AMOUNT = {"var": "request.context.amount"}
ROLE = {"==": [{"var": "user.role"}, "agent"]}
FLAG = {"==": [{"var": "request.context.flag"}, True]}
LARGE = {">": [AMOUNT, 3000]}


def states(old: Json, new: Json) -> set[tuple[State, State]]:
    """Return the pairs of different states that two conditions can be in."""
    diagrams = Diagrams([old, new])
    return {(was, now) for was, now in diagrams.joint_states(*diagrams.roots) if was != now}


def state(condition: Json, facts: Facts) -> State:
    """Return the state of a condition, by the engine."""
    compiled = CompiledCondition(condition)
    answer = compiled.judge(facts)
    if isinstance(answer, ConditionFailure):
        return "unknown" if answer.missing else "failed"
    if compiled.missing_facts(facts):
        return "true_missing" if answer else "false_missing"
    return "true" if answer else "false"


@given(st.integers(0, 2**32))
@sample(60)
def test_a_diagram_leaves_out_no_state_that_a_request_comes_to(seed: int) -> None:
    dice = seeded(seed)
    conditions = [drawn_condition(dice, 3), drawn_condition(dice, 3)]
    if any(map(logic_problems, conditions)):
        return
    diagrams = Diagrams(conditions)
    pairs = diagrams.joint_states(*diagrams.roots)
    for _ in range(30):
        drawn = drawn_facts(dice)
        try:
            facts = Facts.of(**drawn)
        except FactsRefused:
            continue
        assert tuple(state(condition, facts) for condition in conditions) in pairs, drawn


@given(st.integers(0, 2**32))
@sample(60)
def test_what_an_exact_diagram_leaves_open_happens(seed: int) -> None:
    dice = seeded(seed)
    conditions = [drawn_condition(dice, 2), drawn_condition(dice, 2)]
    if any(map(logic_problems, conditions)):
        return
    diagrams = Diagrams(conditions)
    for pair in diagrams.joint_states(*diagrams.roots) if diagrams.exact else ():
        demands = [(root, is_state(demanded)) for root, demanded in zip(diagrams.roots, pair, strict=True)]
        facts = facts_with(diagrams.find(demands) or {})
        assert tuple(state(condition, facts) for condition in conditions) == pair, facts.data


def is_state(demanded: State) -> Callable[[int], bool]:
    return lambda result: state_of(result) == demanded


def facts_with(values: dict[str, Json]) -> Facts:
    data: Json = {"request": {}, "user": {}, "agent": {}, "run": {}}
    data |= {"tenant_id": "tenant_a", "intent": "support.lookup", "safety_mode": "network"}
    for path, value in values.items():
        *parents, last = path.split(".")
        place = data
        for step in parents:
            place = place.setdefault(step, {})
        if value is not None:
            place[last] = value
    data["intent"] = data["request"].get("intent", data["intent"])
    return Facts.of(**data)


SAME: Json = (
    ({"and": [ROLE, FLAG]}, {"and": [{"and": [ROLE]}, FLAG]}),
    ({"or": [ROLE, FLAG]}, {"!": [{"and": [{"!": [ROLE]}, {"!": [FLAG]}]}]}),
    (LARGE, {"<": [3000, AMOUNT]}),
    (LARGE, {"!": [{"<=": [AMOUNT, 3000]}]}),
    ({"==": [{"var": ["user.vip", False]}, True]}, {"!": [{"!=": [{"var": ["user.vip", False]}, True]}]}),
    (
        {"in": [{"var": "intent"}, ["a", "b"]]},
        {"or": [{"===": [{"var": "intent"}, "a"]}, {"===": [{"var": "intent"}, "b"]}]},
    ),
)


@cases(("old", "new"), SAME)
def test_the_same_condition_in_another_form_is_the_same_for_every_request(old: Json, new: Json) -> None:
    assert states(old, new) == set()


def test_the_order_of_and_decides_which_missing_facts_are_read() -> None:
    moves = states({"and": [ROLE, FLAG]}, {"and": [FLAG, ROLE]})
    assert ("false_missing", "false") in moves
    assert ("true", "false") not in moves
    assert ("true_missing", "true") in states({"or": [ROLE, FLAG]}, {"or": [FLAG, ROLE]})


def test_a_part_that_is_not_analysed_may_come_to_anything_and_is_the_same_part_in_both() -> None:
    total: Json = {"<": [{"+": [AMOUNT, {"var": "request.context.fee"}]}, 10]}
    assert ("true", "false") not in states({"and": [ROLE, total]}, ROLE)
    assert states({"and": [total, ROLE]}, {"and": [total, {"!!": [ROLE]}]}) == set()
    assert not Diagrams([total]).exact


def test_facts_that_always_are_texts_are_never_missing_or_mistyped() -> None:
    tenant = {"==": [{"var": "tenant_id"}, "tenant_a"]}
    always: Json = True
    never: Json = False
    assert {was for was, _ in states(tenant, always)} == {"false"}
    assert states(ROLE, never) == {("true", "false"), ("false_missing", "false")}


def test_a_diagram_that_grows_too_large_is_given_up() -> None:
    facts = [{"var": f"request.context.v{n}"} for n in range(300)]
    parts: Json = [{"or": [{"==": [fact, 1]} for fact in facts[n : n + 30]]} for n in range(0, len(facts), 30)]
    with pytest.raises(DiagramTooLarge):
        Diagrams([{"and": parts}])
