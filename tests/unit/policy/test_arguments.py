"""The arguments of a call against what bounds them."""

import math
import re
from typing import Any

import msgspec
import pytest

from contextplane.model.arguments import CallLimit, ResolvedConstraint
from contextplane.policy.arguments import violations
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.validation import ScopeUnclear
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, EXECUTES, TOOLS, facts, program, rule, tools


def bound(constraint: dict[str, Any], argument: str = "amount", origin: str = "permission:p") -> ArgumentBound:
    made = msgspec.convert(constraint, ResolvedConstraint)
    return ArgumentBound(argument=argument, constraint=made, origin=origin, at=f"/x/{argument}")


def broken(constraint: dict[str, Any], value: Any, **options: Any) -> list[str]:  # noqa: ANN401  any JSON
    result = violations([bound(constraint)], {"amount": value}, approved=options.get("approved", False), changes=True)
    return [violation.broken for violation in result]


@cases(
    ("constraint", "value", "expected"),
    [
        ({"min": 1, "max": 50_000}, 1, []),
        ({"min": 1, "max": 50_000}, 50_000, []),
        ({"min": 1, "max": 50_000}, 0.99, ["min"]),
        ({"min": 1, "max": 50_000}, 50_000.01, ["max"]),
        ({"min": 1}, "4200", ["type"]),
        ({"min": 1}, True, ["type"]),
        ({"max": 1}, None, ["type"]),
        ({"max": 1}, [1], ["type"]),
        ({"max": 1}, math.nan, ["type"]),
        ({"max": 1}, math.inf, ["type"]),
        ({"max": 1}, 10**400, ["type"]),
        ({"enum": ["INR"]}, "INR", []),
        ({"enum": ["INR"]}, "inr", ["enum"]),
        ({"enum": [1]}, 1.0, []),
        ({"enum": [1]}, True, ["enum"]),
        ({"enum": [True]}, 1, ["enum"]),
        ({"enum": [None, "x"]}, None, []),
        ({"enum": ["INR"]}, ["INR"], ["enum"]),
        ({"pattern": "^ik_[a-z0-9]{16}$"}, "ik_2x9k4j7m1q8w0p3z", []),
        ({"pattern": "^ik_[a-z0-9]{16}$"}, "ik_2x9k4j7m1q8w0p3z\n", ["pattern"]),
        ({"pattern": "^ik_[a-z0-9]{16}$"}, "ik_", ["pattern"]),
        ({"pattern": "^1$"}, 1, ["type"]),
        ({"required": True}, "x", []),
        ({"required": True}, "", []),
        ({"required": True}, None, ["required"]),
        ({}, None, []),
        ({"min": 5, "enum": [7], "pattern": "x"}, 3, ["min", "enum", "type"]),
    ],
)
def test_an_argument_is_held_to_its_bounds_and_to_its_type(
    constraint: dict[str, Any],
    value: Any,  # noqa: ANN401  any JSON
    expected: list[str],
) -> None:
    assert broken(constraint, value) == expected


def test_a_missing_argument_breaks_only_what_requires_it() -> None:
    bounds = [bound({"required": True, "min": 1}), bound({"max": 9, "enum": [1]}, "other")]
    assert [
        (violation.argument, violation.broken) for violation in violations(bounds, {}, approved=False, changes=True)
    ] == [("amount", "required")]


def test_all_violations_are_told_together_with_who_set_the_bound() -> None:
    decision = EXAMPLE_PROGRAM.decide(facts())
    refund = TOOLS.surface(decision, "destructive", EXECUTES).tools[2]
    result = violations(refund.bounds, {"amount_inr": 50_001}, approved=True, changes=True)
    assert [(violation.argument, violation.broken, violation.origin, violation.at) for violation in result] == [
        ("amount_inr", "max", "permission:p_issue_refund", "/tooling_layer/permissions/2/arg_constraints/amount_inr"),
        (
            "idempotency_key",
            "required",
            "permission:p_issue_refund",
            "/tooling_layer/permissions/2/arg_constraints/idempotency_key",
        ),
    ]
    assert violations(refund.bounds, {"amount_inr": 4200, "idempotency_key": "ik"}, approved=False, changes=True) == ()


def test_an_approval_lifts_only_what_says_so() -> None:
    assert broken({"max": 3000, "unless_approved": True}, 4200) == ["max"]
    assert broken({"max": 3000, "unless_approved": True}, 4200, approved=True) == []
    assert broken({"max": 3000}, 4200, approved=True) == ["max"]


def test_what_a_rule_requires_is_required_of_calls_that_change_something() -> None:
    by_rule = [bound({"required": True, "max": 3}, origin="rule:B#R")]
    assert violations(by_rule, {}, approved=False, changes=False) == ()
    assert [violation.broken for violation in violations(by_rule, {}, approved=False, changes=True)] == ["required"]
    assert [violation.broken for violation in violations(by_rule, {"amount": 4}, approved=False, changes=False)] == [
        "max"
    ]
    assert len(violations([bound({"required": True})], {}, approved=False, changes=False)) == 1


