"""Strict forms: they come to what JSONLogic says, or fail where it would guess."""

from typing import Any

import datalogic_py
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.facts import Facts
from contextplane.policy.logic.expression import MAX_LOGIC_DEPTH, engine, logic_problems
from contextplane.policy.logic.plain_form import plain_form
from contextplane.policy.logic.strict import possible_kinds, strict_form
from tests.support.cases import cases
from tests.support.policy_cases import Dice, drawn_facts, drawn_policy, seeded

A: Json = {"var": "a"}
B: Json = {"var": "b"}
KINDS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def value_of(expression: Json, data: Any) -> Any:  # noqa: ANN401  any JSON
    """What the engine says of it; the operator that failed where it says nothing."""
    try:
        return msgspec.json.decode(engine().compile([expression]).evaluate_metered(data)[0])[0]
    except datalogic_py.DataLogicError as error:
        return error


def fails(expression: Json, data: Any) -> bool:  # noqa: ANN401
    return isinstance(value_of(strict_form(expression), data), datalogic_py.DataLogicError)


@given(st.integers(0, 2**32).map(seeded))
def test_a_strict_form_has_a_kind_that_was_foreseen_or_fails(dice: Dice) -> None:
    for bundle in drawn_policy(dice)[0]["policy_bundles"]:
        for rule in bundle["policy_dsl"]["rules"]:
            data = Facts.of(**drawn_facts(dice)).data
            checked = value_of(strict_form(rule["if"]), data)
            failed = isinstance(checked, datalogic_py.DataLogicError)
            assert failed or KINDS[type(checked)] in possible_kinds(rule["if"])


@cases(
    ("expression", "data"),
    [
        ({"==": [A, True]}, {"a": "true"}),
        ({"!=": [A, True]}, {"a": "true"}),
        ({"==": [A, 0]}, {"a": False}),
        ({"==": [A, "1"]}, {"a": 1}),
        ({"==": [A, B]}, {"a": 1, "b": "1"}),
        ({"==": [A, B]}, {"a": [], "b": []}),
        ({"===": [A, B]}, {"a": [1], "b": [1]}),
        ({"!==": [A, "x"]}, {"a": {}}),
        ({"===": [A, "1d"]}, {"a": {"timestamp": "1d"}}),
        ({"<": [A, 3]}, {"a": "1"}),
        ({"<": [A, B]}, {"a": "1", "b": 2}),
        ({"<": [A, "x"]}, {"a": {"timestamp": "1d"}}),
        ({"<": [0, A, 3]}, {"a": [1]}),
        ({"+": [A, 0]}, {"a": "1"}),
        ({"+": [A, A]}, {"a": "1d"}),
        ({"max": [A]}, {"a": [1, 2]}),
        ({"+": [A]}, {"a": [1, 2]}),
        ({"and": [A, True]}, {"a": "false"}),
        ({"or": [A, True]}, {"a": ""}),
        ({"!": [A]}, {"a": 0}),
        ({"if": [A, 1, 2]}, {"a": {}}),
        ({"filter": [A, {"var": ""}]}, {"a": ["x"]}),
        ({"in": [A, ["x"]]}, {"a": ["x"]}),
        ({"in": [A, "12"]}, {"a": 1}),
        ({"cat": [A]}, {"a": [1]}),
    ],
)
def test_what_json_logic_would_convert_is_an_error(expression: Json, data: Any) -> None:  # noqa: ANN401
    assert fails(expression, data)


@cases(
    ("expression", "data", "value"),
    [
        ({"==": [A, "24h"]}, {"a": "1d"}, False),
        ({"===": [A, B]}, {"a": "1d", "b": "24h"}, False),
        ({"==": [A, B]}, {"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T01:00:00+01:00"}, False),
        ({"in": [A, ["24h"]]}, {"a": "1d"}, False),
        ({"in": ["1d", A]}, {"a": ["24h"]}, False),
        ({"in": [A, B]}, {"a": "1d", "b": ["x", "1d"]}, True),
        ({"<": [A, B]}, {"a": "1d", "b": "2h"}, True),
        ({"<": [A, "x", B]}, {"a": "1d", "b": "y"}, True),
        ({"<": [A, "5m", B]}, {"a": "1d", "b": "9"}, True),
        ({"==": [A, 1]}, {"a": 1.0}, True),
        ({"==": [A, None]}, {"a": []}, False),
        ({"===": [A, None]}, {"a": {}}, False),
        ({"==": [A, 0]}, {}, False),
        ({"!==": [A, 0]}, {"a": False}, True),
        ({"missing": ["a", "b", "c"]}, {"a": "", "b": 0}, ["a", "c"]),
        ({"missing_some": [2, ["a", "b", "c"]]}, {"a": "", "b": 0}, ["a", "c"]),
        ({"merge": [[None], A, None, 1]}, {"a": [None, [2]]}, [None, None, [2], None, 1]),
        ({"cat": [A, B, 3, None, True]}, {"a": 1.0, "b": 0.5}, "10.53true"),
        ({"in": ["", ""]}, {}, False),
    ],
)
def test_texts_are_texts_and_nothing_is_lost(expression: Json, data: Any, value: Json) -> None:  # noqa: ANN401
    assert value_of(strict_form(expression), data) == value


@cases(("a", "fails_there"), [(2**53 - 1, True), (2**53 - 2, False), (-(2**53), True)])
def test_a_result_that_other_programs_round_is_an_error(a: int, fails_there: bool) -> None:  # noqa: FBT001
    assert fails({"+": [A, 1, -1]}, {"a": a}) is fails_there


@cases(
    ("expression", "is_plain"),
    [
        ({"==": [A, True]}, True),
        ({"and": [{"!=": [A, 1]}, {"in": [A, [1]]}]}, True),
        ({"<": [0, A, 3]}, True),
        ({">": [{"var": ["a", 0]}, 3]}, True),
        ({">": [{"var": ["a.0", 0]}, 3]}, False),
        ({"==": [A, "1d"]}, False),
        ({"==": [A, B]}, False),
        ({"<": [A, "x"]}, False),
        ({"+": [A, 1]}, False),
        ({"and": [{"==": [A, "x"]}, {"<": [A, 3]}]}, False),
    ],
)
def test_a_comparison_of_facts_with_constants_is_plain(expression: Json, is_plain: bool) -> None:  # noqa: FBT001
    assert (plain_form(expression) is not None) is is_plain


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
    assert fails({operator: [source, True]}, {"a": {"k": 1}})


@cases("source", [None, [], A, {"var": "b"}, {"var": ["b", []]}, {"merge": [1]}, {"if": [False, A]}])
def test_a_list_can_be_gone_through_and_so_can_nothing(source: Json) -> None:
    assert value_of(strict_form({"some": [source, False]}), {"a": [1]}) is False
