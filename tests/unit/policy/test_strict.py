"""Strict forms: they come to what the expression comes to, or fail where JSONLogic would guess."""

from typing import Any

import datalogic_py
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.facts import Facts
from contextplane.policy.logic.expression import MAX_LOGIC_DEPTH, engine, logic_problems
from contextplane.policy.logic.strict import strict_form
from tests.support.cases import cases
from tests.support.policy_cases import Dice, drawn_facts, drawn_policy, seeded

A: Json = {"var": "a"}


def value_of(expression: Json, data: Any) -> Any:  # noqa: ANN401  any JSON
    """What the engine says of it; the operator that failed where it says nothing."""
    try:
        return msgspec.json.decode(engine().compile([expression]).evaluate_metered(data)[0])[0]
    except datalogic_py.DataLogicError as error:
        return error


@given(st.integers(0, 2**32).map(seeded))
def test_a_strict_form_comes_to_the_same_or_fails(dice: Dice) -> None:
    for bundle in drawn_policy(dice)[0]["policy_bundles"]:
        for rule in bundle["policy_dsl"]["rules"]:
            data = Facts.of(**drawn_facts(dice)).data
            raw, checked = value_of(rule["if"], data), value_of(strict_form(rule["if"]), data)
            assert isinstance(checked, datalogic_py.DataLogicError) or checked == raw


@cases(
    "expression",
    [
        {"==": [A, True]},
        {"and": [{"!=": [A, 1]}, {"in": [A, [1]]}]},
        {"+": [A, 1]},
        {"var": ["a", {"var": "b"}]},
        [1, A],
    ],
)
def test_what_orders_nothing_and_goes_through_nothing_is_its_own_strict_form(expression: Json) -> None:
    assert strict_form(expression) == expression


def test_what_is_computed_is_computed_once_however_deep_it_stands() -> None:
    deep: Json = A
    for _ in range(MAX_LOGIC_DEPTH // 2 - 1):
        deep = {"if": [{"<": [deep, {"var": "b"}]}, {"var": "c"}, A]}
    assert logic_problems(deep) == ()
    _, plain = engine().compile([deep]).evaluate_metered({"a": 1, "b": 2, "c": 0})
    text, work = engine().compile([strict_form(deep)]).evaluate_metered({"a": 1, "b": 2, "c": 0})
    assert text == "[0]"
    assert work < 10 * plain


@cases("operator", ["some", "all", "none", "map", "filter"])
@cases("source", [12, "x", True, {"cat": ["a"]}, {"if": [True, A]}, {"and": [True, A]}, {"var": ["b", "x"]}])
def test_whatever_is_no_list_cannot_be_gone_through(operator: str, source: Json) -> None:
    assert isinstance(value_of(strict_form({operator: [source, True]}), {"a": {"k": 1}}), datalogic_py.DataLogicError)


@cases("source", [None, [], A, {"var": "b"}, {"var": ["b", []]}, {"merge": [1]}, {"if": [False, A]}])
def test_a_list_can_be_gone_through_and_so_can_nothing(source: Json) -> None:
    assert value_of(strict_form({"some": [source, False]}), {"a": [1]}) is False
