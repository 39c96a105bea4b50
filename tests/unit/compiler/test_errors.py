"""What is not compiled at all: each refusal has a code of its own, its stage, and the place in the input."""

from typing import Any

import msgspec
import pytest

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.inputs import read_request, read_run_context
from contextplane.errors import ContextPlaneError
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.compiler.scenario import CASE, compile_scenario, evidence, inputs, memory, view_of

TOKENS = "/run_budget/bucket_tokens"
CLAIM = CASE["run_context"]["agent"]["identity_claim"]


@proves(
    "context-pack:intelligence-refs:ontology-version-exists",
    case="compile_ontology_missing-scope-pack#/intelligence_refs/ontology",
)
@proves("context-pack:structure:pack-meta", case="compile_tenant_mismatch-scope-run_context#/tenant_id")
@cases(
    ("changes", "code", "stage", "at"),
    [
        ({"ontologies": []}, "compile_ontology_missing", "scope", "pack#/intelligence_refs/ontology"),
        (
            {"ontologies": ["ont.support@2.0.0"]},
            "compile_ontology_missing",
            "scope",
            "pack#/intelligence_refs/ontology",
        ),
        ({"request": {"/tenant_id": "tenant_globex"}}, "compile_tenant_mismatch", "scope", "request#/tenant_id"),
        (
            {"request": {"/tenant_id": "tenant_globex"}, "run": {"/tenant_id": "tenant_globex"}},
            "compile_tenant_mismatch",
            "scope",
            "run_context#/tenant_id",
        ),
        (
            {"run": {"/agent/identity_claim/tenant_id": "tenant_globex"}},
            "compile_tenant_mismatch",
            "scope",
            "run_context#/agent/identity_claim/tenant_id",
        ),
        (
            {"request": {"/agent/identity_claim": {**CLAIM, "tenant_id": "tenant_globex"}}},
            "compile_tenant_mismatch",
            "scope",
            "request#/agent/identity_claim/tenant_id",
        ),
        ({"request": {"/user/user_id": "usr_1"}}, "compile_principal_mismatch", "scope", "request#/user/user_id"),
        ({"request": {"/agent/agent_id": "agt_1"}}, "compile_principal_mismatch", "scope", "request#/agent/agent_id"),
        (
            {"request": {"/agent/agent_urn": "agent:contextos/evil@1.0.0"}},
            "compile_principal_mismatch",
            "scope",
            "request#/agent/agent_urn",
        ),
        (
            {"request": {"/agent/agent_urn": "agent:contextos/a@1.0.0"}, "run": {"/agent/agent_urn": None}},
            "compile_principal_mismatch",
            "scope",
            "request#/agent/agent_urn",
        ),
        (
            {"request": {"/context_pack_refs": ["ctxpack.support@2.0.0"]}},
            "compile_pack_not_requested",
            "scope",
            "request#/context_pack_refs/0",
        ),
        (
            {"request": {"/input/intent": "support.refnud"}, "run": {"/intent": "support.refnud"}},
            "compile_intent_unknown",
            "intent",
            "request#/input/intent",
        ),
        ({"run": {"/intent": "support.return"}}, "compile_intent_mismatch", "intent", "request#/input/intent"),
        (
            {"evidence": ["session:a", evidence(tenant_id="tenant_globex")]},
            "compile_evidence_of_another_tenant",
            "evidence",
            "evidence#/1/tenant_id",
        ),
        (
            {"memories": [memory(tenant_id="tenant_globex")]},
            "compile_memory_of_another_tenant",
            "memory",
            "memories#/0/tenant_id",
        ),
        ({"run": {f"{TOKENS}/evidence": -1}}, "compile_budget_invalid", "budget", f"run_context#{TOKENS}/evidence"),
        (
            {"run": {"/run_budget/total_tokens": -1}},
            "compile_budget_invalid",
            "budget",
            "run_context#/run_budget/total_tokens",
        ),
        ({"run": {f"{TOKENS}/evidenec": 1}}, "compile_budget_invalid", "budget", f"run_context#{TOKENS}/evidenec"),
        ({"run": {TOKENS: {"policy": 1}}}, "compile_budget_invalid", "budget", f"run_context#{TOKENS}"),
        (
            {"run": {"/safety_mode": "careful"}},
            "compile_input_invalid",
            "read",
            "run_context#/safety_mode",
        ),
        (
            {"request": {"/input/context": {"signals": "fraud"}}},
            "facts_refused",
            "policy",
            "facts#/request/context/signals",
        ),
        (
            {"request": {"/input/context/refund_amount": 2**60}},
            "compile_input_invalid",
            "read",
            "request#/input/context/refund_amount",
        ),
        (
            {"request": {"/input/message": "half of a pair: \ud800"}},
            "compile_input_invalid",
            "read",
            "request#/input/message",
        ),
        (
            {"evidence": [evidence(content="half of a pair: \ud800")]},
            "compile_input_invalid",
            "read",
            "evidence#/0/content",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_refusal_names_its_stage_and_its_place(changes: dict[str, Any], code: str, stage: str, at: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        compile_scenario(**changes)
    assert (refused.value.code, refused.value.details["stage"], refused.value.at) == (code, stage, at)
    assert refused.value.hint


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@cases(
    "changes",
    [
        {"run": {f"{TOKENS}/{SECRET}": 1}},
        {"run": {"/run_budget/bucket_tokens": {"my pin is 4711": 1}}},
        {"request": {"/input/intent": SECRET}, "run": {"/intent": SECRET}},
        {"run": {"/intent": SECRET}},
        {"request": {"/tenant_id": SECRET}},
        {"evidence": [evidence(tenant_id=SECRET)]},
        {"memories": [memory(tenant_id=SECRET)]},
    ],
    ids="-".join,
)
def test_a_refusal_repeats_no_secret(changes: dict[str, Any]) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        compile_scenario(**changes)
    assert SECRET not in f"{refused.value} {refused.value.details}"
    assert "4711" not in refused.value.message


def test_an_unknown_intent_is_told_the_nearest() -> None:
    with pytest.raises(ContextPlaneError, match=r"did you mean support\.refund\?"):
        compile_scenario(request={"/input/intent": "support.refnud"}, run={"/intent": "support.refnud"})


@cases(
    "changes",
    [
        {"/policy_layer/policy_bundles/0/policy_dsl/rules/0/applies_to/intent": "support.known"},
        {"/policy_layer/policy_bundles/0/policy_dsl/rules/0/applies_to/intent": ["support.other", "support.known"]},
        {"/evaluation_layer/eval_targets/0/intent": "support.known"},
        {
            "/task_layer": {
                "task_templates": [
                    {
                        "template_id": "t",
                        "intent": "support.known",
                        "decision_key": "support.refund.execute",
                        "steps": [{"id": "s", "tool": "adp_orders.lookup"}],
                    }
                ]
            }
        },
    ],
    ids=["a rule", "a rule for several", "an evaluator target", "a task template"],
)
def test_an_intent_is_known_when_the_pack_names_it(changes: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"request": {"/input/intent": "support.known"}, "run": {"/intent": "support.known"}}
    assert compile_scenario(pack=changes, **asked).policy_decision is not None
    with pytest.raises(ContextPlaneError) as refused:
        compile_scenario(**asked)
    assert refused.value.code == "compile_intent_unknown"


def test_a_pack_that_is_shared_with_the_tenant_compiles() -> None:
    strangers: dict[str, Any] = {
        "run": {"/tenant_id": "tenant_globex", "/agent/identity_claim/tenant_id": "tenant_globex"},
        "request": {"/tenant_id": "tenant_globex"},
        "memories": [],
    }
    context = compile_scenario(pack={"/pack_meta/tenant/shared_with": ["tenant_globex"]}, **strangers)
    assert context.policy_decision is not None


def test_an_unpinned_reference_is_refused_also_when_nothing_parsed_it() -> None:
    plain_inputs = inputs()
    refs = ("ctxpack.support@1.0.0", "decision-catalog.support@latest")
    request = msgspec.structs.replace(read_request(plain_inputs["request"]), context_pack_refs=refs)
    with pytest.raises(ContextPlaneError) as refused:
        compile_draft(view_of(plain_inputs), read_run_context(plain_inputs["run_context"]), request)
    assert (refused.value.code, refused.value.at) == ("pack_ref_unpinned", "request#/context_pack_refs/1")
    assert refused.value.details["stage"] == "scope"


def test_a_safety_mode_that_nobody_read_is_refused_all_the_same() -> None:
    plain_inputs = inputs()
    run = msgspec.structs.replace(read_run_context(plain_inputs["run_context"]), safety_mode="careful")
    with pytest.raises(ContextPlaneError) as refused:
        compile_draft(view_of(plain_inputs), run, read_request(plain_inputs["request"]))
    assert (refused.value.code, refused.value.at) == ("safety_mode_unknown", "facts#/safety_mode")
    assert refused.value.details["stage"] == "policy"


@cases("value", [{1}, b"x", object(), float("nan"), {"a": {2: 3}}], ids=lambda v: type(v).__name__)
def test_what_is_no_json_is_refused_and_not_made_into_some(value: object) -> None:
    plain_inputs = inputs()
    request = read_request(plain_inputs["request"])
    request_input = msgspec.structs.replace(request.input, context={"given": value})
    with pytest.raises(ContextPlaneError) as refused:
        compile_draft(
            view_of(plain_inputs),
            read_run_context(plain_inputs["run_context"]),
            msgspec.structs.replace(request, input=request_input),
        )
    assert refused.value.code == "compile_input_invalid"
    assert (refused.value.at or "").startswith("request#/input/context/given")
    run = msgspec.structs.replace(read_run_context(plain_inputs["run_context"]), metadata={"given": value})
    with pytest.raises(ContextPlaneError) as refused:
        compile_draft(view_of(plain_inputs), run, request)
    assert (refused.value.at or "").startswith("run_context#/metadata/given")
