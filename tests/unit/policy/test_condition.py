"""Conditions: what they are granted, and that a whole array answers as each of them alone."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.facts import Facts
from contextplane.policy.logic.condition import (
    ELEMENTS_GRANT,
    MAX_BUDGET,
    PART_GRANT,
    WALK_GRANT,
    CompiledCondition,
    ConditionBatch,
    ConditionFailure,
    budget_of,
    no_missing_reads,
)
from contextplane.policy.logic.expression import compile_expression
from tests.support.cases import cases
from tests.support.policy_cases import Dice, drawn_facts, drawn_policy, seeded
from tests.unit.policy.scenes import LACKING, facts

TAGS: Json = {"var": "request.context.tags"}
AMOUNT: Json = {"var": "request.context.refund_amount"}
EXPRESSIONS: list[Json] = [
    True,
    False,
    {">": [AMOUNT, 3000]},
    {"<": [AMOUNT, 3000]},
    {"==": [{"var": "user.role"}, "support_agent"]},
    {"var": "user.role"},
    {">": [{"var": "user.role"}, 1]},
    {"var": "run.nothing"},
    {"and": [True, AMOUNT]},
    {"some": [TAGS, {"==": [{"var": ""}, "a"]}]},
    {"!": [{"missing": ["user.role"]}]},
    {"+": [1, 1]},
    {"merge": [1, 2]},
]


@given(st.lists(st.sampled_from(EXPRESSIONS), max_size=6), st.sampled_from([1, 4200, "x", None, True]))
def test_together_conditions_answer_as_each_of_them_does_alone(expressions: list[Json], amount: Json) -> None:
    asked = facts(refund_amount=amount, tags=["a"])
    conditions = [CompiledCondition(expression) for expression in expressions]
    judged = ConditionBatch(conditions).judge(asked)
    for n, condition in enumerate(conditions):
        assert judged.failures.get(n, judged.answers[n]) == condition.judge(asked)


def test_a_failure_beside_it_does_not_change_an_answer() -> None:
    good, bad = CompiledCondition({">": [AMOUNT, 3000]}), CompiledCondition({">": [{"var": "user.role"}, 1]})
    judged = ConditionBatch([good, bad, good]).judge(facts())
    assert (list(judged.answers), list(judged.failures)) == ([True, False, True], [1])


@cases(
    ("expression", "budget"),
    [
        (True, 16 + 2 * PART_GRANT),
        ({"and": [True, False]}, 16 + 2 * 3 * PART_GRANT),
        ({">": [AMOUNT, 3000]}, 16 + 2 * (WALK_GRANT + 3 * PART_GRANT)),
        ({"some": [TAGS, True]}, 16 + 2 * (WALK_GRANT + (2 + ELEMENTS_GRANT) * PART_GRANT)),
        ({"some": [TAGS, {"some": [{"var": ""}, {"==": [{"var": ""}, 1]}]}]}, MAX_BUDGET),
    ],
)
def test_the_budget_follows_from_the_size_of_the_condition(expression: Json, budget: int) -> None:
    assert budget_of(expression) == budget


def test_a_list_of_ordinary_length_is_gone_through_and_an_endless_one_is_not() -> None:
    loop = CompiledCondition({"some": [TAGS, {"==": [{"var": ""}, "z"]}]})
    assert loop.judge(facts(tags=["a"] * 5_000)) is False
    failure = loop.judge(facts(tags=["a"] * 100_000))
    assert isinstance(failure, ConditionFailure)
    assert failure.kind == "too_much_work"


@cases(("operator", "start"), [("cat", "ab"), ("merge", ["ab"])])
def test_what_grows_while_it_is_evaluated_runs_out(operator: str, start: Json) -> None:
    doubled: Json = {"reduce": [TAGS, {operator: [{"var": "accumulator"}, {"var": "accumulator"}]}, start]}
    failure = CompiledCondition({"in": ["z", doubled]}).judge(facts(tags=["x"] * 60))
    assert isinstance(failure, ConditionFailure)
    assert failure.kind == "too_much_work"


def test_what_meets_null_names_the_facts_that_it_had_read_by_then() -> None:
    first: Json = {">": [{"+": [{"var": "run.a"}, {"var": "run.b"}]}, 3]}
    after: Json = {"and": [{"!=": [{"var": "run.c"}, 1]}, first, {"==": [{"var": "run.d"}, 1]}]}
    failure = CompiledCondition(after).judge(facts())
    assert isinstance(failure, ConditionFailure)
    assert failure.missing == ("run.a", "run.b", "run.c")
    element: Json = {"some": [TAGS, {">": [{"var": "n"}, 1]}]}
    failure = CompiledCondition(element).judge(facts(tags=[{"n": 1}, {}]))
    assert isinstance(failure, ConditionFailure)
    assert failure.missing == ("request.context.tags[].n",)
    given_null: Json = {">": [{"if": [False, 1]}, 3]}
    failure = CompiledCondition(given_null).judge(facts())
    assert isinstance(failure, ConditionFailure)
    assert failure.missing == ()


WRONG: list[Any] = [None, True, 0, 12, 2.5, "", "high", "1d", "24h", [], ["high"], {}, {"timestamp": "1d"}]
READ: list[Any] = [{"var": "request.context.a"}, {"var": ["request.context.a", None]}]
PLAIN: list[Any] = [
    *({operator: [read, constant]} for operator in ("==", "!=", "===", "!==") for constant in WRONG for read in READ),
    *({operator: [12, read]} for operator in ("<", "<=", ">", ">=", "==") for read in READ),
    *({"in": [read, place]} for place in (["high", 12], ["1d"], [], [None, True]) for read in READ),
    *({"and": [True, read]} for read in READ),
    *({operator: [{"var": ["request.context.a", default]}, 12]} for operator in ("==", ">") for default in WRONG),
    {"!": [{"var": ["request.context.a", False]}]},
    {"<": [0, {"var": "request.context.a"}, 12]},
    {"==": [{"var": ["request.context.a.0", "high"]}, "high"]},
    {"and": [{"==": [READ[0], "high"]}, {">": [READ[0], 3]}]},
]


@cases("value", [*WRONG, LACKING, [None]])
def test_a_fact_of_any_kind_is_judged_together_as_it_is_alone(value: object) -> None:
    asked = facts(a=value)
    conditions = [CompiledCondition(expression) for expression in PLAIN]
    judged = ConditionBatch(conditions).judge(asked)
    for n, condition in enumerate(conditions):
        strict = condition.judge(asked)
        assert judged.failures.get(n, judged.answers[n]) == strict, PLAIN[n]
        assert ConditionBatch([condition]).judge(asked).answers[0] is (strict is True), PLAIN[n]


def test_only_what_is_reached_is_read() -> None:
    lazy = CompiledCondition(
        {"or": [{"==": [{"var": "user.role"}, "support_agent"]}, {"var": "run.a"}, {"var": ["run.b"]}]}
    )
    assert lazy.required == {"user.role", "run.a", "run.b"}
    assert lazy.missing_facts(facts()) == []
    assert lazy.missing_facts(facts(role="x")) == ["run.a", "run.b"]
    assert CompiledCondition({"and": [{"var": "run.a"}, {"var": "run.b"}]}).missing_facts(facts()) == ["run.a"]
    assert CompiledCondition({"if": [{"var": "run.a"}, {"var": "run.b"}, True]}).missing_facts(facts()) == ["run.a"]
    assert CompiledCondition({"map": [{"var": "run.a"}, {"var": "run.b"}]}).missing_facts(facts()) == ["run.a"]
    assert CompiledCondition({"!": {"var": "user.role"}}).missing_facts(facts(role=LACKING)) == ["user.role"]


@cases(
    ("expression", "missing"),
    [
        ({"var": ["run.a", {"var": "run.b"}]}, ["run.b"]),
        ({"var": ["user.role", {"var": "run.b"}]}, []),
        ({"var": {"if": [{"var": "run.a"}, "x", "y"]}}, ["run.a"]),
        ({"if": [True, 1, {"var": "run.a"}, 2, {"var": "run.b"}]}, []),
        ({"if": [False, 1, {"var": "run.a"}, 2, {"var": "run.b"}]}, ["run.a", "run.b"]),
        ({"if": [False, {"var": "run.a"}]}, []),
        ({"if": []}, []),
        ({"or": [False, {"and": [True, {"or": [None, {"var": "run.a"}]}]}]}, ["run.a"]),
        ({"or": [False, {"and": [[], {"var": "run.a"}]}, {"var": "run.b"}]}, ["run.b"]),
        ({"==": [{"and": [False, {"var": "run.a"}]}, {"var": "run.b"}]}, ["run.b"]),
        ({"reduce": [[1], {"var": ["run.a", 0]}, {"var": "run.b"}]}, ["run.b"]),
        ({"missing": ["run.a"]}, []),
        ({"==": [{"var": ["run.a", None]}, {"var": ["run.b", 0]}]}, ["run.a"]),
        ({"and": [False, *[True] * 70, {"var": "run.a"}]}, ["run.a"]),
        ({"and": [False, *[True] * 60, {"var": "run.a"}]}, []),
    ],
)
def test_what_is_read_depends_on_what_stands_before(expression: Json, missing: list[str]) -> None:
    assert CompiledCondition(expression).missing_facts(facts()) == missing


def test_what_is_done_with_an_element_reads_that_element_and_no_fact_of_the_same_name() -> None:
    element: Json = {"some": [TAGS, {"!=": [{"var": "run.b"}, 1]}]}
    of_tag = "request.context.tags[].run.b"
    assert CompiledCondition({"or": [element, {"==": [{"var": "run.b"}, 1]}]}).missing_facts(facts(tags=["a"])) == [
        of_tag
    ]
    assert CompiledCondition({"and": [element, {"==": [{"var": "run.b"}, 1]}]}).missing_facts(facts(tags=["a"])) == [
        of_tag,
        "run.b",
    ]


@given(st.integers(0, 2**32).map(seeded))
def test_nothing_is_missed_exactly_where_what_is_derived_says_so(dice: Dice) -> None:
    for expression in map(_if_of, drawn_policy(dice)[0]["policy_bundles"]):
        condition, asked = CompiledCondition(expression), Facts.of(**drawn_facts(dice))
        if isinstance(condition.judge(asked), bool):
            missed = [path for path in condition.missing_facts(asked) if "[]" not in path]
            assert all(
                compile_expression(derived).holds(asked.data) for derived in no_missing_reads(expression)
            ) is not bool(missed)


def _if_of(bundle: dict[str, Any]) -> Json:
    expression: Json = bundle["policy_dsl"]["rules"][0]["if"]
    return expression


def test_many_conditions_together_are_granted_no_more_than_each_alone() -> None:
    loop = CompiledCondition({"some": [TAGS, {"==": [{"var": ""}, "z"]}]})
    plain = [CompiledCondition({">": [AMOUNT, n]}) for n in range(200)]
    endless = facts(tags=["a"] * 60_000)
    assert isinstance(loop.judge(endless), ConditionFailure)
    judged = ConditionBatch([*plain, loop]).judge(endless)
    assert judged.failures[200].kind == "too_much_work"
    assert list(judged.failures) == [200]
    assert all(judged.answers[:200])
