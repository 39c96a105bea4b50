"""The tool surface: what is left, what is not, and every reason why."""

import itertools
from typing import Any

import pytest

from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.tool_surface import Surface
from contextplane.policy.validation import ModeAboveAdapter
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, RAW, TOOLS, decide, facts, program, rule, tools

LOOKUP, EVAL, REFUND = "adp_orders.lookup", "adp_policy.eval", "adp_payments.issue_refund"
REGISTRY = RAW["tooling_layer"]["adapter_registry"]
PERMISSIONS = RAW["tooling_layer"]["permissions"]


def surface(ceiling: ApprovalMode = "destructive", **values: Any) -> Surface:  # noqa: ANN401
    return TOOLS.surface(EXAMPLE_PROGRAM.decide(facts(mode=ceiling, **values)), ceiling)


def names(surface: Surface) -> list[str]:
    return [tool.capability_id for tool in surface.tools]


def why(surface: Surface) -> dict[str, list[str]]:
    return {out.capability_id: [reason.kind for reason in out.reasons] for out in surface.left_out}


def test_the_example_surfaces_all_of_its_tools_in_the_order_of_the_document() -> None:
    result = surface()
    assert names(result) == [LOOKUP, EVAL, REFUND]
    assert result.left_out == ()
    refund = result.tools[2]
    assert (refund.declared_mode, refund.effective_mode, refund.gate_ids) == (
        "destructive",
        "destructive",
        ("GATE_FINANCE_APPROVAL",),
    )
    assert [(bound.argument, bound.origin) for bound in refund.bounds] == [
        ("amount_inr", "permission:p_issue_refund"),
        ("idempotency_key", "permission:p_issue_refund"),
    ]
    assert refund.bounds[0].at == "/tooling_layer/permissions/2/arg_constraints/amount_inr"


@proves("context-pack:tooling-layer:filtered-by-safety-mode")
@cases(("ceiling", "kept"), list(zip(APPROVAL_MODES, (2, 2, 2, 2, 3), strict=True)))
def test_a_tool_above_the_ceiling_is_left_out(ceiling: ApprovalMode, kept: int) -> None:
    result = surface(ceiling)
    assert len(result.tools) == kept
    assert why(result) == ({} if kept == 3 else {REFUND: ["above_ceiling"]})


def test_when_the_intent_is_denied_only_what_reads_is_left() -> None:
    result = surface(identity_verified=False)
    assert names(result) == [LOOKUP, EVAL]
    (out,) = result.left_out
    assert [(reason.kind, reason.by) for reason in out.reasons] == [("intent_denied", ("R_REFUND_REQUIRES_IDV",))]
    assert names(surface(intent="support.unheard_of")) == [LOOKUP, EVAL]


def test_what_a_rule_in_effect_prohibits_is_left_out_and_the_rule_is_named() -> None:
    by = program(rule("R_NO", then={"allow": True, "prohibits": [LOOKUP]}))
    surface = tools({}, by).surface(by.decide(facts()), "destructive")
    assert names(surface) == [EVAL, REFUND]
    assert [(reason.kind, reason.by) for reason in surface.left_out[0].reasons] == [("prohibited", ("R_NO",))]


@proves("context-pack:tooling-layer:permissions-expose")
def test_a_capability_that_no_permission_allows_is_left_out() -> None:
    adapters = [{**REGISTRY[0], "capabilities": ["lookup", "search"]}, *REGISTRY[1:]]
    granted = [*PERMISSIONS, {**PERMISSIONS[1], "permission_id": "p_no", "allow": False}]
    surface = tools({"adapter_registry": adapters, "permissions": granted}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive"
    )
    assert names(surface) == [LOOKUP, REFUND]
    assert why(surface) == {"adp_orders.search": ["not_permitted"], EVAL: ["permission_denies"]}
    assert surface.left_out[1].reasons[0].by == ("p_no",)


