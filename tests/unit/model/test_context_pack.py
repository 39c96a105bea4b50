"""The ten layers: which fields each part has, that no other is let in, and that a wrong type is refused."""

from typing import Any

import msgspec
import pytest

from contextplane.authoring.gates.table import judge_pack
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.terms import APPROVAL_MODES, at_most
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, changed, part, with_changes

BUNDLE = "/policy_layer/policy_bundles/0"
DECISION_FIELDS = (
    "decision_key version owner_role required_evidence allowed_outcomes approval_mode decision_right "
    "inputs_schema_ref outputs_schema_ref"
)
FIELDS: dict[str, tuple[str, str]] = {
    # place: the required fields, and those that may be absent
    "/contract_meta": ("contract_name contract_version issuer created_at compatibility", ""),
    "/contract_meta/compatibility": ("requires", ""),
    "/pack_meta": ("pack_id pack_version tenant environment_defaults ttl_seconds data_classification", ""),
    "/pack_meta/tenant": ("tenant_id name", "shared_with"),
    "/pack_meta/environment_defaults": ("language timezone currency region", ""),
    "/intelligence_refs": ("", "ontology knowledge_graph identity_layer embedding_keys"),
    "/intelligence_refs/ontology": ("namespace version entity_types", "relationship_types"),
    "/intelligence_refs/knowledge_graph": ("snapshot_pin_rule", ""),
    "/intelligence_refs/identity_layer": ("ceid_namespaces", ""),
    "/business_context": ("summary", "non_negotiables"),
    "/business_context/summary": ("what_we_do", "who_we_serve differentiators"),
    "/policy_layer": ("policy_bundles guardrails", "approval_gates"),
    BUNDLE: ("bundle_id priority policy_dsl", ""),
    f"{BUNDLE}/policy_dsl": ("language rules", ""),
    f"{BUNDLE}/policy_dsl/rules/0": ("rule_id applies_to if then", "else decision_binding rationale"),
    f"{BUNDLE}/policy_dsl/rules/0/then": (
        "",
        "allow reason requires prohibits approval_mode requires_approval_gate arg_constraints",
    ),
    "/policy_layer/guardrails": ("", "must_refuse must_escalate redaction_rules"),
    "/policy_layer/approval_gates/0": ("gate_id required_approver_role ttl_seconds", "when"),
    "/tooling_layer": ("adapter_registry permissions", ""),
    "/tooling_layer/adapter_registry/0": (
        "adapter_id type endpoint_ref capabilities approval_mode",
        "capability_specs",
    ),
    "/tooling_layer/permissions/2": (
        "permission_id adapter_id capability allow",
        "requires_approval_gate arg_constraints produces",
    ),
    "/tooling_layer/permissions/2/arg_constraints/amount_inr": ("", "min max enum required pattern unless_approved"),
    "/decision_layer": ("decision_specs", ""),
    "/decision_layer/decision_specs/0": (
        DECISION_FIELDS,
        "eligibility_rules challenge_required",
    ),
    "/memory_layer": ("memory_policy promotion_thresholds", ""),
    "/memory_layer/memory_policy": ("tier_ttls write_classes_allowed consent_gating", ""),
    "/memory_layer/memory_policy/tier_ttls": ("working episodic semantic durable", ""),
    "/memory_layer/memory_policy/consent_gating": ("", "pii_write_back_allowed"),
    "/memory_layer/promotion_thresholds": ("auto_promote_confidence", ""),
    "/evaluation_layer": ("eval_targets release_gates", ""),
    "/evaluation_layer/eval_targets/0": (
        "intent policy utility latency_p99_ms safety economics_cents_per_decision",
        "",
    ),
    "/evaluation_layer/release_gates/0": ("metric max_delta", ""),
    "/tone_and_comms": ("", "voice_attributes do dont customer_facing operator_facing"),
}
WRONG: object = [[7]]
"""A value that no field takes."""


def refused(pack: Any) -> bool:  # noqa: ANN401  any JSON
    try:
        msgspec.convert(pack, type=ContextPack)
    except msgspec.ValidationError:
        return True
    return False


def refusal(pack: Any) -> str:  # noqa: ANN401  any JSON
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(pack, type=ContextPack)
    return str(error.value)


