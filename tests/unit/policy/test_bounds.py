"""Bounds that are the values of facts: resolved in each request, and never kept where a fact does not say."""

from typing import Any

import msgspec
import pytest

from contextplane.model.arguments import ArgConstraint
from contextplane.policy.arguments import violations
from contextplane.policy.bounds import permission_references
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.tool_surface import ToolProgram
from tests.support.cases import cases
from tests.unit.policy.scenes import (
    EXAMPLE,
    EXECUTES,
    LACKING,
    PERMISSIONS,
    RAW,
    bundle,
    facts,
    policy,
    program,
    rule,
    tools,
)

REFUND = "adp_payments.issue_refund"
TOTAL = {"var": "request.context.order_total"}


def bound_of(constraint: dict[str, Any], **values: Any) -> ArgumentBound:  # noqa: ANN401  any JSON
    """The bound that a rule sets for the refund, in a request with these facts."""
    (bound,) = (
        program(rule(then={"allow": True, "arg_constraints": {REFUND: {"it": constraint}}}))
        .decide(facts(**values))
        .arg_constraints
    )
    return bound


def broken(bound: ArgumentBound, arguments: dict[str, Any], **options: bool) -> list[str]:
    approved, changes = options.get("approved", False), options.get("changes", True)
    return [violation.broken for violation in violations((bound,), arguments, approved=approved, changes=changes)]


@cases(
    ("constraint", "values", "argument", "expected"),
    [
        ({"max": TOTAL}, {"order_total": 900}, 900, []),
        ({"max": TOTAL}, {"order_total": 900}, 900.5, ["max"]),
        ({"min": TOTAL}, {"order_total": 900}, 899, ["min"]),
        ({"min": TOTAL, "max": 1000}, {"order_total": 900}, 1001, ["max"]),
        ({"max": TOTAL}, {"order_total": 900}, "900", ["type"]),
        ({"equals": TOTAL}, {"order_total": "ord_1"}, "ord_1", []),
        ({"equals": TOTAL}, {"order_total": "ord_1"}, "ord_2", ["equals"]),
        ({"equals": TOTAL}, {"order_total": 1}, 1.0, []),
        ({"equals": TOTAL}, {"order_total": 1}, True, ["equals"]),
        ({"equals": TOTAL}, {"order_total": True}, True, []),
        ({"equals": {"var": "user.user_id"}}, {}, "usr_771", []),
        ({"equals": {"var": "request.context.lines.1.id"}}, {"lines": [{"id": "a"}, {"id": "b"}]}, "b", []),
        ({"equals": "INR"}, {}, "INR", []),
        ({"equals": "INR"}, {}, "USD", ["equals"]),
        ({"max": {"var": ["request.context.order_total", 5]}}, {}, 5, []),
        ({"max": {"var": ["request.context.order_total", 5]}}, {}, 6, ["max"]),
        ({"max": {"var": ["request.context.order_total", 5]}}, {"order_total": 7}, 7, []),
    ],
)
def test_an_argument_is_held_to_the_value_of_a_fact(
    constraint: dict[str, Any],
    values: dict[str, Any],
    argument: Any,  # noqa: ANN401  any JSON
    expected: list[str],
) -> None:
    assert broken(bound_of(constraint, **values), {"it": argument}) == expected


@cases(
    ("constraint", "values", "problem"),
    [
        ({"max": TOTAL}, {}, "request.context.order_total is missing"),
        ({"max": TOTAL}, {"order_total": None}, "request.context.order_total is missing"),
        ({"max": TOTAL}, {"order_total": "900"}, "request.context.order_total is no number"),
        ({"min": TOTAL}, {"order_total": True}, "request.context.order_total is no number"),
        ({"max": {"var": ["request.context.order_total", 5]}}, {"order_total": "9"}, "order_total is no number"),
        ({"equals": TOTAL}, {"order_total": ["a"]}, "is no text, number, true or false"),
        ({"equals": TOTAL}, {"order_total": {}}, "is no text, number, true or false"),
        ({"equals": {"var": "request.context.lines.01"}}, {"lines": ["a", "b"]}, "is missing"),
        ({"equals": {"var": "request.context.lines.2"}}, {"lines": ["a", "b"]}, "is missing"),
        ({"equals": {"var": "request.message.length"}}, {}, "is missing"),
    ],
)
def test_no_call_keeps_a_bound_by_a_fact_that_is_missing_or_of_another_kind(
    constraint: dict[str, Any], values: dict[str, Any], problem: str
) -> None:
    bound = bound_of({**constraint, "unless_approved": True}, **values)
    assert bound.problem.endswith(problem)
    for arguments in ({}, {"it": None}, {"it": 1}, {"it": "a"}):
        assert "fact" in broken(bound, arguments)
        assert "fact" in broken(bound, arguments, changes=False)
        assert broken(bound, arguments, approved=True) == []