@cases(
    ("arguments", "expected"),
    [
        ({"money": {"amount": 4}}, ["max"]),
        ({"money.amount": 4}, ["max"]),
        ({"money.amount": 1, "money": {"amount": 4}}, ["max"]),
        ({"money.amount": 4, "money": {"amount": 4}}, ["max", "max"]),
        ({"money": {"amount": 1}}, []),
        ({"money": None}, []),
        ({"money": {}}, []),
        ({"money": [{"amount": 4}]}, ["type"]),
        ({"money": '{"amount": 4}'}, ["type"]),
        ({"money": 4}, ["type"]),
        ({"money.amount": 1, "money": [{"amount": 4}]}, ["type"]),
    ],
)
def test_a_dotted_name_holds_in_both_spellings(arguments: dict[str, Any], expected: list[str]) -> None:
    """And where no object stands on its way, it cannot be held to: a list, or a text that spells one, is no way out."""
    result = violations([bound({"max": 3}, "money.amount")], arguments, approved=False, changes=True)
    assert [violation.broken for violation in result] == expected


def scoped_program(constraints: dict[str, Any]) -> PolicyProgram:
    return program(rule("R_BOUND", then={"allow": True, "arg_constraints": constraints}))


def bounds_of(constraints: dict[str, Any]) -> dict[str, list[str]]:
    """The arguments that this rule bounds, by tool."""
    policy = scoped_program(constraints)
    surface = tools({}, policy).surface(policy.decide(facts()), "destructive", EXECUTES)
    return {
        tool.capability_id: [bound.argument for bound in tool.bounds if bound.origin == "rule:B#R_BOUND"]
        for tool in surface.tools
    }


def test_a_rule_bounds_the_arguments_of_every_tool_or_those_of_the_capability_that_it_names() -> None:
    lookup, evaluate, refund = "adp_orders.lookup", "adp_policy.eval", "adp_payments.issue_refund"
    assert bounds_of({"amount": {"max": 5}}) == {lookup: ["amount"], evaluate: ["amount"], refund: ["amount"]}
    assert bounds_of({refund: {"amount": {"max": 5}}}) == {lookup: [], evaluate: [], refund: ["amount"]}
    assert bounds_of({refund: {"max": {"max": 5}, "var": {"min": 1}}, "a.b": {"max": 1}}) == {
        lookup: ["a.b"],
        evaluate: ["a.b"],
        refund: ["a.b", "max", "var"],
    }
    (bound,) = scoped_program({refund: {"amount": {"max": 5}}}).decide(facts()).arg_constraints
    assert bound.at.endswith(f"/then/arg_constraints/{refund}/amount")


@cases(("scope", "expected"), [("adp_orders.lookup", ["required"]), (None, [])])
def test_what_a_rule_requires_of_a_tool_that_reads_it_requires_by_the_name_of_the_tool(
    scope: str | None, expected: list[str]
) -> None:
    constraint = {"order_id": {"required": True}}
    policy = scoped_program(constraint if scope is None else {scope: constraint})
    bounds = policy.decide(facts()).arg_constraints
    assert [violation.broken for violation in violations(bounds, {}, approved=False, changes=False)] == expected


@cases(
    ("constraints", "why"),
    [
        ({"adp_x.y": {"amount": {"max": 5}, "max": 5}}, "mixes bounds of an argument with arguments of a capability"),
        ({"amount": {"replicas": {"max": 5}}}, "is no adapter_id.capability"),
        ({"adp-x.y": {"max": 5}}, "is no name of an argument"),
        ({"adp_x.y": {"a b": {"max": 5}}}, "matching regex"),
        ({"adp_x.y": {"amount": {"most": 5}}}, "unknown field `most`"),
        ({"amount": {"most": 5}}, "unknown field `most`"),
        ({"amount": 5}, "is no object"),
    ],
)
def test_a_constraint_of_a_rule_has_one_of_two_forms(constraints: dict[str, Any], why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(why)):
        scoped_program(constraints)


def test_an_argument_with_the_name_of_a_capability_is_refused() -> None:
    policy = scoped_program({"adp_payments.issue_refund": {"max": 5}})
    with pytest.raises(ScopeUnclear, match="is a capability, and is constrained as if it were an argument") as caught:
        tools({}, policy)
    assert caught.value.at is not None
    assert caught.value.at.endswith("/rules/0/then/arg_constraints/adp_payments.issue_refund")


@cases(
    "limit",
    [
        {"per": "user", "period": "24h"},
        {"per": "user", "max_calls": 3},
        {"per": "run", "period": "24h", "max_calls": 3},
        {"per": "run", "sum_of": "amount"},
        {"per": "run", "max": 5},
        {"per": "run", "max_calls": 3, "sum_of": "amount", "max": 5},
        {"per": "run", "max_calls": 3, "max": 5},
        {"per": "run", "max_calls": 0},
        {"per": "agent", "max_calls": 3},
        {"per": "user", "period": "1 day", "max_calls": 3},
    ],
)
def test_a_limit_counts_calls_or_sums_an_argument_over_a_period_or_a_run(limit: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(limit, CallLimit)
