"""Versions: the least class of a change, row by row of the contract's table, and a number that is too small refused."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.authoring.diff.tree import Change
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.overlay.resolved_view import OverlayMisplaced, patched_copy
from contextplane.authoring.version_class import CLASSES, BumpTooSmall, VersionClass, check_bump, required_bump
from contextplane.model.ids import PackRef
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.changes import (
    ALTERING,
    GATE,
    NARROWING,
    SPEC,
    VAR,
    WIDENING,
    Step,
    overlay,
    some_of_each_form,
)
from tests.unit.authoring.packs import EXAMPLE, changed, part, with_changes

RULES = "/policy_layer/policy_bundles/0/policy_dsl/rules"
PERMISSIONS = "/tooling_layer/permissions"
ADAPTERS = "/tooling_layer/adapter_registry"
GATES = "/policy_layer/approval_gates"
REQUEST_FACTS = "/policy_layer/request_facts"
TARGETS = "/evaluation_layer/eval_targets"


def version_class(*changes: tuple[str, Any]) -> VersionClass:
    """Of the example with these changes; errors of the gates reject it."""
    new = with_changes([{"at": at} if value is None else {"at": at, "value": value} for at, value in changes])
    errors = [finding.code for finding in judge_pack(new).findings if finding.severity == "error"]
    return required_bump(compare_packs(EXAMPLE, new), unsafe=errors).least


@cases(
    ("base", "at", "value", "effect"),
    [
        ({f"{GATES}/0/approvers": 2}, f"{GATES}/0/approvers", None, "widens"),
        ({f"{GATES}/0/approvers": 3}, f"{GATES}/0/approvers", 2, "widens"),
        ({f"{GATES}/0/approvers": 1}, f"{GATES}/0/approvers", 3, "narrows"),
        (
            {f"{PERMISSIONS}/2/requires_approval_gate": ["A", "B"]},
            f"{PERMISSIONS}/2/requires_approval_gate",
            "A",
            "widens",
        ),
        (
            {f"{PERMISSIONS}/2/requires_approval_gate": "A"},
            f"{PERMISSIONS}/2/requires_approval_gate",
            ["B", "A"],
            "narrows",
        ),
        ({f"{PERMISSIONS}/2/requires_approval_gate": ["A"]}, f"{PERMISSIONS}/2/requires_approval_gate", "B", "changes"),
        (
            {f"{RULES}/1/then/requires_approval_gate": ["A", "B"]},
            f"{RULES}/1/then/requires_approval_gate",
            ["B"],
            "widens",
        ),
    ],
)
def test_fewer_gates_and_fewer_approvers_widen(base: dict[str, Any], at: str, value: object, effect: str) -> None:
    old = with_changes([{"at": place, "value": first} for place, first in base.items()])
    new = with_changes([{"at": at} if value is None else {"at": at, "value": value}], old)
    assert [change.effect for change in compare_packs(old, new)] == [effect]


@cases(
    ("fact", "field", "value", "effect"),
    [
        ({"type": "number"}, "type", "integer", "narrows"),
        ({"type": "integer"}, "type", "number", "widens"),
        ({"type": "number"}, "type", "string", "changes"),
        ({"type": "number", "required": False}, "required", True, "narrows"),
        ({"type": "number"}, "required", False, "widens"),
        ({"type": "number"}, "description", "In INR.", "metadata"),
    ],
)
def test_what_a_caller_must_send(fact: dict[str, Any], field: str, value: object, effect: str) -> None:
    amount = {"path": "request.context.refund_amount", **fact}
    role = {"path": "request.context.reason", "type": "string"}
    old = changed(REQUEST_FACTS, [{"intent": "support.refund", "facts": [amount, role]}])
    new = changed(REQUEST_FACTS, [{"intent": "support.refund", "facts": [role, {**amount, field: value}]}])
    assert [change.effect for change in compare_packs(old, new)] == [effect]
    less = changed(REQUEST_FACTS, [{"intent": "support.refund", "facts": [role]}])
    assert [change.effect for change in compare_packs(old, less)] == ["widens"]
    assert [change.effect for change in compare_packs(less, old)] == ["narrows"]
    assert [change.effect for change in compare_packs(old, EXAMPLE)] == ["widens"]
    assert [change.effect for change in compare_packs(EXAMPLE, old)] == ["narrows"]


@cases(("old", "new"), [("A", ["A"]), (["A", "B"], ["B", "A"])])
def test_one_gate_and_a_list_of_it_are_the_same_and_so_is_another_order(old: object, new: object) -> None:
    at = f"{PERMISSIONS}/2/requires_approval_gate"
    assert {change.effect for change in compare_packs(changed(at, old), changed(at, new))} <= {"metadata"}


@proves("context-pack:versioning:metadata-is-patch")
@cases(
    ("at", "value"),
    [
        ("/pack_meta/tenant/name", "Acme Support, Pune"),
        ("/contract_meta/created_at", "2026-05-10T00:00:00Z"),
        ("/decision_layer/decision_specs/0/version", "1.0.1"),
        (f"{PERMISSIONS}/0/permission_id", "p_lookup_of_orders"),
    ],
)
def test_what_changes_nothing_at_run_time_is_a_patch(at: str, value: object) -> None:
    assert version_class((at, value)) == "patch"


@cases(
    ("at", "value"),
    [
        ("/business_context/summary/what_we_do", "Customer support after the purchase"),
        ("/business_context/non_negotiables/-", "Never promise a date of delivery"),
        ("/tone_and_comms/voice_attributes", ["clear"]),
        ("/tone_and_comms/do/-", "name the next step"),
        ("/tone_and_comms/customer_facing", {"do": ["name the next step"]}),
        (f"{RULES}/0/rationale", "Refunds require a verified identity."),
        (f"{RULES}/0/else/reason", "Not verified."),
    ],
)
def test_what_the_model_reads_is_no_patch(at: str, value: object) -> None:
    assert version_class((at, value)) == "minor"


@cases(
    "at",
    [
        "/decision_layer/decision_specs/0/required_evidence",
        "/decision_layer/decision_specs/0/allowed_outcomes",
        "/intelligence_refs/ontology/entity_types",
        "/intelligence_refs/identity_layer/ceid_namespaces",
    ],
)
def test_names_in_another_order_are_a_patch_and_other_names_are_major(at: str) -> None:
    names = part(EXAMPLE, at)
    assert version_class((at, names[::-1])) == "patch"
    assert required_bump(compare_packs(EXAMPLE, changed(at, [*names, "more"]))).least == "major"
    assert required_bump(compare_packs(EXAMPLE, changed(at, names[1:]))).least == "major"


@proves("context-pack:versioning:stricter-threshold-is-minor", "context-pack:versioning:constrained-is-minor")
def test_a_stricter_threshold_is_minor() -> None:
    assert version_class(("/policy_layer/approval_gates/0/when", {">": [VAR, 1000]})) == "minor"
    assert version_class((f"{PERMISSIONS}/2/arg_constraints/amount_inr/max", 1000)) == "minor"


@proves("context-pack:versioning:added-redaction-is-minor")
def test_one_more_redaction_is_minor() -> None:
    assert version_class(("/policy_layer/guardrails/redaction_rules/-", "aadhaar")) == "minor"


@proves("context-pack:versioning:new-evaluator-target-is-minor")
def test_a_new_evaluator_target_is_minor() -> None:
    target = {**EXAMPLE["evaluation_layer"]["eval_targets"][0], "intent": "support.status"}
    new = with_changes([{"at": f"{TARGETS}/-", "value": target}])
    assert required_bump(compare_packs(EXAMPLE, new)).least == "minor"
    assert version_class((f"{TARGETS}/0/utility", 0.95)) == "minor"


@proves("context-pack:versioning:read-only-evidence-is-minor")
def test_one_more_read_only_source_of_evidence_is_minor() -> None:
    adapter = {**EXAMPLE["tooling_layer"]["adapter_registry"][0], "adapter_id": "adp_fraud", "capabilities": ["score"]}
    permission = {"permission_id": "p_fraud", "adapter_id": "adp_fraud", "capability": "score", "allow": True}
    assert version_class((f"{ADAPTERS}/-", adapter), (f"{PERMISSIONS}/-", permission)) == "minor"


VOID = {
    "permission_id": "p_void",
    "adapter_id": "adp_payments",
    "capability": "void",
    "allow": True,
    "requires_approval_gate": "GATE_FINANCE_APPROVAL",
    "arg_constraints": {"idempotency_key": {"required": True}, "refund_id": {"required": True, "pattern": "^ref_"}},
}
WITH_VOID = ((f"{ADAPTERS}/2/capabilities/-", "void"), (f"{PERMISSIONS}/-", VOID))


@proves("context-pack:versioning:new-write-capability-is-major", "context-pack:versioning:expanded-is-major")
def test_a_new_write_capability_is_major_and_told_in_words() -> None:
    assert version_class(*WITH_VOID) == "major"
    new = with_changes([{"at": at, "value": value} for at, value in WITH_VOID])
    assert "new write capability adp_payments.void for support.refund" in [
        change.words for change in compare_packs(EXAMPLE, new)
    ]


@proves("context-pack:versioning:removed-capability-is-major")
def test_a_removed_capability_is_major() -> None:
    assert version_class((f"{PERMISSIONS}/1", None)) == "major"
    assert version_class((f"{PERMISSIONS}/1/allow", False)) == "major"


@proves("context-pack:versioning:changed-outcomes-is-major")
@pytest.mark.parametrize("outcomes", [["approved", "denied"], ["approved", "denied", "escalated", "deferred"]])
def test_a_changed_set_of_outcomes_is_major(outcomes: list[str]) -> None:
    assert version_class(("/decision_layer/decision_specs/0/allowed_outcomes", outcomes)) == "major"


@proves("context-pack:versioning:changed-ontology-is-major")
def test_a_changed_ontology_is_major() -> None:
    assert version_class(("/intelligence_refs/ontology/version", "1.1.0")) == "major"
    assert version_class(("/intelligence_refs/ontology/relationship_types", ["order_is_of_customer"])) == "major"


@cases(
    "places",
    [
        ["/memory_layer"],
        ["/intelligence_refs/knowledge_graph", "/intelligence_refs/embedding_keys"],
        ["/intelligence_refs", "/contract_meta/compatibility/requires/ontology"],
    ],
)
def test_knowledge_and_memory_that_come_or_go_are_major(places: list[str]) -> None:
    less = with_changes([{"at": at} for at in places])
    for old, new in ((EXAMPLE, less), (less, EXAMPLE)):
        assert required_bump(compare_packs(old, new)).least == "major"


@proves("context-pack:versioning:changed-evidence-is-major")
@pytest.mark.parametrize(
    "evidence", [["identity_verified"], ["identity_verified", "order_lookup", "policy_eval", "order"]]
)
def test_changed_required_evidence_is_major(evidence: list[str]) -> None:
    assert version_class(("/decision_layer/decision_specs/0/required_evidence", evidence)) == "major"


@proves("context-pack:versioning:permission-without-adapter-rejected", "context-pack:versioning:unsafe-is-rejected")
def test_a_permission_without_its_adapter_is_rejected() -> None:
    assert version_class((f"{PERMISSIONS}/0/adapter_id", "adp_nobody")) == "reject"


@proves("context-pack:versioning:binding-without-spec-rejected")
def test_a_binding_without_its_decision_is_rejected() -> None:
    assert version_class((f"{RULES}/0/decision_binding", "support.refund.other")) == "reject"


@proves("context-pack:versioning:ungated-destructive-rejected", "context-pack:failures:destructive-without-gate")
def test_a_destructive_capability_without_its_gate_is_rejected() -> None:
    assert version_class((f"{PERMISSIONS}/2/requires_approval_gate", None)) == "reject"


@proves("context-pack:contract-meta:name-is-stable")
@pytest.mark.parametrize("at", ["/contract_meta/contract_name", "/pack_meta/pack_id"])
def test_another_name_is_no_version_of_the_same_pack(at: str) -> None:
    assert version_class((at, "ctxpack.other")) == "reject"


def test_what_the_table_does_not_know_is_major() -> None:
    assert version_class(("/memory_layer/memory_policy/tier_ttls/working", "2h")) == "major"
    assert version_class((f"{RULES}/1/if", {">": [{"+": [VAR, {"var": "request.context.fee"}]}, 3000]})) == "major"
    assert version_class((f"{RULES}/0/applies_to", {"intent": "support.refund", "channel": "web"})) == "major"


def test_moving_parts_is_no_change() -> None:
    new = with_changes([])
    for parts in (new["tooling_layer"]["permissions"], new["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"]):
        parts.reverse()
    assert compare_packs(EXAMPLE, new) == ()


def apply_steps(base: Any, *steps: Step) -> Any:  # noqa: ANN401  any JSON
    """Apply changes to a pack without judging them."""
    return patched_copy(base, overlay(*steps)) if steps else base


STEPS = st.sampled_from((*NARROWING, *WIDENING, *ALTERING))


@given(st.lists(STEPS, max_size=4), STEPS)
def test_one_more_change_never_lowers_the_class(steps: list[Step], more: Step) -> None:
    touched = {at for step in steps for at, _ in step}
    # Another place: a change that undoes an earlier one is no further change.
    assume(not any(at.startswith(place) or place.startswith(at) for at, _ in more for place in touched))
    try:
        fewer, whole = apply_steps(EXAMPLE, *steps), apply_steps(EXAMPLE, *steps, more)
    except OverlayMisplaced:
        return
    before, after = (required_bump(compare_packs(EXAMPLE, pack)).least for pack in (fewer, whole))
    assert CLASSES.index(before) <= CLASSES.index(after)


@proves("context-pack:versioning:contract-versions")
@pytest.mark.parametrize(("steps", "classes"), [(NARROWING, {"minor", "major"}), ((*WIDENING, *ALTERING), {"major"})])
def test_the_class_follows_from_what_a_change_does(steps: tuple[Step, ...], classes: set[str]) -> None:
    for step in some_of_each_form(steps):
        changes = compare_packs(EXAMPLE, apply_steps(EXAMPLE, step))
        least = required_bump(changes).least
        assert least in classes, step
        if least == "major" and classes == {"minor", "major"}:
            assert {change.effect for change in changes} & {"removes"}, "only what takes a capability away"


BUMPS = {"patch": "1.0.1", "minor": "1.1.0", "major": "2.0.0"}


@proves("context-pack:versioning:constrained-is-minor", case="minor")
@proves("context-pack:versioning:expanded-is-major", case="major")
@pytest.mark.parametrize("required", CLASSES)
@pytest.mark.parametrize("step", list(BUMPS))
def test_a_number_that_promises_less_than_there_is_is_refused(required: VersionClass, step: VersionClass) -> None:
    effect = {"patch": "metadata", "minor": "narrows", "major": "widens", "reject": "changes"}[required]
    at = "/pack_meta/pack_id" if required == "reject" else "/x"
    bump = required_bump([Change(layer="x", at=at, effect=effect, words="a thing changed")])  # type: ignore[arg-type]
    old, new = PackRef("ctxpack.support", "1.0.0"), PackRef("ctxpack.support", BUMPS[step])
    if CLASSES.index(step) >= CLASSES.index(required):
        check_bump(old, new, bump)
    else:
        with pytest.raises(BumpTooSmall, match="a thing changed"):
            check_bump(old, new, bump)


@pytest.mark.parametrize("version", ["1.0.0", "0.9.9"])
def test_a_changed_pack_comes_after_the_old_one(version: str) -> None:
    with pytest.raises(BumpTooSmall, match="does not come after"):
        check_bump(PackRef("p", "1.0.0"), PackRef("p", version), required_bump([]))


def test_the_order_of_comparing_does_not_matter_for_the_set_of_changes() -> None:
    new = apply_steps(EXAMPLE, *(NARROWING[n] for n in (0, 8, 300, 410)), ((f"{SPEC}/challenge_required", True),))
    shuffled = with_changes([], new)
    shuffled["policy_layer"]["guardrails"]["redaction_rules"].reverse()
    shuffled["tooling_layer"]["permissions"].reverse()
    assert set(compare_packs(EXAMPLE, new)) == set(compare_packs(EXAMPLE, shuffled))
    assert {change.layer for change in compare_packs(EXAMPLE, apply_steps(EXAMPLE, ((f"{GATE}/ttl_seconds", 5),)))} == {
        "policy_layer"
    }
