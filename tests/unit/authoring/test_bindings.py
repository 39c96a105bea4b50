"""The binding graph: whatever single name is changed on either end of an edge, the gates find it."""

import re
from typing import Any

import pytest

from contextplane.model.suggestion import did_you_mean
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, EXAMPLE_WARNINGS, changed, findings, leaves, part, with_changes

TEMPLATE = {
    "template_id": "t_refund",
    "intent": "support.refund",
    "decision_key": "support.refund.execute",
    "steps": [
        {"id": "look", "tool": "adp_orders.lookup"},
        {"id": "judge", "tool": "adp_policy.eval", "depends_on": ["look"]},
        {"id": "pay", "tool": "adp_payments.issue_refund", "depends_on": ["look", "judge"]},
    ],
}
WHOLE = with_changes([{"at": "/task_layer", "value": {"task_templates": [TEMPLATE]}}])
"""The full example with a plan: every kind of edge is in it."""

EDGES = re.compile(
    r"/(decision_binding|requires_approval_gate|adapter_id|capability|gate_id|decision_key|tool|intent|owner_role"
    r"|required_approver_role|endpoint_ref|snapshot_pin_rule|tenant_id|namespace)$"
    r"|/(capabilities|required_evidence|requires|entity_types|ceid_namespaces|depends_on)/[0-9]+$"
    r"|/steps/[01]/id$|/rules/0/if/==/0/var$|/intelligence_refs/ontology/version$"
)
NAMES = [(at, value) for at, value in leaves(WHOLE) if EDGES.search(at) and isinstance(value, str)]
DEFINITIONS = [
    *(f"/tooling_layer/adapter_registry/{n}" for n in range(3)),
    "/policy_layer/approval_gates/0",
    *(f"/tooling_layer/permissions/{n}" for n in range(3)),
    *(f"/intelligence_refs/identity_layer/ceid_namespaces/{n}" for n in range(2)),
    "/evaluation_layer/release_gates/0",
    "/task_layer/task_templates/0/steps/0",
]


@proves("context-pack:full-example:bindings-resolve")
def test_the_example_with_a_plan_keeps_every_law() -> None:
    assert {finding.code for finding in findings(WHOLE)} == EXAMPLE_WARNINGS


def test_all_kinds_of_edges_are_generated() -> None:
    assert len(NAMES) == 49
    assert {re.sub(r"[0-9]+", "*", at).split("/")[1] for at, _ in NAMES} == {
        *("pack_meta", "intelligence_refs", "policy_layer", "tooling_layer", "decision_layer", "evaluation_layer"),
        "task_layer",
    }


@proves("context-pack:binding-graph:connected")
@proves(
    "context-pack:failures:decision-binding-missing",
    case="/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding",
)
@proves("context-pack:failures:permission-target-missing", case="/tooling_layer/permissions/0/adapter_id")
@cases(("at", "name"), NAMES, ids=[at for at, _ in NAMES])
@cases("other", ["{}_x", "x{}", "{}x"])
def test_a_name_that_is_changed_on_one_end_of_an_edge_is_found(at: str, name: str, other: str) -> None:
    broken = with_changes([{"at": at, "value": other.format(name)}], WHOLE)
    assert [finding for finding in findings(broken) if finding.severity == "error"], at


@cases("at", DEFINITIONS)
def test_a_part_that_others_name_and_that_is_taken_out_is_found(at: str) -> None:
    broken = with_changes([{"at": at}], WHOLE)
    assert [finding for finding in findings(broken) if finding.severity == "error"], part(WHOLE, at)


RULES = "/policy_layer/policy_bundles/0/policy_dsl/rules"
PERMISSIONS = "/tooling_layer/permissions"


@proves(
    "context-pack:policy-layer:decision-binding-resolves",
    "context-pack:binding-graph:rule-to-decision",
    "context-pack:gates:integrity-decision-bindings",
    case="*",
)
@pytest.mark.parametrize("n", [0, 1])
def test_a_decision_binding_leads_to_a_decision(n: int) -> None:
    assert code_at(changed(f"{RULES}/{n}/decision_binding", "support.refund")) == (
        "decision_binding_unknown",
        f"{RULES}/{n}/decision_binding",
    )


@proves("context-pack:gates:integrity-approval-gates")
@proves("context-pack:policy-layer:approval-gate-resolves", "context-pack:binding-graph:rule-to-gate", case="rule")
@proves("context-pack:tooling-layer:permission-gate-resolves", case="permission")
@pytest.mark.parametrize(
    ("at", "code"),
    [
        (f"{RULES}/1/then/requires_approval_gate", "rule_gate_unknown"),
        (f"{PERMISSIONS}/2/requires_approval_gate", "permission_gate_unknown"),
    ],
    ids=["rule", "permission"],
)
def test_a_required_gate_leads_to_a_gate(at: str, code: str) -> None:
    assert code_at(changed(at, "GATE_LEGAL")) == (code, at)


@proves(
    "context-pack:binding-graph:permission-to-adapter",
    "context-pack:gates:integrity-adapters",
    case="*",
)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_permission_is_for_an_adapter(n: int) -> None:
    at = f"{PERMISSIONS}/{n}/adapter_id"
    assert ("permission_adapter_unknown", at) in codes_at(changed(at, "adp_nobody"))


@proves(
    "context-pack:binding-graph:permission-to-capability",
    "context-pack:gates:integrity-capabilities",
    case="*",
)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_permission_is_for_a_capability_of_its_adapter(n: int) -> None:
    at = f"{PERMISSIONS}/{n}/capability"
    assert ("permission_capability_unknown", at) in codes_at(changed(at, "nothing"))


@proves(
    "context-pack:binding-graph:evidence-to-source",
    "context-pack:decision-layer:evidence-satisfiable",
    "context-pack:gates:integrity-evidence-names",
    case="*",
)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_required_evidence_has_a_source(n: int) -> None:
    at = f"/decision_layer/decision_specs/0/required_evidence/{n}"
    assert code_at(changed(at, "moon_phase")) == ("required_evidence_unobtainable", at)


def codes_at(pack: Any) -> list[tuple[str, str]]:  # noqa: ANN401  any JSON
    return [(finding.code, finding.at) for finding in findings(pack) if finding.severity == "error"]


def code_at(pack: Any) -> tuple[str, str]:  # noqa: ANN401  any JSON
    (only,) = codes_at(pack)
    return only


def test_the_example_is_the_one_that_the_edges_are_generated_from() -> None:
    assert {key: value for key, value in WHOLE.items() if key != "task_layer"} == EXAMPLE


def test_many_misspelt_names_are_each_answered_from_the_names_around_them() -> None:
    known = [f"adp_{n:04}" for n in range(2_000)]
    assert did_you_mean("adp_1500x", known, "declare it") == "did you mean adp_1500?"
    # To compare each with every other would take time by the square of their number.
    assert did_you_mean("xadp_0700", known, "declare it").startswith("declare it; known here: adp_0000, ")
    assert did_you_mean("dp_orders", ["adp_orders", "adp_policy"], "declare it") == "did you mean adp_orders?"
