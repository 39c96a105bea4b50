"""JSONLogic behind its fence, and the question whether expressions can hold together."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.json.canonical import Json
from contextplane.policy.logic.expression import (
    MAX_LOGIC_DEPTH,
    MAX_LOGIC_PARTS,
    Expression,
    LogicFailed,
    compile_expression,
    logic_problems,
    variables,
)
from contextplane.policy.logic.solver import Outcome, can_be, implies, solve, solve_outcomes
from tests.support.cases import cases
from tests.support.samples import sample

A: Json = {"var": "request.context.a"}
B: Json = {"var": "user.b"}


def nested(depth: int) -> Json:
    expression: Json = A
    for _ in range(depth):
        expression = {"!": [expression]}
    return expression


@cases(
    ("expression", "at", "words"),
    [
        ({"and": [{"now": []}]}, "/and/0/now", "'now'"),
        ({"and": [True, {"==": [1, 1], "!=": [1, 2]}]}, "/and/1", "2 keys"),
        ({"==": [{}, 1]}, "/==/0", "0 keys"),
        (nested(MAX_LOGIC_DEPTH + 5), "/!/0" * (MAX_LOGIC_DEPTH - 1) + "/!", "deep"),
        ({"and": [True] * (MAX_LOGIC_PARTS + 5)}, "", "parts"),
        ({">": [1]}, "", "takes 2"),
        ({"and": [{">": [3, 2, 5]}]}, "/and/0", "3 operands of >, which takes 2"),
        ({"<": [1, 2, 3, 4]}, "", "takes 2 to 3"),
        ({"!": []}, "", "takes 1"),
        ({"and": []}, "", "takes 1 or more"),
        ({"==": [{"substr": ["abc", A]}, "b"]}, "/==/0", "where substr cuts"),
        ({"!!": [{"missing_some": [A, ["user.b"]]}]}, "/!!/0", "how many facts"),
        ({"==": [{"var": "request.context.list.00"}, 1]}, "/==/0", "leading zero"),
        ({"==": [{"var": "+1"}, 1]}, "/==/0", "leading zero"),
        ({"reduce": [A, {"+": [{"var": "current"}, {"var": "x"}]}, 0]}, "/reduce/1/+/1", "current and accumulator"),
        ({"reduce": [A, {"var": ""}, 0]}, "/reduce/1", "current and accumulator"),
        ({"reduce": [A, {"missing": ["x"]}, 0]}, "/reduce/1", "current and accumulator"),
        ({"preserve": {"a": 1}}, "/preserve", "'preserve'"),
        ({"and": [{">": [A, 10**21]}]}, "/and/0/>/1", "2^53-1"),
        ({"==": [A, -1e21]}, "/==/1", "2^53-1"),
        ({"!": 2**53}, "/!", "2^53-1"),
    ],
)
def test_what_is_not_the_same_everywhere_is_a_problem_with_its_place(expression: Json, at: str, words: str) -> None:
    problem = logic_problems(expression)[0]
    assert problem.at == at
    assert words in problem.message
    with pytest.raises(LogicFailed):
        compile_expression(expression)


@cases("number", [2**53 - 1, -(2**53) + 1, 1e15, 0.1, 1e-30])
def test_a_number_that_is_exact_is_no_problem(number: float) -> None:
    assert logic_problems({"==": [A, number]}) == ()


def test_the_body_of_a_loop_in_a_reduce_reads_its_own_elements() -> None:
    body: Json = {"or": [{"var": "accumulator"}, {"some": [{"var": "current.parts"}, {">": [{"var": "n"}, 1]}]}]}
    assert logic_problems({"reduce": [A, body, False]}) == ()


def test_an_expression_is_true_as_an_operand_of_and_is() -> None:
    assert compile_expression({"and": [A, {">": [B, 3000]}]}).holds(
        {"request": {"context": {"a": [0]}}, "user": {"b": 3001}}
    )
    with pytest.raises(LogicFailed):
        compile_expression(A).holds({"request": {"context": {"a": "x"}}})
    assert not compile_expression(A).holds({})
    assert compile_expression({"==": [1, 1]}).holds({})


def test_more_work_than_is_allowed_is_an_error_and_no_verdict() -> None:
    each: Json = {"map": [A, {"+": [{"var": ""}, 1]}]}
    with pytest.raises(LogicFailed, match="BudgetExceeded"):
        compile_expression(each).holds({"request": {"context": {"a": [1] * 200_000}}})


NUMBERS = st.integers(-2, 3)
TEXTS = st.sampled_from(["x", "y", "", "xy", "true", "false", "B", "~", "abc"])
CONSTANTS = st.one_of(NUMBERS, TEXTS, st.booleans(), st.none())
VARIABLES = st.sampled_from([{"var": "a"}, {"var": "b.c"}])
COMPARISONS = st.one_of(
    st.builds(
        lambda operator, variable, constant: {operator: [variable, constant]},
        st.sampled_from(["==", "===", "!=", "!==", "<", "<=", ">", ">="]),
        VARIABLES,
        CONSTANTS,
    ),
    st.builds(lambda low, variable, high: {"<": [low, variable, high]}, NUMBERS, VARIABLES, NUMBERS),
    st.builds(lambda variable, values: {"in": [variable, values]}, VARIABLES, st.lists(CONSTANTS, max_size=3)),
    VARIABLES,
)
EXPRESSIONS: st.SearchStrategy[Json] = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"!": [part]}, inner),
        st.builds(lambda parts: {"if": parts}, st.lists(inner, min_size=3, max_size=3)),
    ),
    max_leaves=6,
)
EVERY_KIND: tuple[Any, ...] = (
    *(None, True, False, -3, -2, -1.5, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4),
    *("", "x", "xa", "xy", "xz", "y", "z", "other", "0", "1", "3", "3.0", "-2", " 3", "01", "+1", "1e0", "0.5", "5000"),
    *("true", "false", "True", "null", "inf", "NaN", "a", "aa", "B", "C", "abc", "~", "~~", "\0", "\u00e9"),
    *("2026-01-01", "P1D", [], [0], [3], ["x"], [True], {}, {"k": 1}),
)
OUTCOMES = st.sampled_from(
    [frozenset[Outcome](some) for some in ({True}, {False}, {None}, {True, None}, {False, None})]
)


@given(st.lists(st.tuples(EXPRESSIONS, st.booleans()), min_size=1, max_size=3))
@sample(80)
def test_a_solution_is_one_and_a_no_is_a_proof(goals: list[tuple[Json, bool]]) -> None:
    solution = solve(goals)
    rules = [(compile_expression(expression), holds) for expression, holds in goals]
    if solution.answer == "yes":
        assert all(rule.holds(solution.facts) is holds for rule, holds in rules)
        return
    assert solution.answer == "no", "variables meet constants only: it can be told"
    for a, c in itertools.product(EVERY_KIND, repeat=2):
        facts: dict[str, Json] = {"a": a, "b": {"c": c}}
        assert not all(_outcome(rule, facts) is holds for rule, holds in rules), facts


@given(st.lists(st.tuples(EXPRESSIONS, OUTCOMES), min_size=1, max_size=2))
@sample(80)
def test_a_no_is_a_proof_when_what_cannot_be_evaluated_counts_as_neither(
    demands: list[tuple[Json, frozenset[Outcome]]],
) -> None:
    solution = solve_outcomes(demands)
    rules = [(compile_expression(expression), outcomes) for expression, outcomes in demands]
    if solution.answer == "yes":
        assert all(_outcome(rule, solution.facts) in outcomes for rule, outcomes in rules)
        return
    assert solution.answer == "no"
    for a, c in itertools.product(EVERY_KIND, repeat=2):
        facts: dict[str, Json] = {"a": a, "b": {"c": c}}
        assert not all(_outcome(rule, facts) in outcomes for rule, outcomes in rules), facts


@given(EXPRESSIONS, EXPRESSIONS)
@sample(80)
def test_what_follows_holds_wherever_the_other_does_and_never_fails_there(premise: Json, conclusion: Json) -> None:
    if not implies((premise, True), (conclusion, True)):
        return
    first, second = compile_expression(premise), compile_expression(conclusion)
    for a, c in itertools.product(EVERY_KIND, repeat=2):
        facts: dict[str, Json] = {"a": a, "b": {"c": c}}
        assert _outcome(first, facts) is not True or _outcome(second, facts) is True, facts


LOOSER: Any = (
    ({">": [A, 3000]}, {">": [A, "~"]}),  # a number cannot be compared with a text
    ({">": [A, 3000]}, {"!": [{"<=": [A, "B"]}]}),
    ({"==": [A, 1]}, {"==": [A, True]}),
    ({"==": [A, True]}, {"!=": [A, 1]}),
    ({"!=": [A, 1]}, {"!==": [A, None]}),  # a missing one
    ({"!": [A]}, {"==": [A, False]}),  # a missing one, and an empty list
)
FOLLOWS: Any = (
    ({"==": [A, False]}, {"or": [{"!": [A]}, {"==": [A, "zzz"]}]}),
    ({"==": [A, "3"]}, {"!==": [A, 3]}),
    ({">": [A, "2026-01-01T00:00:00Z"]}, {">": [A, "2025-01-01T00:00:00Z"]}),  # as texts
    ({"==": [A, "1d"]}, {"!=": [A, "24h"]}),
    ({">": [A, 0]}, {"!==": [A, None]}),
)


@cases(("premise", "conclusion"), LOOSER)
def test_what_cannot_be_evaluated_or_fails_for_what_is_missing_does_not_follow(premise: Json, conclusion: Json) -> None:
    assert not implies((premise, True), (conclusion, True))


@cases(("premise", "conclusion"), FOLLOWS)
def test_what_holds_for_all_values_of_the_only_kind_that_is_left_follows(premise: Json, conclusion: Json) -> None:
    assert implies((premise, True), (conclusion, True))


def test_a_missing_fact_is_the_one_that_is_read_elsewhere() -> None:
    assert solve([({"and": [{"missing": ["user.b"]}, {"==": [B, 1]}]}, True)]).answer == "no"
    assert solve([({"and": [{"missing": ["user.b"]}, {"!": [B]}]}, True)]).answer == "yes"
    both: Json = {"and": [{"missing": ["user.b", "user.c"]}, {"==": [B, 1]}]}
    assert solve([(both, True), ({"var": "user.c"}, True)]).answer == "no"
    assert variables(both) == {"user.b", "user.c"}
    assert variables({"missing_some": [1, ["user.b", "intent"]]}) == {"user.b", "intent"}


@given(EXPRESSIONS, st.booleans())
@sample(80)
def test_what_is_told_by_form_alone_is_what_solving_says(expression: Json, holds: bool) -> None:  # noqa: FBT001
    assert can_be(expression, holds) == solve([(expression, holds)]).answer


@cases("operator", ["<", "<=", ">", ">="])
@cases("constant", [True, False])
def test_what_orders_true_and_false_is_never_true_and_never_false(operator: str, constant: bool) -> None:  # noqa: FBT001
    ordered: Json = {operator: [A, constant]}
    assert [can_be(ordered, holds) for holds in (True, False)] == ["no", "no"]
    assert solve_outcomes([(ordered, frozenset({None}))]).answer == "yes"


def _outcome(rule: Expression, facts: dict[str, Json]) -> bool | None:
    """What it says of these facts; None when it cannot be evaluated, which is neither."""
    try:
        return rule.holds(facts)
    except LogicFailed:
        return None


def test_ranges_that_do_not_meet_cannot_hold_together() -> None:
    assert solve([({">": [A, 5]}, True), ({"<": [A, 3]}, True)]).answer == "no"
    assert solve([({">": [A, 5]}, True), ({"<": [A, 6]}, True)]).facts == {"request": {"context": {"a": 5.5}}}


def test_a_tighter_threshold_implies_the_looser_one() -> None:
    assert solve([({">": [A, 5000]}, True), ({">": [A, 3000]}, False)]).answer == "no"


def test_what_is_computed_and_has_a_default_is_tried_with_what_it_is_compared_with() -> None:
    assert solve([({"==": [{"+": [A, B]}, 77]}, True)]).answer == "yes"
    assert solve([({">": [{"var": ["request.context.a", 0]}, 3000]}, True)]).answer == "yes"


def test_what_is_computed_or_compared_with_another_variable_cannot_be_told_when_nothing_is_found() -> None:
    assert solve([({"==": [{"-": [{"*": [A, B]}, 5]}, 70.7]}, True)]).answer == "unknown"
    assert solve([({"and": [{">": [A, B]}, {">": [B, A]}]}, True)]).answer == "unknown"
    assert solve([({"nonsense": [1]}, True)]).answer == "unknown"


KINDS: Any = (
    {"and": [{"!==": [A, 3]}, {"!==": [A, True]}, {"!==": [A, None]}]},  # a text
    {"and": [{">": [A, "a"]}, {"<": [A, "b"]}]},  # what lies between two texts
    {"and": [{"!=": [A, ""]}, {"==": [A, None]}]},  # a missing one
    {"and": [{"!": [A]}, {"!=": [A, None]}]},  # an empty list: it equals no null
    {"and": [A, {"!=": [A, None]}]},  # true
)


@cases("expression", KINDS)
def test_values_of_every_kind_are_tried(expression: Json) -> None:
    assert solve([(expression, True)]).answer == "yes"


UNTOLD: Any = (
    {"and": [{">": [A, 2.0**51]}, {"<": [A, 2.0**51 + 1]}]},  # what lies between two huge numbers
    {"and": [{"in": [A, "abc"]}, {"==": [A, 7]}]},
    {"and": [{"==": [A, 3]}, {"==": [{"var": "request.context.a.b"}, 1]}]},  # one path within another
    {"all": [A, {">": [{"var": ""}, 1]}]},
    {"==": [{"var": ["request.context.a", 7]}, 8]},
    {"in": [A, [[1]]]},
    {"and": [{"!": [{"missing_some": [2, ["request.context.a", "user.b"]]}]}, {"==": [A, ""]}]},
)
NEVER: Any = (
    {"and": [{"!": [{"missing": ["request.context.a", "user.b"]}]}, {"==": [A, ""]}]},
    {"and": [A, {"!": [A]}, {"==": [{"var": "request.context"}, 1]}]},
    {"and": [{"in": ["x", A]}, {"==": [A, "y"]}]},
    {"and": [{"in": ["x", A]}, {"!": [A]}]},
    {"==": [1, "1"]},
    {"<": [A, True]},
    {"and": [{"==": [A, 3]}, {"==": [A, "3"]}]},
    {"and": [{"==": [A, True]}, {">": [A, 0]}]},
    {"and": [{">": [A, "2026-01-01T00:00:00Z"]}, {"<": [A, "2025-01-01T00:00:00Z"]}]},
)


@cases("expression", NEVER)
def test_what_needs_two_kinds_at_once_never_holds(expression: Json) -> None:
    assert solve([(expression, True)]).answer == "no"


@cases("expression", UNTOLD)
def test_where_not_every_case_is_tried_a_no_is_never_said(expression: Json) -> None:
    assert solve([(expression, True)]).answer != "no"


def test_an_expression_reads_facts_and_an_element_is_none() -> None:
    each: Json = {"some": [{"var": "request.context.items"}, {">": [{"var": "price"}, {"var": ["limit", 3]}]}]}
    assert variables(each) == {"request.context.items"}
    assert variables({"reduce": [A, {"+": [{"var": "current"}, 1]}, B]}) == {"request.context.a", "user.b"}


def test_a_hard_question_leaves_the_next_one_its_own_budget() -> None:
    facts: Any = [{"var": f"v{n}"} for n in range(40)]
    hard: Json = {"==": [{"+": facts}, 77.7]}
    assert [solve([(hard, True)]).answer for _ in range(3)] == ["unknown"] * 3
    parts: Any = [{"and": [{">": [fact, 5]}, {"<": [fact, 3]}]} for fact in facts]
    assert solve([({"or": parts}, True)]).answer == "no"


def test_a_default_is_the_value_of_a_fact_that_is_left_out() -> None:
    vip: Json = {"==": [{"var": ["request.context.vip", False]}, True]}
    assert solve([(vip, True), ({"==": [{"var": "request.context.vip"}, None]}, True)]).answer == "no"
    small: Json = {"<": [{"var": ["request.context.a", 0]}, 10]}
    assert implies(({"==": [A, None]}, True), (small, True))
    assert solve([(small, False), ({"<": [{"var": ["request.context.a", 20]}, 10]}, True)]).answer == "no"


def test_independent_parts_are_solved_apart_so_that_their_number_costs_little() -> None:
    many: Json = {"and": [{">": [{"var": f"v{n}"}, n]} for n in range(40)]}
    assert solve([(many, True)]).answer == "yes"
    assert solve([(many, True), ({">": [{"var": "v7"}, 3]}, False)]).answer == "no"
