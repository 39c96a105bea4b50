"""Approval gates: which of them are active, because of what, and which are not."""

from typing import Any

from contextplane.policy.approval_gates import GateVerdict, active_gates
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, EXECUTES, LACKING, PERMISSIONS, TOOLS, facts, program, rule, tools

FINANCE = "GATE_FINANCE_APPROVAL"
GATE = {"gate_id": FINANCE, "required_approver_role": "finance_lead", "ttl_seconds": 60}


def verdict(**values: Any) -> GateVerdict:  # noqa: ANN401
    asked = facts(**values)
    decision = EXAMPLE_PROGRAM.decide(asked)
    return active_gates(EXAMPLE_PROGRAM, decision, TOOLS.surface(decision, asked.safety_mode, EXECUTES), asked)


def active(gate: dict[str, Any], *rules: dict[str, Any], **values: Any) -> GateVerdict:  # noqa: ANN401
    by, asked = program(*rules or (rule(),), gates=[gate]), facts(**values)
    decision = by.decide(asked)
    return active_gates(by, decision, tools({}, by).surface(decision, asked.safety_mode, EXECUTES), asked)


def test_a_gate_says_which_rules_and_tools_ask_for_it() -> None:
    (gate,) = verdict().active
    assert gate.gate_id == FINANCE
    assert gate.because == ("rule:R_HIGH_VALUE_REQUIRES_APPROVAL", "tool:adp_payments.issue_refund")
    assert gate.gate.required_approver_role == "finance_lead"


@proves("context-pack:policy-layer:gate-when")
@cases(
    ("values", "because"),
    [
        ({"role": "manager", "refund_amount": 3001}, ("tool:adp_payments.issue_refund",)),
        ({"role": "manager", "refund_amount": 3000}, None),
        ({"refund_amount": 3000}, None),
        ({"mode": "read_only"}, ("rule:R_HIGH_VALUE_REQUIRES_APPROVAL",)),
        ({"mode": "read_only", "role": "manager"}, None),
    ],
)
def test_a_gate_is_active_by_a_surfaced_tool_whose_condition_holds_or_by_a_rule(
    values: dict[str, Any], because: tuple[str, ...] | None
) -> None:
    gate_verdict = verdict(**values)
    assert [gate.because for gate in gate_verdict.active] == ([] if because is None else [because])
    assert len(gate_verdict.active) + len(gate_verdict.inactive) == 1
    assert all(gate.why for gate in gate_verdict.inactive)


def test_a_gate_without_a_condition_is_active_wherever_it_is_named() -> None:
    assert len(active(GATE, refund_amount=1).active) == 1
    assert len(active(GATE, refund_amount=1, mode="read_only").active) == 0


def test_a_gate_that_hangs_on_a_missing_fact_is_active() -> None:
    (gate,) = verdict(role="manager", refund_amount=LACKING).active
    assert gate.undecided == "request.context.refund_amount is missing"
    equal = {"==": [{"var": "request.context.region"}, "EU"]}
    (gate,) = active({**GATE, "when": equal}).active
    assert gate.undecided == "request.context.region is missing"
    assert active({**GATE, "when": equal}, region="IN").active == ()


def test_a_gate_that_hangs_on_what_an_element_lacks_is_active() -> None:
    dear = {"some": [{"var": "request.context.items"}, {">": [{"var": "amount"}, 1]}]}
    (gate,) = active({**GATE, "when": dear}, items=[{"amount": 1}, {}]).active
    assert gate.undecided == "request.context.items[].amount is missing"
    assert active({**GATE, "when": dear}, items=[{"amount": 1}]).active == ()


def test_a_gate_whose_condition_cannot_be_judged_is_active() -> None:
    (gate,) = active({**GATE, "when": {">": [{"var": "user.role"}, 1]}}).active
    assert gate.undecided is not None
    assert gate.undecided.startswith("its when cannot be evaluated")
    (other,) = active({**GATE, "when": {"var": "user.role"}}).active
    assert other.undecided == "its when is a text, neither true nor false"


def test_a_gate_that_a_rule_requires_needs_no_condition() -> None:
    asking = rule(then={"allow": True, "requires_approval_gate": FINANCE})
    (gate,) = active({**GATE, "when": False}, asking).active
    assert gate.because == ("rule:R",)
    assert gate.undecided is None


def test_several_gates_of_a_permission_and_of_a_rule_are_all_active() -> None:
    second, third = {**GATE, "gate_id": "GATE_LEGAL", "approvers": 2}, {**GATE, "gate_id": "GATE_RISK"}
    asking = rule(then={"allow": True, "requires_approval_gate": ["GATE_LEGAL", "GATE_RISK"]})
    by = program(asking, gates=[GATE, second, third])
    decision = by.decide(facts())
    assert decision.requires_approval_gates == ("GATE_LEGAL", "GATE_RISK")
    permissions = [*PERMISSIONS[:2], {**PERMISSIONS[2], "requires_approval_gate": [FINANCE, "GATE_RISK"]}]
    surface = tools({"permissions": permissions}, by).surface(decision, "destructive", EXECUTES)
    assert {gate.gate_id: gate.because for gate in active_gates(by, decision, surface, facts()).active} == {
        FINANCE: ("tool:adp_payments.issue_refund",),
        "GATE_LEGAL": ("rule:R",),
        "GATE_RISK": ("rule:R", "tool:adp_payments.issue_refund"),
    }


def test_calls_wait_by_their_permission_or_where_a_rule_asks_if_they_change_something() -> None:
    reading = {**PERMISSIONS[0], "requires_approval_gate": "GATE_READ"}
    gates = [GATE, {**GATE, "gate_id": "GATE_READ"}, {**GATE, "gate_id": "GATE_RULE"}]
    by = program(rule(then={"allow": True, "requires_approval_gate": "GATE_RULE"}), gates=gates)
    decision = by.decide(facts())
    surface = tools({"permissions": [reading, *PERMISSIONS[1:]]}, by).surface(decision, "destructive", EXECUTES)
    assert {gate.gate_id: gate.capabilities for gate in active_gates(by, decision, surface, facts()).active} == {
        FINANCE: ("adp_payments.issue_refund",),
        "GATE_READ": ("adp_orders.lookup",),
        "GATE_RULE": ("adp_payments.issue_refund",),
    }
    denied = program(rule(then={"allow": False, "requires_approval_gate": "GATE_RULE"}), gates=gates).decide(facts())
    surface = tools({"permissions": PERMISSIONS}, by).surface(denied, "destructive", EXECUTES)
    (gate,) = active_gates(by, denied, surface, facts()).active
    assert gate.capabilities == ()


def test_gates_stand_in_the_order_of_the_document() -> None:
    second = {**GATE, "gate_id": "A_GATE"}
    by = program(rule(then={"allow": True, "requires_approval_gate": "A_GATE"}), gates=[GATE, second])
    decision = by.decide(facts())
    gate_verdict = active_gates(
        by, decision, tools({"permissions": PERMISSIONS}, by).surface(decision, "destructive", EXECUTES), facts()
    )
    assert [gate.gate_id for gate in gate_verdict.active] == [FINANCE, "A_GATE"]
