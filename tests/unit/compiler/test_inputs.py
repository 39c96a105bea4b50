"""Inputs as files and envelopes hold them."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.errors import InputInvalid, type_problem
from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.model.evidence import Evidence
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, compile_scenario, evidence, inputs, plain, put, view_of

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
    south = compile_scenario(pack=rule, run={"/user/region": "south"}).policy_decision
    north = compile_scenario(pack=rule, run={"/user/region": "north"}).policy_decision
    assert south is not None
    assert north is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" in south.matched_rule_ids
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" not in north.matched_rule_ids


def test_a_further_claim_takes_no_known_one_over() -> None:
    run = read_run_context(put(CASE["run_context"], {"/user/further": {"role": "owner"}}))
    assert run.user.role == "support_agent"
    rule = {RULE: {"==": [{"var": "user.role"}, "owner"]}}
    plain_inputs = inputs(pack=rule)
    context = compile_draft(view_of(plain_inputs), run, read_request(plain_inputs["request"])).seal
    assert context.policy_decision is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" not in context.policy_decision.matched_rule_ids


@pytest.mark.parametrize("role", ["support_agent", None])
def test_a_claim_that_has_a_field_is_refused_among_further_ones(role: str | None) -> None:
    plain_inputs = inputs()
    run, request = read_run_context(plain_inputs["run_context"]), read_request(plain_inputs["request"])
    claims = msgspec.structs.replace(run.user, role=role, further={"role": "owner", "region": "south"})
    for sent, by, name in (
        (request, msgspec.structs.replace(run, user=claims), "run_context"),
        (msgspec.structs.replace(request, user=claims), run, "request"),
    ):
        with pytest.raises(InputInvalid) as refused:
            compile_draft(view_of(plain_inputs), by, sent)
        assert refused.value.at == f"{name}#/user/further/role"


def test_evidence_is_typed_or_plain() -> None:
    typed, text = read_evidence([evidence(), "session:sess_1"])
    assert isinstance(typed, Evidence)
    assert text == "session:sess_1"


@cases(
    ("at", "value"),
    [
        ("run_context#", []),
        ("run_context#/safety_mode", "careful"),
        ("run_context#/run_budget/total_tokens", "1"),
        ("run_context#/agent/principal_chain/1/kind", "x"),
        ("run_context#/agent/more", 1),
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
    assert (refused.value.at or "").startswith(at)
    assert refused.value.details["stage"] == "read"
    assert refused.value.hint


@cases("at", ["run_context#/safety_mode", "run_context#/run_budget/total_tokens", "request#/mode", "evidence#/0/trust"])
def test_half_of_a_character_is_refused_wherever_it_stands(at: str) -> None:
    name, _, place = at.partition("#")
    documents = {**CASE, "evidence": [evidence()]}
    with pytest.raises(InputInvalid) as refused:
        READERS[name](put(documents[name], {place: "\ud800"}))
    assert (refused.value.at, refused.value.details["stage"]) == (f"{name}#", "read")


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
UNSPOKEN = [SECRET, "my pin is 4711", "4711", "Straße", "a" * 25, "x\ny", "4111 1111 1111 1111", "user@example.com"]
NAMES = [
    *("run_context#/safety_mode", "run_context#/agent/principal_chain/0/kind"),
    *(
        "run_context#/user/delegation/auth_type",
        "request#/mode",
        "request#/context_pack_refs/0",
        "request#/input/locale",
    ),
    *("evidence#/0/trust", "evidence#/0/classification", "evidence#/0/evidence_ref", "memories#/0/state"),
    *("memories#/0/tier", "memories#/0/write_class"),
]


@cases("at", NAMES)
@cases("value", UNSPOKEN, ids=ascii)
def test_a_wrong_value_is_not_repeated_unless_it_is_a_short_plain_word(at: str, value: str) -> None:
    name, _, place = at.partition("#")
    documents = {**CASE, "evidence": [evidence()]}
    with pytest.raises(InputInvalid) as refused:
        READERS[name](put(documents[name], {place: value}))
    assert refused.value.at == at
    assert value not in f"{refused.value} {refused.value.details}"
    assert refused.value.hint


@cases(
    ("at", "value", "hint"),
    [
        ("run_context#/safety_mode", "wild", "'wild' is none of the known values"),
        ("run_context#/safety_mode", "destructiv", "read_only, local_write, network, delegated, destructive"),
        ("run_context#/safety_mode", None, "read_only, local_write, network, delegated, destructive"),
        ("request#/mode", "btach", "did you mean batch?"),
        ("evidence#/0/trust", "surely", "authoritative, unknown, untrusted, verified"),
        ("run_context#/run_budget/total_tokens", 4111111111111111.5, "not this number"),
        ("run_context#/run_budget/total_tokens", 1.5, "not 1.5"),
        ("request#/input/message", {"a": 1}, "not an object"),
        ("request#/input/message", [1], "not a list"),
        ("request#/input/message", True, "not true"),
    ],
)
def test_what_may_stand_there_is_told(at: str, value: object, hint: str) -> None:
    name, _, place = at.partition("#")
    with pytest.raises(InputInvalid, match=re.escape(hint)):
        READERS[name](put({**CASE, "evidence": [evidence()]}[name], {place: value}))


@pytest.mark.parametrize("name", [SECRET, f"{SECRET}/x"])
def test_the_name_of_a_member_that_looks_like_a_secret_is_not_repeated(name: str) -> None:
    with pytest.raises(InputInvalid) as refused:
        read_run_context({**CASE["run_context"], name: 1})
    assert SECRET not in f"{refused.value} {refused.value.details}"


def test_all_that_is_wrong_is_told_together_and_of_very_much_the_first() -> None:
    changes = {"/safety_mode": "wild", "/run_budget/total_tokens": "1", "/agent/agent_urn": "x"}
    with pytest.raises(InputInvalid) as refused:
        read_run_context(put(CASE["run_context"], changes))
    assert {problem.at for problem in refused.value.problems} == set(changes)
    with pytest.raises(InputInvalid) as many:
        read_evidence([evidence(trust="surely")] * 200)
    assert (len(many.value.problems), many.value.problems[-1].message) == (51, "and more than these")
    assert "and at least 50 more" in many.value.message


@cases("odd", [{1: 2}, {"a": {1}}, {"a": "\ud800"}, {"a": float("nan")}], ids=ascii)
def test_what_no_schema_can_look_at_is_refused_all_the_same(odd: object) -> None:
    with pytest.raises(InputInvalid) as refused:
        read_run_context({**CASE["run_context"], "metadata": odd, "safety_mode": "my pin is 4711"})
    assert refused.value.at == "run_context#/safety_mode"
    assert "4711" not in str(refused.value)
    whole = {key: part for key, part in CASE["run_context"].items() if key != "run_id"}
    with pytest.raises(InputInvalid) as incomplete:
        read_run_context({**whole, "metadata": odd})
    assert (incomplete.value.at or "").startswith("run_context#")
    with pytest.raises(InputInvalid) as listed:
        read_memories([{"odd": odd}])
    assert (listed.value.at or "").startswith("memories#")


def test_what_only_the_types_refuse_is_told_in_their_words_and_repeats_nothing() -> None:
    for message, words in (
        ("Invalid enum value '4711' - at `$.user.role`", "/user/role: is not of its form"),
        ("Object contains unknown field `4711`", "is not of its form"),
        ("Expected `int`, got `str` - at `$[0].a`", "/0/a: Expected `int`, got `str`"),
    ):
        problem = type_problem(msgspec.ValidationError(message))
        assert f"{problem.at}: {problem.message}".removeprefix(": ") == words


def test_the_worked_run_context_and_request_are_read_and_written_back() -> None:
    written = plain(read_run_context(CASE["run_context"]))
    assert put(written, {"/metadata": {}, "/agent/identity_claim/version": "ctxid/1"}) == CASE["run_context"]
    assert plain(read_request(CASE["request"])) == CASE["request"]


def test_conditions_find_lists_where_values_hold_tuples() -> None:
    rule = {RULE: {"in": ["payments.refund", {"var": "user.delegation.scopes"}]}}
    verdict = compile_scenario(pack=rule).policy_decision
    assert verdict is not None
    assert "R_HIGH_VALUE_REQUIRES_APPROVAL" in verdict.matched_rule_ids
