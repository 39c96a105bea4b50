"""Every law of every gate: the full example keeps it, and packs that differ in one place break it, at that place."""

import json
from typing import Any

import msgspec
import pytest

from contextplane.authoring.artifacts import LawUnknown, find_law
from contextplane.authoring.gates.table import EVERY_LAW, GATES, judge_pack
from contextplane.model.artifact import EnvironmentDescription
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import CASES, ENVIRONMENT, EXAMPLE, EXAMPLE_WARNINGS, findings, with_changes

BREAKS: list[dict[str, Any]] = json.loads((CASES / "breaks.json").read_text(encoding="utf-8"))
KEEPS: list[dict[str, Any]] = json.loads((CASES / "keeps.json").read_text(encoding="utf-8"))


REFS = "intelligence_refs"
RANGE = "/contract_meta/compatibility/requires/ontology"


def environment(case: dict[str, Any]) -> EnvironmentDescription:
    return msgspec.structs.replace(ENVIRONMENT, **case.get("environment", {}))


@proves("context-pack:definition:identity", case="an incomplete version")
@proves("context-pack:excluded:raw-customer-records", case="records")
@proves("context-pack:excluded:secrets", "context-pack:gates:security-no-secrets", case="a token")
@proves("context-pack:excluded:mutable-conversation-state", case="an unknown layer")
@proves("context-pack:excluded:operator-notes", case="an operator's note in a field of its own")
@proves("context-pack:excluded:adapter-code", case="adapter code in a field of its own")
@proves("context-pack:contract-meta:requires-is-explicit", case="nothing is said of the ontology")
@proves("context-pack:intelligence-refs:embedding-keys-versioned", case="an embedding key without a version")
@proves("context-pack:business-context:kept-short", case="business context too long for its bucket")
@proves("context-pack:business-context:constraints-over-slogans", case="slogans only")
@proves("context-pack:business-context:no-duplicated-policy", case="policy said again")
@proves("context-pack:policy-layer:rationale-expected", case="a rule without rationale")
@proves("context-pack:tooling-layer:adapters-and-permissions", case="no adapter")
@proves(
    "context-pack:tooling-layer:write-requires-idempotency",
    "context-pack:gates:risk-missing-idempotency",
    case="a write without idempotency",
)
@proves(
    "context-pack:tooling-layer:endpoint-ref-is-registry-entry",
    "context-pack:gates:tenancy-endpoint-refs",
    case="an endpoint that is not registered",
)
@proves("context-pack:decision-layer:binds-typed-decisions", case="no decision")
@proves("context-pack:decision-layer:every-workflow-has-one", case="a workflow without a decision")
@proves("context-pack:decision-layer:mode-covers-effects", case="a decision below its tool")
@proves("context-pack:evaluation-layer:measurable-quality", case="no target")
@proves(
    "context-pack:evaluation-layer:every-intent-has-targets",
    "context-pack:gates:evaluation-score-targets",
    case="an intent without targets",
)
@proves(
    "context-pack:evaluation-layer:gates-include-policy-and-safety",
    "context-pack:gates:evaluation-release-gates",
    case="no release gate for safety",
)
@proves("context-pack:gates:policy-unreachable-rule", case="a rule that can never fire")
@proves("context-pack:gates:policy-unsatisfiable-gate", case="a gate that never closes")
@proves("context-pack:gates:policy-priority-conflicts", case="two rules that contradict")
@proves("context-pack:gates:risk-approval-mode", case="a tool above the ceiling")
@proves("context-pack:gates:risk-destructive-without-gate", case="a destructive tool without a gate")
@proves("context-pack:gates:tenancy-tenant", case="a tenant of another place")
@proves("context-pack:gates:tenancy-graph-snapshots", case="a snapshot of another tenant")
@proves("context-pack:gates:tenancy-memory-policies", case="personal data in a memory that is shared")
@proves("context-pack:gates:security-no-unrestricted-surface", case="a large adapter exposed as a whole")
@cases("case", BREAKS, ids=lambda case: case["note"])
def test_what_breaks_a_law_is_found_with_its_place(case: dict[str, Any]) -> None:
    broken = findings(with_changes(case["changes"]), environment(case))
    assert (case["code"], case["at"], case["severity"]) in [
        (finding.code, finding.at, finding.severity) for finding in broken
    ]


