"""The arguments of a call against what bounds them."""

import math
from typing import Any

import msgspec

from contextplane.model.pack_layers import ArgConstraint
from contextplane.policy.arguments import violations
from contextplane.policy.decision import ArgumentBound
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, TOOLS, facts


def bound(constraint: dict[str, Any], argument: str = "amount", origin: str = "permission:p") -> ArgumentBound:
    made = msgspec.convert(constraint, ArgConstraint)
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
    refund = TOOLS.surface(decision, "destructive").tools[2]
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
