"""Messages of guardrails: in the verdict, the prompt and the controls, by whatever a guardrail is triggered."""

from typing import Any

from contextplane.model.compiled_context import ActiveGuardrail, CompiledContext, PolicyVerdict
from tests.support.cases import cases
from tests.unit.compiler.scenario import compile_scenario

MESSAGE = "A specialist will look at this request."
LABEL = {"id": "fraud_signal_high", "message": MESSAGE}
WITH_WHEN = {**LABEL, "when": {">": [{"var": "request.context.score"}, 5]}}


def compiled(guardrail: object, context: dict[str, Any]) -> CompiledContext:
    changes = {f"/input/context/{name}": value for name, value in context.items()}
    return compile_scenario(pack={"/policy_layer/guardrails/must_escalate": [guardrail]}, request=changes)


def verdict(context: CompiledContext) -> PolicyVerdict:
    assert context.policy_decision is not None
    return context.policy_decision


@cases(
    ("guardrail", "context", "by", "missing"),
    [
        (LABEL, {"fraud_signal_high": True}, ("label",), ()),
        (LABEL, {"signals": ["fraud_signal_high"]}, ("signal",), ()),
        (WITH_WHEN, {"score": 9}, ("when",), ()),
        (WITH_WHEN, {"score": 9, "signals": ["fraud_signal_high"]}, ("when", "signal"), ()),
        (WITH_WHEN, {}, ("missing",), ("request.context.score",)),
    ],
)
def test_the_message_of_a_triggered_guardrail_is_told(
    guardrail: object, context: dict[str, Any], by: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    denied = compiled(guardrail, context)
    triggered = ActiveGuardrail(id="fraud_signal_high", kind="must_escalate", by=by, message=MESSAGE, missing=missing)
    assert verdict(denied).guardrails == (triggered,)
    assert MESSAGE in (verdict(denied).reason or "")
    assert any(denial.startswith(f"fraud_signal_high: {MESSAGE}") for denial in verdict(denied).denials)
    assert f"This request is denied: {MESSAGE.removesuffix('.')}" in denied.compiled_prompt.developer


def test_a_guardrail_that_cannot_be_evaluated_says_why() -> None:
    (triggered,) = verdict(compiled(WITH_WHEN, {"score": "high"})).guardrails
    assert triggered.by == ("error",)
    assert triggered.error is not None


def test_a_label_alone_has_no_message_and_is_told_by_its_name() -> None:
    denied = compiled("fraud_signal_high", {"fraud_signal_high": True})
    assert verdict(denied).guardrails == (ActiveGuardrail(id="fraud_signal_high", kind="must_escalate", by=("label",)),)
    assert "must_escalate: fraud_signal_high" in (verdict(denied).reason or "")
    assert denied.runtime_controls.guardrail_messages == {}
    assert "Escalate on: fraud_signal_high." in denied.compiled_prompt.system


def test_messages_of_guardrails_that_are_not_triggered_are_in_controls_and_prompt() -> None:
    allowed = compiled(LABEL, {})
    assert verdict(allowed).allowed
    assert verdict(allowed).guardrails == ()
    assert allowed.runtime_controls.guardrail_messages == {"fraud_signal_high": MESSAGE}
    assert f"Escalate on: fraud_signal_high (say: {MESSAGE})." in allowed.compiled_prompt.system
