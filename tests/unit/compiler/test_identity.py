"""The identity of a run is looked at before anything is compiled: who acts, until when, how far, and for whom."""

from typing import Any

import pytest

from contextplane.compiler.errors import IdentityUnfit
from contextplane.model.timestamp import Timestamp
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, NOW, compile_scenario

CLAIM = CASE["run_context"]["agent"]["identity_claim"]
PLACE = "/agent/identity_claim"
SECOND = Timestamp.parse(NOW).unix_seconds
READ_ONLY = {"/safety_mode": "read_only"}


def test_seconds_are_counted_from_1970_as_claims_count_them() -> None:
    assert Timestamp.parse("1970-01-01T00:00:00Z").unix_seconds == 0
    assert Timestamp.parse("2001-09-09T01:46:40.5Z").unix_seconds == 1_000_000_000


@cases(
    ("changes", "at"),
    [
        ({"run": {f"{PLACE}/sub": "agent:contextos/other@1.2.0"}}, f"run_context#{PLACE}/sub"),
        ({"run": {f"{PLACE}/sub": "agent:contextos/support-refund@1.3.0"}}, f"run_context#{PLACE}/sub"),
        ({"request": {PLACE: {**CLAIM, "sub": "agt_other"}}}, f"request#{PLACE}/sub"),
        ({"run": {f"{PLACE}/run_id": "run_0000000000000000"}}, f"run_context#{PLACE}/run_id"),
        ({"request": {PLACE: {**CLAIM, "run_id": "run_0"}}}, f"request#{PLACE}/run_id"),
        ({"run": {f"{PLACE}/exp": SECOND}, "as_of": NOW}, f"run_context#{PLACE}/exp"),
        ({"run": {f"{PLACE}/exp": SECOND - 3600}, "as_of": NOW}, f"run_context#{PLACE}/exp"),
        ({"run": {f"{PLACE}/nbf": SECOND + 1}, "as_of": NOW}, f"run_context#{PLACE}/nbf"),
        ({"run": {f"{PLACE}/exp": SECOND + 60}, "as_of": None}, f"run_context#{PLACE}/exp"),
        ({"run": {f"{PLACE}/scopes": ["tools:read", "a2a:send"]}}, f"run_context#{PLACE}/scopes"),
        ({"run": {f"{PLACE}/scopes": ["a2a:send"], **READ_ONLY}}, f"run_context#{PLACE}/scopes"),
        ({"run": {"/agent/lifecycle": "suspended"}}, "run_context#/agent/lifecycle"),
        ({"request": {"/agent/lifecycle": "Active"}}, "request#/agent/lifecycle"),
        ({"run": {"/user/delegation": None}}, "run_context#/user/delegation"),
        ({"run": {"/user/delegation": None, "/safety_mode": "delegated"}}, "run_context#/user/delegation"),
    ],
)
def test_an_unfit_identity_is_refused_with_its_place(changes: dict[str, Any], at: str) -> None:
    with pytest.raises(IdentityUnfit) as refused:
        compile_scenario(**changes)
    assert (refused.value.at, refused.value.details["stage"]) == (at, "scope")


@cases(
    "changes",
    [
        {"run": {f"{PLACE}/exp": SECOND + 1, f"{PLACE}/nbf": SECOND}, "as_of": NOW},
        {"run": {f"{PLACE}/scopes": ["tools:read"], **READ_ONLY}},
        {"run": {"/user/delegation": None, "/safety_mode": "network"}},
        {"run": {"/agent/identity_claim": None}},
        {"request": {"/agent/identity_claim": CLAIM}},
    ],
)
def test_a_fit_identity_is_compiled(changes: dict[str, Any]) -> None:
    assert compile_scenario(**changes).policy_decision is not None


def test_the_times_of_a_claim_do_not_change_what_is_compiled() -> None:
    hashes = {
        compile_scenario(run={f"{PLACE}/exp": SECOND + life}, as_of=NOW).context_ledger.compiled_context_hash
        for life in (60, 3600)
    }
    assert len(hashes) == 1
