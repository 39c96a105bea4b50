"""The facts: seven of them, plain JSON, and nothing else."""

from typing import Any

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.facts import Facts, parse_safety_mode
from tests.support.cases import cases
from tests.unit.policy.scenes import decide, facts, rule

WHOLE: dict[str, Any] = {
    "request": {"intent": "i", "message": "m", "context": {}},
    "user": {"role": "r"},
    "agent": {},
    "tenant_id": "t",
    "intent": "i",
    "safety_mode": "network",
    "run": {},
}


def deep(levels: int) -> Any:  # noqa: ANN401  any JSON
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


@cases(
    ("change", "code", "at"),
    [
        ({"safety_mode": "reckless"}, "safety_mode_unknown", "/safety_mode"),
        ({"safety_mode": ""}, "safety_mode_unknown", "/safety_mode"),
        ({"safety_mode": None}, "safety_mode_unknown", "/safety_mode"),
        ({"safety_mode": 4}, "safety_mode_unknown", "/safety_mode"),
        ({"safety_mode": "Destructive"}, "safety_mode_unknown", "/safety_mode"),
        ({"request": "text"}, "facts_refused", "/request"),
        ({"user": None}, "facts_refused", "/user"),
        ({"agent": []}, "facts_refused", "/agent"),
        ({"run": 1}, "facts_refused", "/run"),
        ({"intent": ""}, "facts_refused", "/intent"),
        ({"tenant_id": 5}, "facts_refused", "/tenant_id"),
        ({"request": {"intent": "another"}}, "facts_refused", "/request/intent"),
        ({"request": {"context": ["x"]}}, "facts_refused", "/request/context"),
        ({"request": {"context": {"signals": "fraud"}}}, "facts_refused", "/request/context/signals"),
        ({"request": {"context": {"signals": [True]}}}, "facts_refused", "/request/context/signals"),
        ({"request": {"channel": ["email"]}}, "facts_refused", "/request/channel"),
        ({"request": {"channel": ""}}, "facts_refused", "/request/channel"),
        ({"user": {"role": True}}, "facts_refused", "/user/role"),
        ({"request": {"context": {"n": 2**53}}}, "json_integer_unsafe", "/request/context/n"),
        ({"user": {"n": float("nan")}}, "json_not_finite", "/user/n"),
        ({"run": {"x": deep(300)}}, "json_too_deep", None),
        ({"agent": {"x": b"bytes"}}, "json_type", "/agent/x"),
        ({"user": {"role": "\ud800"}}, "json_lone_surrogate", "/user/role"),
    ],
)
def test_what_is_no_fact_of_a_run_is_refused_with_its_place(change: dict[str, Any], code: str, at: str | None) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        Facts.of(**{**WHOLE, **change})
    assert refused.value.code == code
    assert refused.value.family == "refused"
    assert at is None or refused.value.at == at


@cases("mode", APPROVAL_MODES)
def test_every_step_of_the_ladder_is_a_safety_mode(mode: str) -> None:
    assert parse_safety_mode(mode) == mode
    assert Facts.of(**{**WHOLE, "safety_mode": mode}).safety_mode == mode


def test_a_member_that_is_null_is_left_out_at_any_depth_and_a_null_in_a_list_stays() -> None:
    values = {**WHOLE, "request": {"context": {"a": None, "b": {"c": None, "d": [None, {"e": None}]}}}}
    assert Facts.of(**values).data["request"] == {"context": {"b": {"d": [None, {}]}}}


def test_conditions_see_seven_names_and_nothing_else() -> None:
    assert sorted(facts().data) == ["agent", "intent", "request", "run", "safety_mode", "tenant_id", "user"]
    for path in ("pack", "policy_layer", "tools", "now", "env", "request_id"):
        assert [fact.path for fact in decide(rule(when={"!!": [{"var": path}]})).missing_facts] == [path]
    whole = {"===": [{"var": "tenant_id"}, {"var": ["tenant_id", ""]}]}
    assert decide(rule(when=whole)).allowed


def test_a_key_of_a_scope_reads_its_fact() -> None:
    asked = facts(channel="email")
    assert [asked.scope_value(key) for key in ("intent", "channel", "role", "safety_mode", "tenant_id")] == [
        *("support.refund", "email", "support_agent", "destructive", "tenant_acme_prod")
    ]
