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
    "/intelligence_refs": ("ontology knowledge_graph identity_layer", "embedding_keys"),
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
EACH = [(at, name) for at, (required, optional) in FIELDS.items() for name in f"{required} {optional}".split()]
REQUIRED = [(at, name) for at, (required, _) in FIELDS.items() for name in required.split()]
WRONG: object = [[7]]
"""A value that no field takes."""


def refused(pack: Any) -> bool:  # noqa: ANN401  any JSON
    try:
        msgspec.convert(pack, type=ContextPack)
    except msgspec.ValidationError:
        return True
    return False


@proves(
    "context-pack:contract-meta:fields",
    "context-pack:pack-meta:fields",
    "context-pack:pack-meta:tenant-fields",
    "context-pack:intelligence-refs:fields",
    "context-pack:intelligence-refs:ontology-fields",
    "context-pack:intelligence-refs:knowledge-graph-fields",
    "context-pack:intelligence-refs:identity-layer-fields",
    "context-pack:business-context:fields",
    "context-pack:business-context:summary-fields",
    "context-pack:policy-layer:fields",
    "context-pack:policy-layer:bundle-fields",
    "context-pack:policy-layer:dsl-fields",
    "context-pack:policy-layer:rule-fields",
    "context-pack:policy-layer:guardrail-fields",
    "context-pack:policy-layer:approval-gate-fields",
    "context-pack:tooling-layer:adapter-fields",
    "context-pack:tooling-layer:permission-fields",
    "context-pack:decision-layer:decision-spec-fields",
    "context-pack:memory-layer:declares-recall-and-write-back",
    "context-pack:memory-layer:memory-policy-fields",
    "context-pack:evaluation-layer:eval-target-fields",
    "context-pack:tone-and-comms:fields",
)
@cases(("at", "name"), EACH)
def test_a_field_of_the_wrong_type_is_refused(at: str, name: str) -> None:
    assert refused(changed(f"{at}/{name}", WRONG))


@cases(("at", "name"), REQUIRED)
def test_a_required_field_that_is_missing_is_refused(at: str, name: str) -> None:
    assert refused(with_changes([{"at": f"{at}/{name}"}]))


@cases("at", FIELDS)
def test_a_field_that_nobody_knows_is_refused_and_an_optional_one_may_be_absent(at: str) -> None:
    assert refused(changed(f"{at}/surplus", "x"))
    required, optional = FIELDS[at]
    for name in optional.split():
        if name in part(EXAMPLE, at):
            assert not refused(with_changes([{"at": f"{at}/{name}"}]))
    assert set(required.split()) <= set(part(EXAMPLE, at))


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


@pytest.mark.parametrize("text", ["\u0430dp", "adp orders", "", "a" * 129, ".x", "a\n", "a/b", "\uff41"])
def test_an_id_that_looks_like_another_is_refused(text: str) -> None:
    assert refused(changed("/tooling_layer/permissions/0/permission_id", text))