def test_a_lookup_keeps_a_bound_of_every_tool_by_a_missing_fact_while_it_has_no_such_argument() -> None:
    by = program(rule(then={"allow": True, "arg_constraints": {"amount": {"max": TOTAL}}}))
    (bound,) = by.decide(facts()).arg_constraints
    assert broken(bound, {}, changes=False) == []
    assert broken(bound, {"amount": 1}, changes=False) == ["fact"]
    assert broken(bound, {}) == ["fact"]


def test_a_list_hides_no_value_from_a_bound_by_a_missing_fact() -> None:
    by = program(rule(then={"allow": True, "arg_constraints": {"order.amount": {"max": TOTAL}}}))
    (bound,) = by.decide(facts()).arg_constraints
    assert broken(bound, {"order": [{"amount": 1}]}, changes=False) == ["fact"]
    assert broken(bound, {"order": {"other": 1}}, changes=False) == []


def test_a_violation_names_the_fact_and_not_its_value() -> None:
    bound = bound_of({"equals": {"var": "request.context.card"}}, card="4111")
    (violation,) = violations((bound,), {"it": "x"}, approved=False, changes=True)
    assert violation.message == "must be request.context.card"


def permission_program(constraint: dict[str, Any]) -> tuple[PolicyProgram, ToolProgram]:
    permission = {**PERMISSIONS[2], "arg_constraints": {"amount_inr": constraint}}
    layer = {**RAW["tooling_layer"], "permissions": [*PERMISSIONS[:2], permission]}
    made = msgspec.convert(layer, type(EXAMPLE.tooling_layer))
    by = PolicyProgram.of(policy(bundle(rule())), references=[*permission_references(made)])
    return by, ToolProgram.of(made, by)


def test_a_permission_refers_to_facts_too() -> None:
    by, tooling = permission_program({"max": TOTAL})
    for total, expected in ((900, (900, "")), (LACKING, (None, "request.context.order_total is missing"))):
        decision = by.decide(facts(order_total=total))
        (bound,) = tooling.surface(decision, "destructive", EXECUTES).tools[2].bounds
        assert (bound.constraint.max, bound.problem) == expected


def test_a_fact_that_a_bound_is_the_value_of_is_part_of_the_decision() -> None:
    by, _ = permission_program({"max": TOTAL})
    decisions = [by.decide(facts(order_total=total)) for total in (900, 900, 901)]
    ids = [decision.policy_decision_id for decision in decisions]
    assert ids[0] == ids[1] != ids[2]
    assert decisions[2].fact_values == {"request.context.order_total": 901}
    by = program(rule(then={"allow": True, "arg_constraints": {"amount": {"max": TOTAL}}}))
    assert len({by.decide(facts(order_total=total)).policy_decision_id for total in (900, 901)}) == 2


def test_tools_are_prepared_with_the_policy_that_reads_their_facts() -> None:
    permission = {**PERMISSIONS[2], "arg_constraints": {"amount_inr": {"max": TOTAL}}}
    with pytest.raises(ValueError, match="without the facts"):
        tools({"permissions": [permission]}, program(rule()))


@cases(
    "constraint",
    [
        {"max": {"var": ""}},
        {"max": {"var": ["request.context.x"]}},
        {"max": {"var": ["request.context.x", 1, 2]}},
        {"max": {"var": [1, 2]}},
        {"max": {"var": ["request.context.x", None]}},
        {"max": {"var": "request.context.x", "or": 1}},
        {"max": {"+": [1, {"var": "request.context.x"}]}},
        {"pattern": {"var": "request.context.x"}},
        {"equals": ["a"]},
    ],
)
def test_a_bound_refers_to_one_fact_and_computes_nothing(constraint: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(constraint, ArgConstraint)
