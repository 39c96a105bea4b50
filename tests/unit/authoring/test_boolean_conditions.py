"""Conditions come to true or false, and what the form says of that is what the engine says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.conditions import returns_boolean
from contextplane.model.json.canonical import Json
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import CompiledCondition, ConditionFailure
from contextplane.policy.logic.expression import logic_problems
from tests.support.samples import sample

FACT: Json = {"var": "request.context.a"}
LEAVES = st.one_of(
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from(["x", None, FACT]),
    st.builds(lambda operator: {operator: [FACT, 1]}, st.sampled_from(["==", "!=", "<", ">="])),
    st.sampled_from([{"!": [FACT]}, {"!!": [FACT]}, {"in": [FACT, [1]]}, {"+": [1, 1]}, {"cat": ["a", FACT]}]),
    st.sampled_from([{"<": [FACT, True]}, {">=": [False, FACT]}, {"some": [3, True]}, {"none": [FACT, False]}]),
)
EXPRESSIONS: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda operator, parts: {operator: parts},
        st.sampled_from(["and", "or", "if"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=6,
)
VALUES: tuple[Json, ...] = (None, True, False, 0, 1, 2, "", "x", "1")


def facts(value: Json) -> Facts:
    context: Json = {} if value is None else {"a": value}
    return Facts.of(
        request={"context": context},
        user={},
        agent={},
        tenant_id="t",
        intent="i",
        safety_mode="read_only",
        run={},
    )


@given(EXPRESSIONS)
@sample(100)
def test_what_is_said_always_to_answer_answers_and_what_never_does_does_not(expression: Json) -> None:
    answer = returns_boolean(expression)
    if logic_problems(expression) or answer == "unknown":
        return
    condition = CompiledCondition(expression)
    for value in VALUES:
        result = condition.judge(facts(value))
        if isinstance(result, ConditionFailure) and result.kind == "failed":
            continue  # it could not be evaluated at all, which is another matter
        assert isinstance(result, bool) is (answer == "yes"), (value, result)


@pytest.mark.parametrize(
    "operand",
    [
        {"<": [FACT, True]},
        {">": [True, FACT]},
        {"<": [1, FACT, "x"]},
        {"all": ["x", True]},
        {"==": [1, "1"]},
        {"!=": [True, {"+": [FACT, 1]}]},
        {"==": [[], "x"]},
        {"in": [FACT, 5]},
        {"in": [1, "12"]},
        {"!": ["x"]},
        {"!": [{"==": [1, "1"]}]},
        {"and": [{"cat": [FACT]}, True]},
        {"if": [1, True, False]},
        {">": [{"*": [FACT, "2"]}, 1]},
    ],
)
def test_what_no_fact_can_mend_never_answers(operand: Json) -> None:
    assert logic_problems(operand) == ()
    assert returns_boolean(operand) == "no"
    assert all(isinstance(CompiledCondition(operand).judge(facts(value)), ConditionFailure) for value in VALUES)
