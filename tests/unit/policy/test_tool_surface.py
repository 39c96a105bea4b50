"""The tool surface: what is left, what is not, and every reason why."""

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.tool_surface import IntentReach, Surface
from contextplane.policy.validation import ModeAboveAdapter
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE, EXAMPLE_PROGRAM, EXECUTES, RAW, TOOLS, decide, facts, program, rule, tools

LOOKUP, EVAL, REFUND = "adp_orders.lookup", "adp_policy.eval", "adp_payments.issue_refund"
REGISTRY = RAW["tooling_layer"]["adapter_registry"]
PERMISSIONS = RAW["tooling_layer"]["permissions"]


def surface(ceiling: ApprovalMode = "destructive", **values: Any) -> Surface:  # noqa: ANN401
    return TOOLS.surface(EXAMPLE_PROGRAM.decide(facts(mode=ceiling, **values)), ceiling, EXECUTES)


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


READS_ON_DENY = replace(EXECUTES, on_deny="read")


def test_when_the_intent_is_denied_nothing_is_left() -> None:
    result = surface(identity_verified=False)
    assert names(result) == []
    for out in result.left_out:
        assert [(reason.kind, reason.by) for reason in out.reasons] == [("intent_denied", ("R_REFUND_REQUIRES_IDV",))]
        assert out.reasons[0].message == "the intent is denied, and its decisions do not all say on_deny: read"
    assert names(surface(intent="support.unheard_of")) == []


def test_an_intent_whose_decisions_ask_for_it_keeps_what_reads_when_it_is_denied() -> None:
    denied = EXAMPLE_PROGRAM.decide(facts(identity_verified=False))
    result = TOOLS.surface(denied, "destructive", READS_ON_DENY)
    assert names(result) == [LOOKUP, EVAL]
    assert why(result) == {REFUND: ["intent_denied"]}
    assert names(TOOLS.surface(denied, "destructive", replace(EXECUTES, on_deny="none"))) == []


@cases("first", ["web", "phone"], ids=["out of scope first", "in scope first"])
def test_a_denial_where_a_rule_applies_is_not_that_where_it_does_not(first: str) -> None:
    # In neither request does a branch take effect; only on the phone does the rule apply.
    then = {"allow": True, "arg_constraints": {LOOKUP: {"rows": {"max": 10}}}}
    applies_to, when = {"intent": "support.refund", "channel": "phone"}, {"==": [{"var": "user.role"}, "lead"]}
    by = program(rule(applies_to=applies_to, when=when, then=then))
    prepared = tools({}, by)
    bounds = {}
    for channel in (first, "web", "phone"):
        result = prepared.surface(by.decide(facts(channel=channel)), "destructive", READS_ON_DENY)
        bounds[channel] = {tool.capability_id: [bound.argument for bound in tool.bounds] for tool in result.tools}
    assert bounds == {"web": {LOOKUP: [], EVAL: []}, "phone": {LOOKUP: ["rows"], EVAL: []}}


def test_who_is_denied_reads_no_more_than_who_is_allowed() -> None:
    total = {"max": {"var": "request.context.total"}}
    bounds = {LOOKUP: {"rows": {"max": 10}}, "total": total}
    verified = {"==": [{"var": "request.context.identity_verified"}, True]}
    others = {"intent": "support.refund", "role": "trainee"}
    by = program(
        rule("R", when=verified, then={"allow": True, "arg_constraints": bounds}),
        rule("R_TRAINEE", applies_to=others, then={"arg_constraints": {"rows": {"max": 1}}}),
        rule("R_ELSEWHERE", applies_to={"intent": "support.other"}, then={"arg_constraints": {"rows": {"max": 2}}}),
    )
    made = tools({}, by)
    for verdict in (True, False, None):
        decision = by.decide(facts(identity_verified=verdict, total=7))
        assert decision.allowed is (verdict is True)
        lookup, *rest = made.surface(decision, "destructive", READS_ON_DENY).tools
        held = [(bound.argument, bound.constraint.max, bound.problem) for bound in lookup.bounds]
        assert held == [("rows", 10, ""), ("total", 7, "")]
        assert [bound.argument for bound in rest[0].bounds] == ["total"]
    trainee = by.decide(facts(identity_verified=False, role="trainee"))
    (lookup, _) = made.surface(trainee, "destructive", READS_ON_DENY).tools
    assert [bound.constraint.max for bound in lookup.bounds] == [10, None, 1]
    assert lookup.bounds[1].problem == "request.context.total is missing"


