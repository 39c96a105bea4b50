"""Guardrails: what triggers them, and that nothing overrides them."""

from typing import Any

import pytest

from contextplane.testing.proofs import proves
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, decide, facts, rule

WHEN = {"id": "big", "when": {">": [{"var": "request.context.refund_amount"}, 1000]}, "message": "Too much."}


def test_all_declared_labels_are_listed_and_none_is_triggered_by_itself() -> None:
    verdict = EXAMPLE_PROGRAM.decide(facts()).guardrails
    assert (verdict.must_refuse, verdict.must_escalate) == (("refund_without_identity",), ("fraud_signal_high",))
    assert verdict.triggered == ()


@pytest.mark.parametrize(
    ("given", "by"),
    [
        ({"signals": ["fraud_signal_high"]}, ("signal",)),
        ({"fraud_signal_high": True}, ("label",)),
        ({"fraud_signal_high": True, "signals": ["x", "fraud_signal_high"]}, ("signal", "label")),
    ],
)
def test_a_signal_or_a_true_label_of_the_context_triggers_a_guardrail(
    given: dict[str, Any], by: tuple[str, ...]
) -> None:
    verdict = EXAMPLE_PROGRAM.decide(facts(**given)).guardrails
    assert verdict.escalations == ("fraud_signal_high",)
    assert verdict.refusals == ()
    assert [one.by for one in verdict.triggered] == [by]


@pytest.mark.parametrize(
    "given", [{"fraud_signal_high": "true"}, {"fraud_signal_high": 1}, {"signals": ["fraud"]}, {"signals": []}]
)
def test_what_only_looks_like_a_signal_triggers_nothing(given: dict[str, Any]) -> None:
    assert EXAMPLE_PROGRAM.decide(facts(**given)).guardrails.triggered == ()


@proves("context-pack:policy-layer:guardrails-first")
@pytest.mark.parametrize(("kind", "denial"), [("must_refuse", "refusal"), ("must_escalate", "escalation")])
def test_a_guardrail_whose_condition_holds_overrides_every_rule_that_allows(kind: str, denial: str) -> None:
    decision = decide(rule(), guardrails={kind: ["other", WHEN]})
    assert not decision.allowed
    assert [(one.kind, one.by, one.reason) for one in decision.denials] == [(denial, "big", "Too much.")]
    assert [one.by for one in decision.guardrails.triggered] == [("when",)]
    assert decision.matched_rule_ids == ("R",)
    assert decide(rule(), guardrails={kind: ["other", WHEN]}, by=facts(refund_amount=1)).allowed


def test_the_guardrails_stand_before_the_rules_in_what_is_told() -> None:
    decision = decide(rule(then={"allow": False, "reason": "No."}), guardrails={"must_refuse": [WHEN]})
    assert decision.reason == "Too much.; No."


def test_a_guardrail_that_cannot_be_judged_is_triggered() -> None:
    broken = {"id": "broken", "when": {">": [{"var": "user.role"}, 1]}}
    decision = decide(rule(), guardrails={"must_refuse": [WHEN, broken]}, by=facts(refund_amount=1))
    (one,) = decision.guardrails.triggered
    assert (one.id, one.by) == ("broken", ("error",))
    assert one.error is not None
    assert one.error.startswith("cannot be evaluated")
    assert not decision.allowed


def test_a_guardrail_that_reads_a_missing_fact_is_judged_as_if_it_were_null() -> None:
    quiet = {"id": "quiet", "when": {"==": [{"var": "request.context.fraud_score"}, "high"]}}
    spoken = {"id": "spoken", "when": {"!=": [{"var": "request.context.fraud_score"}, "low"]}}
    decision = decide(rule(), guardrails={"must_refuse": [quiet], "must_escalate": [spoken]})
    assert decision.guardrails.refusals == ()
    assert decision.guardrails.escalations == ("spoken",)
