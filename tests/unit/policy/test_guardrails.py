"""Guardrails: what triggers them, and that nothing overrides them."""

from typing import Any

import pytest

from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, LACKING, decide, facts, rule

WHEN = {"id": "big", "when": {">": [{"var": "request.context.refund_amount"}, 1000]}, "message": "Too much."}


def test_all_declared_labels_are_listed_and_none_is_triggered_by_itself() -> None:
    verdict = EXAMPLE_PROGRAM.decide(facts()).guardrails
    assert (verdict.must_refuse, verdict.must_escalate) == (("refund_without_identity",), ("fraud_signal_high",))
    assert verdict.triggered == ()


@pytest.mark.parametrize(
    ("values", "by"),
    [
        ({"signals": ["fraud_signal_high"]}, ("signal",)),
        ({"fraud_signal_high": True}, ("label",)),
        ({"fraud_signal_high": True, "signals": ["x", "fraud_signal_high"]}, ("signal", "label")),
    ],
)
def test_a_signal_or_a_true_label_of_the_context_triggers_a_guardrail(
    values: dict[str, Any], by: tuple[str, ...]
) -> None:
    verdict = EXAMPLE_PROGRAM.decide(facts(**values)).guardrails
    assert verdict.escalations == ("fraud_signal_high",)
    assert verdict.refusals == ()
    assert [guardrail.by for guardrail in verdict.triggered] == [by]


@cases("value", [True, "true", "false", "no", "", 1, 0, [], ["x"], {}, {"sure": False}])
def test_a_label_that_is_given_as_anything_but_false_triggers_a_guardrail(value: object) -> None:
    decision = EXAMPLE_PROGRAM.decide(facts(fraud_signal_high=value))
    assert [(guardrail.id, guardrail.by) for guardrail in decision.guardrails.triggered] == [
        ("fraud_signal_high", ("label",))
    ]
    assert not decision.allowed


@cases("values", [{"fraud_signal_high": False}, {"fraud_signal_high": None}, {"signals": ["fraud"]}, {"signals": []}])
def test_a_label_that_is_false_or_null_and_a_signal_of_another_name_trigger_nothing(values: dict[str, Any]) -> None:
    assert EXAMPLE_PROGRAM.decide(facts(**values)).guardrails.triggered == ()


@proves("context-pack:policy-layer:guardrails-first")
@pytest.mark.parametrize(("kind", "denial"), [("must_refuse", "refusal"), ("must_escalate", "escalation")])
def test_a_guardrail_whose_condition_holds_overrides_every_rule_that_allows(kind: str, denial: str) -> None:
    decision = decide(rule(), guardrails={kind: ["other", WHEN]})
    assert not decision.allowed
    assert [(denial.kind, denial.by, denial.reason) for denial in decision.denials] == [(denial, "big", "Too much.")]
    assert [guardrail.by for guardrail in decision.guardrails.triggered] == [("when",)]
    assert decision.matched_rule_ids == ("R",)
    assert decide(rule(), guardrails={kind: ["other", WHEN]}, by=facts(refund_amount=1)).allowed


def test_the_guardrails_stand_before_the_rules_in_what_is_told() -> None:
    decision = decide(rule(then={"allow": False, "reason": "No."}), guardrails={"must_refuse": [WHEN]})
    assert decision.reason == "Too much.; No."


def test_a_guardrail_that_cannot_be_judged_is_triggered() -> None:
    broken = {"id": "broken", "when": {">": [{"var": "user.role"}, 1]}}
    decision = decide(rule(), guardrails={"must_refuse": [WHEN, broken]}, by=facts(refund_amount=1))
    (guardrail,) = decision.guardrails.triggered
    assert (guardrail.id, guardrail.by) == ("broken", ("error",))
    assert guardrail.error is not None
    assert guardrail.error.startswith("cannot be evaluated")
    assert not decision.allowed


SCORE = {"var": "request.context.fraud_score"}


@cases(
    ("when", "by"),
    [
        ({"==": [SCORE, "high"]}, "missing"),
        ({">": [SCORE, 3000]}, "missing"),
        ({"and": [{"==": [SCORE, "high"]}, False]}, "missing"),
        ({"!=": [SCORE, "low"]}, "when"),
        ({">": [{"max": [SCORE, 1]}, 3000]}, "missing"),
        ({"<": [{"if": [False, 1]}, SCORE]}, "missing"),
        ({"and": [{"!=": [SCORE, "low"]}, {"==": [1, {"var": "user.role"}]}]}, "error"),
    ],
)
@cases(("kind", "denial"), [("must_refuse", "refusal"), ("must_escalate", "escalation")])
def test_nobody_escapes_a_guardrail_by_leaving_out_a_fact_that_it_reads(
    when: dict[str, Any], by: str, kind: str, denial: str
) -> None:
    decision = decide(rule(), guardrails={kind: [{"id": "risky", "when": when}]})
    assert not decision.allowed
    (guardrail,) = decision.guardrails.triggered
    assert (guardrail.id, guardrail.by, guardrail.missing) == ("risky", (by,), ("request.context.fraud_score",))
    (denied,) = decision.denials
    suffix = " (request.context.fraud_score is missing)" if by == "missing" else ""
    assert (denied.kind, denied.by, denied.reason) == (denial, "risky", f"{kind}: risky{suffix}")


def test_the_message_of_a_guardrail_is_told_with_what_is_missing() -> None:
    decision = decide(rule(), guardrails={"must_refuse": [WHEN]}, by=facts(refund_amount=LACKING))
    assert decision.reason == "Too much. (request.context.refund_amount is missing)"


@cases(
    "when",
    [
        {"==": [{"var": ["request.context.fraud_score", "low"]}, "high"]},
        {"and": [{"!": [{"missing": ["request.context.fraud_score"]}]}, {"==": [SCORE, "high"]}]},
        {"and": [{"==": [{"var": "user.role"}, "manager"]}, {"==": [SCORE, "high"]}]},
        {"some": [{"var": ["request.context.items", []]}, {"==": [{"var": "kind"}, "x"]}]},
    ],
)
def test_a_guardrail_that_has_a_default_asks_with_missing_or_does_not_come_so_far_stays_quiet(
    when: dict[str, Any],
) -> None:
    decision = decide(rule(), guardrails={"must_refuse": [{"id": "risky", "when": when}]})
    assert decision.allowed
    assert decision.guardrails.triggered == ()


def test_a_guardrail_is_triggered_by_an_element_that_lacks_what_it_reads() -> None:
    dear = {"id": "dear", "when": {"some": [{"var": "request.context.items"}, {">": [{"var": "amount"}, 1]}]}}
    decision = decide(rule(), guardrails={"must_escalate": [dear]}, by=facts(items=[{"price": 5}]))
    assert [guardrail.missing for guardrail in decision.guardrails.triggered] == [("request.context.items[].amount",)]
    assert decide(rule(), guardrails={"must_escalate": [dear]}, by=facts(items=[{"amount": 1}])).allowed


def test_a_signal_of_a_guardrail_is_told_beside_what_its_condition_missed() -> None:
    when = {"id": "risky", "when": {"==": [SCORE, "high"]}}
    decision = decide(rule(), guardrails={"must_refuse": [when]}, by=facts(signals=["risky"], risky=1))
    assert [guardrail.by for guardrail in decision.guardrails.triggered] == [("missing", "signal", "label")]