def test_a_denial_leaves_nothing_that_a_rule_of_the_intent_could_send_to_an_approval() -> None:
    gate = {**RAW["policy_layer"]["approval_gates"][0], "when": False}
    verified = {"==": [{"var": "request.context.identity_verified"}, True]}
    asks = {"allow": True, "requires_approval_gate": gate["gate_id"]}
    guarded = [{**PERMISSIONS[0], "requires_approval_gate": gate["gate_id"]}, *PERMISSIONS[1:]]
    for then, otherwise, left in (
        (asks, {"allow": False}, [EVAL]),
        ({"allow": True}, {"allow": False}, [LOOKUP, EVAL]),
        ({"allow": True}, {**asks, "allow": False}, [LOOKUP, EVAL]),  # it waits
    ):
        by = program(rule("R", when=verified, then=then, otherwise=otherwise), gates=[gate])
        denied = by.decide(facts(identity_verified=False))
        result = tools({"permissions": guarded}, by).surface(denied, "destructive", READS_ON_DENY)
        assert names(result) == left
        if LOOKUP not in left:
            assert result.left_out[0].reasons[0].message == (
                "the intent is denied, and a rule could require an approval of its calls"
            )


def test_a_denial_leaves_nothing_that_a_rule_of_the_intent_could_prohibit() -> None:
    could = rule("R_NO", when={"==": [{"var": "request.context.kind"}, "x"]}, then={"prohibits": [LOOKUP]})
    elsewhere = rule("R_ELSE", applies_to={"intent": "support.other"}, then={"prohibits": [EVAL]})
    by = program(rule(then={"allow": False}), could, elsewhere)
    result = tools({}, by).surface(by.decide(facts(kind="y")), "destructive", READS_ON_DENY)
    assert names(result) == [EVAL]
    assert why(result)[LOOKUP] == ["intent_denied"]


def test_after_a_guardrail_was_triggered_nothing_is_left() -> None:
    decision = EXAMPLE_PROGRAM.decide(facts(signals=["refund_without_identity"]))
    assert decision.guardrails.triggered
    assert names(TOOLS.surface(decision, "destructive", READS_ON_DENY)) == []


@cases(
    ("right", "mode", "kept"),
    [
        ("execute", "destructive", 3),
        ("escalate", "destructive", 3),
        ("execute", "delegated", 2),
        ("recommend", "destructive", 2),
        ("propose", "destructive", 2),
    ],
)
def test_an_intent_reaches_only_what_its_decisions_can_use(right: Any, mode: ApprovalMode, kept: int) -> None:  # noqa: ANN401
    (spec,) = EXAMPLE.decision_layer.decision_specs
    reach = IntentReach.of_decisions([replace(spec, decision_right=right, approval_mode=mode)])
    result = TOOLS.surface(EXAMPLE_PROGRAM.decide(facts()), "destructive", reach)
    assert len(result.tools) == kept
    assert why(result) == ({} if kept == 3 else {REFUND: ["beyond_decisions"]})


def test_an_intent_without_a_decision_reaches_reading() -> None:
    reach = IntentReach.of_decisions([])
    result = TOOLS.surface(EXAMPLE_PROGRAM.decide(facts()), "destructive", reach)
    assert names(result) == [LOOKUP, EVAL]
    assert result.left_out[0].reasons[0].message == "is destructive, and no decision is bound to the intent"


def test_several_decisions_reach_what_the_highest_can_use_and_keep_what_all_keep() -> None:
    (spec,) = EXAMPLE.decision_layer.decision_specs
    reads = replace(spec, decision_key="look", approval_mode="read_only", on_deny="read")
    assert IntentReach.of_decisions([reads, spec]) == IntentReach(
        mode="destructive", on_deny="none", decisions=("look", spec.decision_key)
    )
    assert IntentReach.of_decisions([reads]).on_deny == "read"