@proves("context-pack:policy-layer:constrains-never-creates")
def test_no_rule_and_no_permission_surfaces_what_no_adapter_declares() -> None:
    made_up = {**PERMISSIONS[0], "permission_id": "p_new", "capability": "delete"}
    by = program(rule(then={"allow": True, "requires": ["adp_orders.delete"], "approval_mode": "read_only"}))
    surface = tools({"permissions": [*PERMISSIONS, made_up]}, by).surface(by.decide(facts()), "destructive")
    assert names(surface) == [LOOKUP, EVAL, REFUND]
    assert why(surface) == {"adp_orders.delete": ["not_in_registry"]}
    assert surface.left_out[0].at == "/tooling_layer/permissions/3"


def test_every_reason_is_told_in_the_order_in_which_the_surface_is_computed() -> None:
    denying = [{**PERMISSIONS[2], "allow": False}]
    by = program(rule(then={"allow": False, "prohibits": [REFUND]}))
    surface = tools({"permissions": denying}, by).surface(by.decide(facts(mode="read_only")), "read_only")
    assert why(surface)[REFUND] == ["permission_denies", "prohibited", "above_ceiling", "intent_denied"]
    assert all(reason.message for out in surface.left_out for reason in out.reasons)


def test_two_permissions_for_one_tool_bind_together() -> None:
    second = {
        "permission_id": "p_also",
        "adapter_id": "adp_payments",
        "capability": "issue_refund",
        "allow": True,
        "arg_constraints": {"currency": {"enum": ["INR"]}},
        "produces": ["refund"],
    }
    surface = tools({"permissions": [*PERMISSIONS, second]}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive"
    )
    refund = surface.tools[2]
    assert refund.permission_ids == ("p_issue_refund", "p_also")
    assert [bound.argument for bound in refund.bounds] == ["amount_inr", "idempotency_key", "currency"]
    assert refund.produces == ("refund",)


@cases(("asked", "declared"), list(itertools.product(APPROVAL_MODES, APPROVAL_MODES)))
def test_policy_may_choose_a_lower_mode_and_never_a_higher_one(asked: ApprovalMode, declared: ApprovalMode) -> None:
    by = program(rule(then={"allow": True, "approval_mode": asked}))
    adapters = [{**adapter, "approval_mode": declared} for adapter in REGISTRY]
    surface = tools({"adapter_registry": adapters}, by).surface(by.decide(facts()), "destructive")
    ranks = [APPROVAL_MODES.index(adapter) for adapter in (asked, declared, surface.tools[0].effective_mode)]
    assert ranks[2] == min(ranks[:2])
    assert surface.tools[0].declared_mode == declared


def test_the_bounds_of_rules_in_effect_hold_for_every_tool() -> None:
    then = {"allow": True, "arg_constraints": {"order_id": {"pattern": "^ord_"}}}
    by = program(rule(then=then))
    surface = tools({}, by).surface(by.decide(facts()), "destructive")
    assert all(tool.bounds[-1].origin == "rule:B#R" for tool in surface.tools)


def test_a_decision_of_other_rules_prohibits_nothing_here() -> None:
    assert names(TOOLS.surface(decide(rule()), "destructive")) == [LOOKUP, EVAL, REFUND]


def test_a_capability_with_a_mode_of_its_own_can_do_no_more_than_that() -> None:
    orders = {
        **REGISTRY[0],
        "approval_mode": "destructive",
        "capability_specs": {"lookup": {"approval_mode": "network"}},
    }
    kept = tools({"adapter_registry": [orders, *REGISTRY[1:]]}, EXAMPLE_PROGRAM)
    for ceiling in APPROVAL_MODES:
        surface = kept.surface(EXAMPLE_PROGRAM.decide(facts(mode=ceiling)), ceiling)
        assert (LOOKUP in names(surface)) is (ceiling not in {"read_only", "local_write"})
        assert all(tool.declared_mode == "network" for tool in surface.tools if tool.capability_id == LOOKUP)


def test_a_capability_above_its_adapter_is_refused() -> None:
    orders = {**REGISTRY[0], "capability_specs": {"lookup": {"approval_mode": "network"}}}
    with pytest.raises(ModeAboveAdapter, match=r"adp_orders\.lookup is network, above its adapter") as caught:
        tools({"adapter_registry": [orders, *REGISTRY[1:]]}, EXAMPLE_PROGRAM)
    assert caught.value.at == "/tooling_layer/adapter_registry/0/capability_specs/lookup/approval_mode"