@proves("context-pack:intelligence-refs:embedding-keys-optional", case="no embeddings")
@cases("case", KEEPS, ids=lambda case: case["note"])
def test_a_reasonable_pack_breaks_no_law(case: dict[str, Any]) -> None:
    pack = with_changes(case["changes"])
    assert [finding for finding in findings(pack) if finding.severity == "error"] == []


def test_tiers_that_live_equally_long_are_in_order_also_beside_some_that_are_not() -> None:
    lives: list[Any] = [
        {"at": f"/memory_layer/memory_policy/tier_ttls/{tier}", "value": "2h"} for tier in ("episodic", "semantic")
    ]
    working = {"at": "/memory_layer/memory_policy/tier_ttls/working", "value": "3h"}
    assert not [finding for finding in findings(with_changes(lives)) if finding.code == "memory_tiers_disordered"]
    places = [
        finding.at for finding in findings(with_changes([*lives, working])) if finding.code == "memory_tiers_disordered"
    ]
    assert places == ["/memory_layer/memory_policy/tier_ttls/working"]


def test_every_law_has_a_case_that_breaks_it() -> None:
    tested_elsewhere = {"golden_cases_unstable"}
    assert {case["code"] for case in BREAKS} | tested_elsewhere == {law.code for law in EVERY_LAW}


def test_the_full_example_passes_every_gate_and_what_cannot_be_told_is_said() -> None:
    report = judge_pack(EXAMPLE, ENVIRONMENT)
    assert report.passed
    assert [(finding.gate, finding.code, finding.severity) for finding in report.findings] == [
        ("policy", "guardrail_by_signal_only", "warning"),
        ("policy", "guardrail_by_signal_only", "warning"),
        ("risk", "evidence_attested_by_request", "warning"),
        ("replay", "golden_cases_unstable", "unknown"),
    ]


def test_a_wrong_form_stops_the_other_gates_and_the_report_says_so() -> None:
    report = judge_pack(with_changes([{"at": "/pack_meta/ttl_seconds", "value": "long"}]))
    assert not report.passed
    assert report.not_run == GATES[1:]


def test_a_field_with_a_blank_is_probably_a_text_that_should_be_quoted() -> None:
    adapter = "/tooling_layer/adapter_registry/0"
    spec = {"lookup": {"description": "The order", "such as ord_881.": None}}
    (finding,) = judge_pack(with_changes([{"at": f"{adapter}/capability_specs", "value": spec}])).findings
    assert finding.code == "schema_part_unknown"
    assert finding.cure is not None
    assert finding.cure.startswith("quote the text that it is part of, or remove it; known here: ")


@cases(
    ("intents", "cure"),
    [
        ([], "write intents: [support.refund]"),
        (["support.look"], "remove the permission"),
    ],
)
def test_a_tool_that_no_decision_can_use_is_bound_to_one_or_left_to_the_intents_that_can(
    intents: list[str], cure: str
) -> None:
    rule = {"rule_id": "R_LOOK", "applies_to": {"intent": "support.look"}, "if": True, "then": {"allow": True}}
    scope = {"at": "/tooling_layer/permissions/2/intents", "value": intents}
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules/-"
    pack = with_changes([{"at": rules, "value": rule}, *([scope] if intents else [])])
    (finding,) = [each for each in findings(pack) if each.code == "tool_beyond_decisions"]
    assert finding.cure is not None
    bind = "bind a rule of support.look to a decision that executes, of mode destructive"
    assert finding.cure == f"{bind}, or {cure}"


