"""Catalogs and overlays as artifacts of their own: each law of theirs is broken once, at its place."""

import json
from typing import Any

import jsonschema_rs
import msgspec

from contextplane.authoring.artifacts import LAWS_OF, changes_between, find_law, judge
from contextplane.authoring.gates import misplaced_content, security
from contextplane.authoring.gates.schema import schema_of
from contextplane.authoring.gates.table import GATES, Report, judge_pack
from contextplane.authoring.version_class import required_bump
from contextplane.model.artifact import FORMS, DecisionCatalog, Overlay, issuer_of
from contextplane.model.context_pack import ContextPack
from tests.support.cases import cases
from tests.unit.authoring.changes import NARROWING, WIDENING, overlay
from tests.unit.authoring.packs import CASES, ENVIRONMENT, EXAMPLE, leaves, with_changes

CATALOG: dict[str, Any] = json.loads((CASES.parent / "decision_catalog" / "support.json").read_text(encoding="utf-8"))
STEP = "/task_templates/0/steps/0"
TOKEN = "ghp_" + "a1B2" * 9
OF_TEXTS = {law.code for law in (*security.TEXT_LAWS, *misplaced_content.TEXT_LAWS)}
"""What holds for the texts of any document, and is broken case by case where packs are judged."""


def catalog_report(*changes: dict[str, Any]) -> Report:
    return judge("decision_catalog", with_changes(list(changes), CATALOG), ENVIRONMENT)


def placed_codes(report: Report) -> list[tuple[str, str]]:
    for finding in report.findings:
        assert find_law(finding.code).code == finding.code
    return [(finding.code, finding.at) for finding in report.findings]


def test_the_example_passes_every_gate_and_is_what_it_says() -> None:
    assert catalog_report() == Report(findings=())
    catalog = msgspec.convert(CATALOG, DecisionCatalog)
    assert str(catalog.ref) == "decision-catalog.support@2.1.0"
    assert issuer_of(catalog) == issuer_of(msgspec.convert(EXAMPLE, ContextPack)) == "tenant_acme_prod"
    assert FORMS["decision_catalog"] is DecisionCatalog