@proves("context-pack:contract-meta:fields", case="/contract_meta")
@proves("context-pack:pack-meta:fields", case="/pack_meta")
@proves("context-pack:pack-meta:tenant-fields", case="/pack_meta/tenant")
@proves("context-pack:intelligence-refs:fields", case="/intelligence_refs")
@proves("context-pack:intelligence-refs:ontology-fields", case="/intelligence_refs/ontology")
@proves("context-pack:intelligence-refs:knowledge-graph-fields", case="/intelligence_refs/knowledge_graph")
@proves("context-pack:intelligence-refs:identity-layer-fields", case="/intelligence_refs/identity_layer")
@proves("context-pack:business-context:fields", case="/business_context")
@proves("context-pack:business-context:summary-fields", case="/business_context/summary")
@proves("context-pack:policy-layer:fields", case="/policy_layer")
@proves("context-pack:policy-layer:bundle-fields", case="/policy_layer/policy_bundles/0")
@proves("context-pack:policy-layer:dsl-fields", case="/policy_layer/policy_bundles/0/policy_dsl")
@proves("context-pack:policy-layer:rule-fields", case="/policy_layer/policy_bundles/0/policy_dsl/rules/0")
@proves("context-pack:policy-layer:guardrail-fields", case="/policy_layer/guardrails")
@proves("context-pack:policy-layer:approval-gate-fields", case="/policy_layer/approval_gates/0")
@proves("context-pack:tooling-layer:adapter-fields", case="/tooling_layer/adapter_registry/0")
@proves("context-pack:tooling-layer:permission-fields", case="/tooling_layer/permissions/2")
@proves("context-pack:decision-layer:decision-spec-fields", case="/decision_layer/decision_specs/0")
@proves("context-pack:memory-layer:declares-recall-and-write-back", case="/memory_layer")
@proves("context-pack:memory-layer:memory-policy-fields", case="/memory_layer/memory_policy")
@proves("context-pack:evaluation-layer:eval-target-fields", case="/evaluation_layer/eval_targets/0")
@proves("context-pack:tone-and-comms:fields", case="/tone_and_comms")
@cases("at", FIELDS, ids=str)
def test_a_part_has_its_fields_and_no_other_and_each_has_its_type(at: str) -> None:
    required, optional = (names.split() for names in FIELDS[at])
    for name in (*required, *optional):
        assert "unknown field" not in refusal(changed(f"{at}/{name}", WRONG)), f"{name} is no field"
    for name in required:
        assert refusal(with_changes([{"at": f"{at}/{name}"}])), f"{name} may be absent"
    for name in {*optional} & {*part(EXAMPLE, at)}:
        assert not refused(with_changes([{"at": f"{at}/{name}"}])), f"{name} is required"
    assert refused(changed(f"{at}/surplus", "x"))


@proves("context-pack:tooling-layer:adapter-types")
def test_the_types_of_adapters_are_a_closed_set() -> None:
    at = "/tooling_layer/adapter_registry/0/type"
    assert not any(
        refused(changed(at, adapter_type))
        for adapter_type in ("OPENAPI", "INTERNAL", "MCP", "A2A", "FUNCTION", "CUSTOM")
    )
    assert refused(changed(at, "openapi"))


UNKNOWN = "contract_version_unknown"


@proves("context-pack:contract-meta:version-tracks-schema")
def test_the_version_of_the_contract_moves_apart_from_that_of_the_pack() -> None:
    for pack_version in ("1.0.0", "2.0.0", "7.1.0"):
        for contract_version, codes in {"1.0.0": [], "1.7.0": [], "2.0.0": [UNKNOWN], "0.9.0": [UNKNOWN]}.items():
            changes = {"/pack_meta/pack_version": pack_version, "/contract_meta/contract_version": contract_version}
            report = judge_pack(with_changes([{"at": at, "value": value} for at, value in changes.items()]))
            assert [finding.code for finding in report.findings if finding.severity == "error"] == codes
            assert report.passed is (not codes)


def test_a_pack_knows_its_reference_and_modes_are_ordered() -> None:
    assert msgspec.convert(EXAMPLE, type=ContextPack).ref == PackRef("ctxpack.support", "1.0.0")
    assert all(
        at_most(low, high) is (n <= m) for n, low in enumerate(APPROVAL_MODES) for m, high in enumerate(APPROVAL_MODES)
    )


@cases("text", ["\u0430dp", "adp orders", "", "a" * 129, ".x", "a\n", "a/b", "\uff41"])
def test_an_id_that_looks_like_another_is_refused(text: str) -> None:
    assert refused(changed("/tooling_layer/permissions/0/permission_id", text))
