"""Inputs as files and envelopes hold them."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contextplane.compiler.compile import compile_context
from contextplane.compiler.reading import read_evidence, read_memories, read_request, read_run_context
from contextplane.compiler.refusals import InputInvalid
from contextplane.model.evidence import Evidence
from tests.unit.compiler.scenario import CASE, compiled, evidence, inputs, plain, put, view_of

READERS: dict[str, Callable[[Any], object]] = {
    "run_context": read_run_context,
    "request": read_request,
    "evidence": read_evidence,
    "memories": read_memories,
}
RULE = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/if"


def test_claims_without_a_field_of_their_own_are_kept_and_can_be_read_by_rules() -> None:
    run = read_run_context(put(CASE["run_context"], {"/user/region": "south", "/user/tenure_days": 40}))
    assert (run.user.further, run.user.tenure_days) == ({"region": "south"}, 40)
    rule = {RULE: {"==": [{"var": "user.region"}, "south"]}}
    south = compiled(pack=rule, run={"/user/region": "south"}).policy_decision
    north = compiled(pack=rule, run={"/user/region": "north"}).policy_decision
    assert south is not None
    assert north is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" in south.matched_rule_ids
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" not in north.matched_rule_ids


def test_a_further_claim_takes_no_known_one_over() -> None:
    run = read_run_context(put(CASE["run_context"], {"/user/further": {"role": "owner"}}))
    assert run.user.role == "support_agent"
    rule = {RULE: {"==": [{"var": "user.role"}, "owner"]}}
    given = inputs(pack=rule)
    claims = msgspec.structs.replace(run.user, further={"role": "owner"})
    context = compile_context(view_of(given), msgspec.structs.replace(run, user=claims), read_request(given["request"]))
    assert context.policy_decision is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" not in context.policy_decision.matched_rule_ids


def test_evidence_is_typed_or_plain() -> None:
    typed, text = read_evidence([evidence(), "session:sess_1"])
    assert isinstance(typed, Evidence)
    assert text == "session:sess_1"


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("run_context#", []),
        ("run_context#/safety_mode", "careful"),
        ("run_context#/run_budget/total_tokens", "1"),
        ("run_context#/agent/principal_chain/1/kind", "x"),
        ("run_context#/agent", {"agent_id": "a", "more": 1}),
        ("request#/context_pack_refs", []),
        ("request#/context_pack_refs/0", "ctxpack.support"),
        ("request#/context_pack_refs/0", "ctxpack.support@^1.0.0"),
        ("request#/input/message", ""),
        ("request#/mode", "later"),
        ("evidence#/0/evidence_ref", "http://x"),
        ("evidence#/1/trust", "surely"),
        ("evidence#/1", 7),
        ("memories#/0/state", "known"),
    ],
)
def test_what_is_not_of_its_form_is_refused_with_its_place(at: str, value: object) -> None:
    name, _, place = at.partition("#")
    documents = {**CASE, "evidence": [evidence(), evidence()]}
    with pytest.raises(InputInvalid) as refused:
        READERS[name](put(documents[name], {place: value}) if place else value)
    assert refused.value.at == at
    assert refused.value.details == {"stage": "read"}
    assert " - at " not in refused.value.message


@pytest.mark.parametrize(
    "at", ["run_context#/safety_mode", "run_context#/run_budget/total_tokens", "request#/mode", "evidence#/0/trust"]
)
def test_half_of_a_character_is_refused_wherever_it_stands(at: str) -> None:
    name, _, place = at.partition("#")
    documents = {**CASE, "evidence": [evidence()]}
    with pytest.raises(InputInvalid) as refused:
        READERS[name](put(documents[name], {place: "\ud800"}))
    assert (refused.value.at, refused.value.details) == (f"{name}#", {"stage": "read"})


def test_the_worked_run_context_and_request_are_read_and_written_back() -> None:
    written = plain(read_run_context(CASE["run_context"]))
    assert put(written, {"/metadata": {}, "/agent/identity_claim/version": "ctxid/1"}) == CASE["run_context"]
    assert plain(read_request(CASE["request"])) == CASE["request"]


def test_conditions_find_lists_where_values_hold_tuples() -> None:
    rule = {RULE: {"in": ["payments.refund", {"var": "user.delegation.scopes"}]}}
    verdict = compiled(pack=rule).policy_decision
    assert verdict is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" in verdict.matched_rule_ids