SPEC = CATALOG["decision_specs"][0]
PLAN = CATALOG["task_templates"][0]
INTENT = CATALOG["intents"][0]
BREAKS: list[tuple[str, str, dict[str, Any]]] = [
    ("schema_part_missing", "/issuer", {"at": "/issuer"}),
    ("schema_part_missing", "/tenant", {"at": "/tenant"}),
    ("schema_part_unknown", "/policy_layer", {"at": "/policy_layer", "value": {}}),
    ("schema_type_wrong", "/intents", {"at": "/intents", "value": "none"}),
    ("schema_value_wrong", "/catalog_version", {"at": "/catalog_version", "value": "2.1"}),
    ("schema_value_wrong", "/decision_specs", {"at": "/decision_specs", "value": []}),
    ("schema_value_wrong", "/intents/0/risk_class", {"at": "/intents/0/risk_class", "value": "high"}),
    ("schema_value_wrong", "/intents/0/locale_support/0", {"at": "/intents/0/locale_support/0", "value": "English"}),
    ("id_repeated", "/decision_specs/1/decision_key", {"at": "/decision_specs/-", "value": SPEC}),
    ("id_repeated", "/task_templates/1/template_id", {"at": "/task_templates/-", "value": PLAN}),
    ("id_repeated", "/intents/1/intent_id", {"at": "/intents/-", "value": INTENT}),
    (
        "task_template_unresolved",
        "/task_templates/0/decision_key",
        {"at": "/task_templates/0/decision_key", "value": "support.other"},
    ),
    (
        "task_template_unresolved",
        "/task_templates/0/steps/1/depends_on/0",
        {"at": "/task_templates/0/steps/1/depends_on/0", "value": "later"},
    ),
    ("task_template_unresolved", f"{STEP[:-1]}1/id", {"at": "/task_templates/0/steps/1/id", "value": "order"}),
    (
        "task_parameter_invalid",
        f"{STEP}/params/order_id",
        {"at": f"{STEP}/params/order_id", "value": {"var": "results.later.id"}},
    ),
    ("template_intent_unknown", "/task_templates/0/intent", {"at": "/task_templates/0/intent", "value": "support.x"}),
    (
        "eligible_template_unknown",
        "/intents/0/eligible_task_templates/0",
        {"at": "/intents/0/eligible_task_templates/0", "value": "refund.reviews"},
    ),
    (
        "eligible_template_unknown",
        "/intents/1/eligible_task_templates/0",
        {"at": "/intents/-", "value": {**INTENT, "intent_id": "support.status"}},
    ),
    (
        "condition_invalid",
        "/decision_specs/0/eligibility_rules/runs",
        {"at": "/decision_specs/0/eligibility_rules", "value": {"runs": [1]}},
    ),
    (
        "fact_unknown",
        "/decision_specs/0/eligibility_rules",
        {"at": "/decision_specs/0/eligibility_rules", "value": {"==": [{"var": "moon"}, 1]}},
    ),
    (
        "clock_value_impossible",
        "/decision_specs/0/eligibility_rules",
        {"at": "/decision_specs/0/eligibility_rules", "value": {"==": [{"var": "run.weekday"}, 0]}},
    ),
    (
        "condition_undecided",
        "/decision_specs/0/eligibility_rules",
        {"at": "/decision_specs/0/eligibility_rules", "value": {"cat": ["x", "y"]}},
    ),
    (
        "eligibility_unsatisfiable",
        "/decision_specs/0/eligibility_rules",
        {"at": "/decision_specs/0/eligibility_rules", "value": False},
    ),
    ("tenant_unknown", "/tenant/tenant_id", {"at": "/tenant/tenant_id", "value": "tenant_x"}),
    ("tenant_unknown", "/tenant/shared_with/0", {"at": "/tenant/shared_with/0", "value": "tenant_x"}),
    ("role_unheld", "/decision_specs/0/owner_role", {"at": "/decision_specs/0/owner_role", "value": "nobody"}),
    ("role_unheld", "/intents/0/owner_role", {"at": "/intents/0/owner_role", "value": "nobody"}),
    ("secret_present", f"{STEP}/params/key", {"at": f"{STEP}/params/key", "value": TOKEN}),
    ("random_text_present", f"{STEP}/params/k", {"at": f"{STEP}/params/k", "value": "q8Zk2LmP9xVt4RwY7nBc3Df6Gh1Js5"}),
    ("personal_number_present", f"{STEP}/params/k", {"at": f"{STEP}/params/k", "value": "4111 1111 1111 1111"}),
    (
        "people_listed",
        "/intents/0/description",
        {"at": "/intents/0/description", "value": " ".join(f"p{n}@example.org" for n in range(9))},
    ),
    (
        "conversation_present",
        "/intents/0/description",
        {"at": "/intents/0/description", "value": "user: hello\nassistant: hello\nuser: refund me"},
    ),
    ("operator_note_present", "/intents/0/description", {"at": "/intents/0/description", "value": "TODO: ask Bob"}),
    ("code_present", f"{STEP}/params/q", {"at": f"{STEP}/params/q", "value": "SELECT name FROM customers"}),
    (
        "record_present",
        "/intents/0/description",
        {"at": "/intents/0/description", "value": "customer_id: 4711, order_id: 8812"},
    ),
]