def test_reading_that_another_decision_closes_on_denial_is_not_reported() -> None:
    rules, specs = "/policy_layer/policy_bundles/0/policy_dsl/rules/-", "/decision_layer/decision_specs"
    owner = {"==": [{"var": "request.context.owner_id"}, {"var": "user.user_id"}]}
    rule = {"rule_id": "R_OWN", "applies_to": {"intent": "support.refund"}, "if": owner, "then": {"allow": True}}
    other = {**EXAMPLE["decision_layer"]["decision_specs"][0], "decision_key": "support.refund.other"}
    open_to_read = [{"at": f"{specs}/0/on_deny", "value": "read"}, {"at": rules, "value": rule}]
    other_rule = {**rule, "rule_id": "R_OTHER", "decision_binding": "support.refund.other"}
    closed = [{"at": f"{specs}/-", "value": other}, {"at": rules, "value": other_rule}]

    def codes(changes: list[Any]) -> list[str]:
        return [each.code for each in findings(with_changes(changes)) if each.code == "denial_leaves_reading"]

    assert codes(open_to_read) == ["denial_leaves_reading"]
    assert codes([*open_to_read, *closed]) == []


@cases("law", EVERY_LAW, ids=lambda law: str(law.code))
def test_every_law_can_be_explained_in_one_sentence(law: Any) -> None:  # noqa: ANN401  of any subject
    text = find_law(law.code).text
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) > len("It holds.")


def test_codes_are_unique_and_an_unknown_one_is_answered_with_the_nearest() -> None:
    assert len({law.code for law in EVERY_LAW}) == len(EVERY_LAW)
    with pytest.raises(LawUnknown) as caught:
        find_law("rule_unreachabel")
    assert caught.value.hint == "did you mean rule_unreachable?"


@proves("context-pack:structure:ten-required-layers")
@cases("layer", [name for name in EXAMPLE if name not in {"task_layer", "intelligence_refs", "memory_layer"}])
def test_a_missing_layer_is_named(layer: str) -> None:
    broken = with_changes([{"at": f"/{layer}"}])
    (finding,) = [finding for finding in findings(broken) if finding.severity == "error"]
    assert (finding.code, finding.at) == ("schema_part_missing", f"/{layer}")
    assert layer in finding.cause


@cases(
    ("places", "absent"),
    [
        (["/memory_layer"], ("memory_layer",)),
        (["/intelligence_refs/knowledge_graph", "/intelligence_refs/embedding_keys"], (f"{REFS}.knowledge_graph",)),
        (["/intelligence_refs", RANGE], (f"{REFS}.ontology", f"{REFS}.knowledge_graph", f"{REFS}.identity_layer")),
    ],
)
def test_a_pack_may_leave_out_knowledge_and_memory_and_the_report_says_so(
    places: list[str], absent: tuple[str, ...]
) -> None:
    report = judge_pack(with_changes([{"at": at} for at in places]), ENVIRONMENT)
    assert {finding.code for finding in report.findings} == {*EXAMPLE_WARNINGS, "golden_cases_unstable"}
    assert report.passed
    assert report.absent_parts == absent
    assert judge_pack(EXAMPLE, ENVIRONMENT).absent_parts == ()


def test_a_value_of_the_wrong_form_is_shown_unless_it_is_a_secret() -> None:
    at = "/tooling_layer/permissions/0/permission_id"
    (alike,) = findings(with_changes([{"at": at, "value": "\u0430dp"}]))
    assert alike.cause == r"'\u0430dp' does not have the form of this field"
    token = "ghp_" + "a1B2" * 9
    (secret,) = findings(with_changes([{"at": at, "value": f"{token} "}]))
    assert secret.cause == "this text does not have the form of this field"


def test_many_problems_of_form_are_told_at_once_and_their_number_is_bounded() -> None:
    pack = with_changes([{"at": f"/extra_{n}", "value": 1} for n in range(150)])
    many = findings({**pack, "pack_meta": {}, "memory_layer": {}})
    assert {"/pack_meta/pack_id", "/memory_layer/memory_policy", "/extra_149"} <= {finding.at for finding in many}
    rules = [{"rule_id": "bad id", "applies_to": {}, "if": 1, "then": 2}] * 500
    crowded = findings(with_changes([{"at": "/policy_layer/policy_bundles/0/policy_dsl/rules", "value": rules}]))
    assert any("not listed" in finding.cause for finding in crowded)