def test_a_permission_for_other_intents_is_none_for_this_one() -> None:
    scoped = [{**PERMISSIONS[2], "intents": ["support.return"]}, *PERMISSIONS[:2]]
    result = tools({"permissions": scoped}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    assert names(result) == [LOOKUP, EVAL]
    assert why(result) == {REFUND: ["not_for_intent"]}
    scoped[0]["intents"].append("support.refund")
    result = tools({"permissions": scoped}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    assert names(result) == [LOOKUP, EVAL, REFUND]


def test_a_permission_that_denies_some_intents_leaves_the_tool_to_others() -> None:
    denying = {**PERMISSIONS[0], "permission_id": "p_no", "allow": False, "intents": ["support.other"]}
    result = tools({"permissions": [*PERMISSIONS, denying]}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    assert LOOKUP in names(result)
    denying["intents"] = ["support.refund"]
    result = tools({"permissions": [*PERMISSIONS, denying]}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    assert why(result) == {LOOKUP: ["permission_denies"]}


def test_what_a_rule_in_effect_prohibits_is_left_out_and_the_rule_is_named() -> None:
    by = program(rule("R_NO", then={"allow": True, "prohibits": [LOOKUP]}))
    surface = tools({}, by).surface(by.decide(facts()), "destructive", EXECUTES)
    assert names(surface) == [EVAL, REFUND]
    assert [(reason.kind, reason.by) for reason in surface.left_out[0].reasons] == [("prohibited", ("R_NO",))]


@proves("context-pack:tooling-layer:permissions-expose")
def test_a_capability_that_no_permission_allows_is_left_out() -> None:
    adapters = [{**REGISTRY[0], "capabilities": ["lookup", "search"]}, *REGISTRY[1:]]
    granted = [*PERMISSIONS, {**PERMISSIONS[1], "permission_id": "p_no", "allow": False}]
    surface = tools({"adapter_registry": adapters, "permissions": granted}, EXAMPLE_PROGRAM).surface(
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    assert names(surface) == [LOOKUP, REFUND]
    assert why(surface) == {"adp_orders.search": ["not_permitted"], EVAL: ["permission_denies"]}
    assert surface.left_out[1].reasons[0].by == ("p_no",)


@proves("context-pack:policy-layer:constrains-never-creates")
def test_no_rule_and_no_permission_surfaces_what_no_adapter_declares() -> None:
    made_up = {**PERMISSIONS[0], "permission_id": "p_new", "capability": "delete"}
    by = program(rule(then={"allow": True, "requires": ["adp_orders.delete"], "approval_mode": "read_only"}))
    surface = tools({"permissions": [*PERMISSIONS, made_up]}, by).surface(by.decide(facts()), "destructive", EXECUTES)
    assert names(surface) == [LOOKUP, EVAL, REFUND]
    assert why(surface) == {"adp_orders.delete": ["not_in_registry"]}
    assert surface.left_out[0].at == "/tooling_layer/permissions/3"


def test_every_reason_is_told_in_the_order_in_which_the_surface_is_computed() -> None:
    denying = [{**PERMISSIONS[2], "allow": False}]
    by = program(rule(then={"allow": False, "prohibits": [REFUND]}))
    surface = tools({"permissions": denying}, by).surface(by.decide(facts(mode="read_only")), "read_only", EXECUTES)
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
        EXAMPLE_PROGRAM.decide(facts()), "destructive", EXECUTES
    )
    refund = surface.tools[2]
    assert refund.permission_ids == ("p_issue_refund", "p_also")
    assert [bound.argument for bound in refund.bounds] == ["amount_inr", "idempotency_key", "currency"]
    assert refund.produces == ("refund",)


@cases(("asked", "declared"), list(itertools.product(APPROVAL_MODES, APPROVAL_MODES)))
def test_policy_may_choose_a_lower_mode_and_never_a_higher_one(asked: ApprovalMode, declared: ApprovalMode) -> None:
    by = program(rule(then={"allow": True, "approval_mode": asked}))
    adapters = [{**adapter, "approval_mode": declared} for adapter in REGISTRY]
    surface = tools({"adapter_registry": adapters}, by).surface(by.decide(facts()), "destructive", EXECUTES)
    ranks = [APPROVAL_MODES.index(adapter) for adapter in (asked, declared, surface.tools[0].effective_mode)]
    assert ranks[2] == min(ranks[:2])
    assert surface.tools[0].declared_mode == declared


def test_the_bounds_of_rules_in_effect_hold_for_every_tool() -> None:
    then = {"allow": True, "arg_constraints": {"order_id": {"pattern": "^ord_"}}}
    by = program(rule(then=then))
    surface = tools({}, by).surface(by.decide(facts()), "destructive", EXECUTES)
    assert all(tool.bounds[-1].origin == "rule:B#R" for tool in surface.tools)


def test_a_decision_of_other_rules_prohibits_nothing_here() -> None:
    assert names(TOOLS.surface(decide(rule()), "destructive", EXECUTES)) == [LOOKUP, EVAL, REFUND]


def test_a_capability_with_a_mode_of_its_own_can_do_no_more_than_that() -> None:
    orders = {
        **REGISTRY[0],
        "approval_mode": "destructive",
        "capability_specs": {"lookup": {"approval_mode": "network"}},
    }
    kept = tools({"adapter_registry": [orders, *REGISTRY[1:]]}, EXAMPLE_PROGRAM)
    for ceiling in APPROVAL_MODES:
        surface = kept.surface(EXAMPLE_PROGRAM.decide(facts(mode=ceiling)), ceiling, EXECUTES)
        assert (LOOKUP in names(surface)) is (ceiling not in {"read_only", "local_write"})
        assert all(tool.declared_mode == "network" for tool in surface.tools if tool.capability_id == LOOKUP)


def test_a_capability_above_its_adapter_is_refused() -> None:
    orders = {**REGISTRY[0], "capability_specs": {"lookup": {"approval_mode": "network"}}}
    with pytest.raises(ModeAboveAdapter, match=r"adp_orders\.lookup is network, above its adapter") as caught:
        tools({"adapter_registry": [orders, *REGISTRY[1:]]}, EXAMPLE_PROGRAM)
    assert caught.value.at == "/tooling_layer/adapter_registry/0/capability_specs/lookup/approval_mode"