@cases(("code", "at", "change"), BREAKS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_breaks_a_law_of_a_catalog_is_found_at_its_place(code: str, at: str, change: dict[str, Any]) -> None:
    report = catalog_report(change)
    assert (code, at) in placed_codes(report)
    assert not report.passed


def test_every_law_of_a_catalog_has_a_case() -> None:
    beyond_texts = {law.code for law in LAWS_OF["decision_catalog"]} - OF_TEXTS
    assert {code for code, _, _ in BREAKS} - OF_TEXTS | {"environment_undescribed"} == beyond_texts
    assert len({code for code, _, _ in BREAKS} & OF_TEXTS) >= 8


def test_a_catalog_of_the_wrong_form_is_not_looked_at_further() -> None:
    assert catalog_report({"at": "/issuer"}).not_run == GATES[1:]


def test_what_a_catalog_needs_of_its_environment_is_never_taken_for_granted() -> None:
    (finding,) = judge("decision_catalog", CATALOG).findings
    assert (finding.code, finding.severity) == ("environment_undescribed", "unknown")
    assert "roles, tenants" in finding.cause
    assert "endpoints" not in finding.cause


VALUES: tuple[Any, ...] = (None, True, 0, "", "x", "a b", [], {})


def test_types_and_schema_accept_the_same_catalogs() -> None:
    validator = jsonschema_rs.Draft202012Validator(schema_of(DecisionCatalog))
    refused = 0
    for at, _ in leaves(CATALOG):
        for value in VALUES:
            changed = with_changes([{"at": at, "value": value}], CATALOG)
            try:
                msgspec.convert(changed, DecisionCatalog)
                typed = True
            except msgspec.ValidationError:
                typed = False
            assert validator.is_valid(changed) is typed, (at, value)
            refused += not typed
    assert refused


@cases(
    ("change", "least"),
    [
        ({"at": "/intents/0/description", "value": "Money back."}, "patch"),
        ({"at": "/tenant/name", "value": "Acme"}, "patch"),
        ({"at": "/decision_specs/0/challenge_required", "value": True}, "minor"),
        ({"at": "/tenant/shared_with"}, "minor"),
        ({"at": "/decision_specs/0/allowed_outcomes", "value": ["recommended"]}, "major"),
        ({"at": "/decision_specs/-", "value": {**SPEC, "decision_key": "support.refund.close"}}, "major"),
        ({"at": "/intents/0/risk_class", "value": "read_only"}, "major"),
        ({"at": "/task_templates/0/steps/1/tool", "value": "adp_policy.other"}, "major"),
        ({"at": "/issuer", "value": "tenant_globex"}, "major"),
        ({"at": "/catalog_id", "value": "decision-catalog.other"}, "reject"),
    ],
)
def test_a_change_of_a_catalog_asks_for_a_version_class(change: dict[str, Any], least: str) -> None:
    assert required_bump(changes_between("decision_catalog", CATALOG, with_changes([change], CATALOG))).least == least


def test_parts_that_only_moved_are_no_change_of_a_catalog() -> None:
    more = with_changes([{"at": "/intents/-", "value": {**INTENT, "intent_id": "support.status"}}], CATALOG)
    assert changes_between("decision_catalog", more, {**more, "intents": more["intents"][::-1]}) == ()


# --- overlays ---------------------------------------------------------------------------------------------------------

FINE = msgspec.to_builtins(overlay(NARROWING[0]))


def of_overlay(value: Any, base: Any = EXAMPLE) -> Report:  # noqa: ANN401  any JSON
    return judge("overlay", value, ENVIRONMENT, base=base)


def changing(*changes: dict[str, Any]) -> dict[str, Any]:
    return {**FINE, "changes": list(changes)}


def test_a_narrowing_overlay_passes_and_without_its_pack_it_is_said_that_nobody_can_tell() -> None:
    assert of_overlay(FINE).findings == ()
    (finding,) = of_overlay(FINE, base=None).findings
    assert (finding.code, finding.severity) == ("overlay_base_absent", "unknown")


GATE_TTL = "/policy_layer/approval_gates/GATE_FINANCE_APPROVAL/ttl_seconds"
REFUSAL = "/policy_layer/guardrails/must_refuse/x"
OVERLAY_BREAKS: list[tuple[str, str, dict[str, Any]]] = [
    ("schema_part_missing", "/issuer", {key: value for key, value in FINE.items() if key != "issuer"}),
    ("schema_part_unknown", "/tenant", {**FINE, "tenant": "x"}),
    ("schema_type_wrong", "/order", {**FINE, "order": "first"}),
    ("schema_value_wrong", "/changes", {**FINE, "changes": []}),
    ("overlay_change_unclear", "/changes/0", changing({"at": GATE_TTL})),
    ("overlay_change_unclear", "/changes/0", changing({"at": GATE_TTL, "value": 60, "remove": True})),
    (
        "overlay_change_unclear",
        "/changes/1/at",
        changing({"at": GATE_TTL, "value": 60}, {"at": GATE_TTL, "value": 30}),
    ),
    (
        "overlay_change_unclear",
        "/changes/1/at",
        changing({"at": GATE_TTL, "value": 60}, {"at": GATE_TTL.removesuffix("/ttl_seconds"), "remove": True}),
    ),
    ("overlay_layer_unknown", "/changes/0/at", changing({"at": "/policies/x", "value": 1})),
    ("overlay_misplaced", "/changes", changing({"at": "/policy_layer/approval_gates/GATE_X/ttl_seconds", "value": 1})),
    ("overlay_misplaced", "/changes", {**FINE, "base_pack_id": "ctxpack.other"}),
    ("overlay_widens", "/changes", changing({"at": GATE_TTL, "value": 9000})),
    ("secret_present", "/changes/0/value/message", changing({"at": REFUSAL, "value": {"id": "x", "message": TOKEN}})),
    ("secret_present", "/changes/0/why", changing({"at": GATE_TTL, "value": 60, "why": f"because of {TOKEN}"})),
    (
        "random_text_present",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": "q8Zk2LmP9xVt4RwY7nBc3Df6Gh1Js5"}),
    ),
    (
        "personal_number_present",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": "4111 1111 1111 1111"}),
    ),
    (
        "people_listed",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": " ".join(f"p{n}@example.org" for n in range(9))}),
    ),
    (
        "conversation_present",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": "user: hello\nassistant: hello\nuser: refund me"}),
    ),
    ("operator_note_present", "/changes/0/why", changing({"at": GATE_TTL, "value": 60, "why": "TODO: ask Bob"})),
    (
        "code_present",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": "SELECT name FROM customers"}),
    ),
    (
        "record_present",
        "/changes/0/why",
        changing({"at": GATE_TTL, "value": 60, "why": "customer_id: 4711, order_id: 8812"}),
    ),
]


@cases(("code", "at", "value"), OVERLAY_BREAKS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_breaks_a_law_of_an_overlay_is_found_at_its_place(code: str, at: str, value: dict[str, Any]) -> None:
    report = of_overlay(value)
    assert (code, at) in placed_codes(report)
    assert not report.passed
    assert TOKEN not in repr(report)


def test_every_law_of_an_overlay_has_a_case() -> None:
    beyond_texts = {law.code for law in LAWS_OF["overlay"]} - OF_TEXTS
    assert {code for code, _, _ in OVERLAY_BREAKS} - OF_TEXTS | {"overlay_base_absent"} == beyond_texts
    assert len({code for code, _, _ in OVERLAY_BREAKS} & OF_TEXTS) >= 8


def test_every_widening_is_told_and_not_the_first_alone() -> None:
    value = msgspec.to_builtins(overlay(WIDENING[0]))
    both = {**value, "changes": [*value["changes"], {"at": GATE_TTL, "value": 9000}]}
    assert sum(finding.code == "overlay_widens" for finding in of_overlay(both).findings) >= 2


def test_an_overlay_that_narrows_and_breaks_the_pack_is_refused_by_the_law_that_the_pack_breaks_with_it() -> None:
    removed = changing({"at": "/tooling_layer/permissions/adp_orders.lookup", "remove": True})
    report = of_overlay(removed)
    assert "required_evidence_unobtainable" in {finding.code for finding in report.findings}
    assert not report.passed


def test_what_the_pack_lacked_before_is_not_held_against_the_overlay() -> None:
    base = with_changes([{"at": "/decision_layer/decision_specs/0/owner_role", "value": "nobody"}])
    assert not judge_pack(base, ENVIRONMENT).passed
    assert of_overlay(FINE, base).passed


def test_every_change_of_an_overlay_is_major_for_nobody_knows_what_it_loosens() -> None:
    assert changes_between("overlay", FINE, FINE) == ()
    tighter = changing({"at": GATE_TTL, "value": 60})
    assert required_bump(changes_between("overlay", tighter, changing({"at": GATE_TTL, "value": 30}))).least == "major"


def test_a_pack_is_judged_as_ever() -> None:
    assert judge("context_pack", EXAMPLE, ENVIRONMENT) == judge_pack(EXAMPLE, ENVIRONMENT)
    assert msgspec.convert(FINE, Overlay).ref.pack_id == "ov.staging"
