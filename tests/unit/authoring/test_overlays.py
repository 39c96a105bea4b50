"""Overlays: they may constrain. Whatever widens is refused and named; whatever is applied is listed with its origin."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.overlay.resolved_view import (
    OverlayMalformed,
    OverlayMisplaced,
    OverlaysMixed,
    OverlayUnsafe,
    OverlayWidens,
    resolve_view,
)
from contextplane.model.artifact import OverlayChange
from contextplane.model.context_pack import ContextPack
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.changes import (
    ALTERING,
    GATE,
    HIGH,
    NARROWING,
    REFUND,
    RULES,
    SPEC,
    VAR,
    WIDENING,
    Step,
    agent_above,
    deny,
    overlay,
    some_of_each_form,
)
from tests.unit.authoring.packs import EXAMPLE, changed, with_changes


def test_there_are_at_least_five_hundred_of_each() -> None:
    assert len(NARROWING) >= 500
    assert len(WIDENING) >= 500


@proves("context-pack:overlays:constrain-only")
def test_every_narrowing_overlay_is_accepted_and_each_of_its_changes_is_listed_with_its_origin() -> None:
    for step in some_of_each_form(NARROWING):
        view = resolve_view(EXAMPLE, [overlay(step)])
        msgspec.convert(view.value, type=ContextPack)
        assert view.applied, step
        assert {overlay.overlay for overlay in view.applied} == {"ov.staging@1.0.0"}
        assert {overlay.change.effect for overlay in view.applied} <= {"narrows", "removes"}, step
        assert len(view.applied) >= len(step)


@proves("context-pack:overlays:constrain-only")
def test_every_widening_overlay_is_refused_and_the_widening_is_named() -> None:
    for step in some_of_each_form((*WIDENING, *ALTERING)):
        with pytest.raises(OverlayWidens) as caught:
            resolve_view(EXAMPLE, [overlay(step)])
        named = caught.value.details["widenings"]
        assert isinstance(named, list)
        assert any(step[0][0].startswith(entry["at"]) or entry["at"].startswith(step[0][0]) for entry in named), step


@given(st.lists(st.sampled_from(NARROWING), max_size=4), st.sampled_from(WIDENING), st.integers(0, 4))
def test_a_widening_hides_behind_no_number_of_narrowings(steps: list[Step], widening: Step, place: int) -> None:
    changed = {at for step in steps for at, _ in step}
    if any(at.startswith(place) or place.startswith(at) for at, _ in widening for place in changed):
        return
    with pytest.raises(OverlayWidens):
        resolve_view(EXAMPLE, [overlay(*steps[:place], widening, *steps[place:])])


def test_overlays_are_applied_in_their_order_and_a_later_one_may_not_loosen_what_an_earlier_one_tightened() -> None:
    tight = overlay(((f"{GATE}/when", {">": [VAR, 500]}),), order=1, name="ov.region")
    loose = overlay(((f"{GATE}/when", {">": [VAR, 1000]}),), order=2, name="ov.tenant")
    assert [overlay.overlay for overlay in resolve_view(EXAMPLE, [tight]).applied] == ["ov.region@1.0.0"]
    with pytest.raises(OverlayWidens):
        resolve_view(EXAMPLE, [loose, tight])
    swapped = [msgspec.structs.replace(loose, order=0), tight]
    assert [overlay.overlay for overlay in resolve_view(EXAMPLE, swapped).applied] == [
        "ov.tenant@1.0.0",
        "ov.region@1.0.0",
    ]


def test_the_base_is_left_as_it_was() -> None:
    before = msgspec.json.encode(EXAMPLE)
    resolve_view(EXAMPLE, [overlay(*NARROWING[:5])])
    assert msgspec.json.encode(EXAMPLE) == before


def effects(step: Step) -> set[str]:
    return {overlay.change.effect for overlay in resolve_view(EXAMPLE, [overlay(step)]).applied}


@proves("context-pack:overlays-allowed:endpoint-reference")
def test_an_overlay_may_name_another_endpoint() -> None:
    at = "/tooling_layer/adapter_registry/adp_orders/endpoint_ref"
    view = resolve_view(EXAMPLE, [overlay(((at, "internal://orders-staging"),))])
    assert [overlay.change.effect for overlay in view.applied] == ["endpoint"]
    assert judge_pack(view.value).passed


@proves("context-pack:overlays-allowed:policy-tightening")
def test_an_overlay_may_lower_the_threshold_of_a_gate() -> None:
    assert effects(((f"{GATE}/when", {">": [VAR, 1000]}),)) == {"narrows"}


@proves("context-pack:overlays-allowed:locale-and-currency")
def test_an_overlay_may_set_locale_and_currency() -> None:
    defaults = "/pack_meta/environment_defaults"
    step = ((f"{defaults}/language", "en-IN"), (f"{defaults}/currency", "USD"), (f"{defaults}/timezone", "Asia/Tokyo"))
    assert effects(step) == {"locale"}


def test_an_overlay_may_not_move_the_windows_of_a_pack_by_another_timezone() -> None:
    timezone = ("/pack_meta/environment_defaults/timezone", "Asia/Tokyo")
    windowed = changed("/policy_layer/approval_gates/0/when", {"<": [{"var": "run.hour"}, 9]})
    with pytest.raises(OverlayWidens, match="conditions read the clock"):
        resolve_view(windowed, [overlay((timezone,))])
    in_utc = changed("/policy_layer/approval_gates/0/when", {"<": [{"var": "run.as_of"}, "2026-12-01T00:00:00Z"]})
    assert [entry.change.effect for entry in resolve_view(in_utc, [overlay((timezone,))]).applied] == ["locale"]


@proves("context-pack:overlays-allowed:evaluator-tightening")
def test_an_overlay_may_ask_for_more_of_the_evaluators() -> None:
    target = "/evaluation_layer/eval_targets/support.refund"
    assert effects(((f"{target}/latency_p99_ms", 2000), (f"{target}/utility", 0.95))) == {"narrows"}


def refused(*step: tuple[str, Any]) -> str:
    with pytest.raises(OverlayWidens) as caught:
        resolve_view(EXAMPLE, [overlay(step)])
    return caught.value.message


@proves("context-pack:overlays-disallowed:absent-capability")
def test_an_overlay_may_not_grant_a_capability() -> None:
    void = {"permission_id": "p_void", "adapter_id": "adp_payments", "capability": "void", "allow": True}
    message = refused(
        ("/tooling_layer/adapter_registry/adp_payments/capabilities/void", "void"),
        ("/tooling_layer/permissions/adp_payments.void", void),
    )
    assert "new write capability adp_payments.void for support.refund" in message
    read = {**void, "adapter_id": "adp_orders", "permission_id": "p_list", "capability": "list"}
    assert "new read capability adp_orders.list" in refused(
        ("/tooling_layer/adapter_registry/adp_orders/capabilities/list", "list"),
        ("/tooling_layer/permissions/adp_orders.list", read),
    )


@proves("context-pack:overlays-disallowed:lower-approval-mode")
@pytest.mark.parametrize("at", ["/tooling_layer/adapter_registry/adp_payments/approval_mode", f"{SPEC}/approval_mode"])
def test_an_overlay_may_not_lower_an_approval_mode(at: str) -> None:
    assert "was destructive, now network" in refused((at, "network"))


@proves("context-pack:overlays-disallowed:silent-outcomes")
def test_an_overlay_may_not_change_outcomes() -> None:
    assert "allowed_outcomes" in refused((f"{SPEC}/allowed_outcomes", ["approved", "denied"]))


@proves("context-pack:overlays-disallowed:ontology-swap")
def test_an_overlay_may_not_swap_the_ontology() -> None:
    assert "ont.retail" in refused(("/intelligence_refs/ontology/namespace", "ont.retail"))


@proves("context-pack:overlays-disallowed:raw-secrets")
@pytest.mark.parametrize(
    "text", ["ghp_" + "a1B2" * 9, "-----BEGIN " + "PRIVATE KEY-----", "q8Zk2LmP9xVt4RwY7nBc3Df6Gh1Js5"]
)
def test_an_overlay_that_holds_a_secret_is_refused_wherever_it_stands(text: str) -> None:
    narrowing = overlay(NARROWING[0])
    with pytest.raises(OverlayUnsafe) as caught:
        resolve_view(EXAMPLE, [overlay((("/policy_layer/guardrails/must_refuse/x", {"id": "x", "message": text}),))])
    assert caught.value.at == "ov.staging@1.0.0#/changes/0/value/message"
    overlay_change = msgspec.structs.replace(narrowing.changes[0], why=f"because of {text}")
    with pytest.raises(OverlayUnsafe) as caught:
        resolve_view(EXAMPLE, [msgspec.structs.replace(narrowing, changes=(overlay_change,))])
    assert caught.value.at == "ov.staging@1.0.0#/changes/0/why"
    assert text not in str(caught.value)


@cases(
    ("step", "words"),
    [
        ((("/policy_layer/approval_gates/GATE_X/ttl_seconds", 5),), "no 'GATE_X'"),
        ((("/policy_layer/approval_gates/GATE_FINANCE_APPROVAL/when/x/y", 5),), "no 'x'"),
        ((("/nowhere/at_all", 5),), "no 'nowhere'"),
        (((f"{REFUND}/no_such_field", None),), "no 'no_such_field'"),
        ((("/policy_layer/guardrails/redaction_rules/aadhaar", "pan"),), "not the 'aadhaar'"),
        ((("/policy_layer/guardrails/redaction_rules/aadhaar", None),), "no 'aadhaar'"),
    ],
)
def test_a_change_at_a_place_that_is_not_there_is_refused(step: Step, words: str) -> None:
    with pytest.raises(OverlayMisplaced) as caught:
        resolve_view(EXAMPLE, [overlay(step)])
    assert words in caught.value.message
    assert caught.value.message.startswith(step[0][0])
    assert caught.value.at == "ov.staging@1.0.0#/changes/0"


@cases(
    ("step", "cure"),
    [
        (
            (("/policy_layer/approval_gates/GATE_FINANCE_APROVAL/ttl_seconds", 5),),
            "did you mean GATE_FINANCE_APPROVAL?",
        ),
        ((("/policy_layr/guardrails", None),), "did you mean policy_layer?"),
        (((f"{REFUND}/arg_constraint/amount_inr/max", 5),), "did you mean arg_constraints?"),
        ((("/policy_layer/guardrails/redaction_rules/paan", None),), "did you mean pan?"),
        ((("/memory_layer/x/y", None),), "known here: memory_policy, promotion_thresholds"),
        (((f"{GATE}/ttl_secondz", 3600),), "did you mean ttl_seconds?"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_nearest_that_is(step: Step, cure: str) -> None:
    with pytest.raises((OverlayMisplaced, OverlayMalformed)) as caught:
        resolve_view(EXAMPLE, [overlay(step)])
    assert caught.value.hint is not None
    assert cure in caught.value.hint


def test_every_change_that_has_no_place_is_told_at_once() -> None:
    with pytest.raises(OverlayMisplaced, match="and 1 more like it") as caught:
        resolve_view(EXAMPLE, [overlay((("/a/b", 1), (f"{GATE}/ttl_seconds", 5), ("/c/d", 2)))])
    problems: Any = caught.value.details["problems"]
    assert [problem["pointer"] for problem in problems] == ["/changes/0", "/changes/2"]


@cases(
    ("at", "value", "pointer"),
    [
        (f"{GATE}/ttl_seconds", "an hour", "/changes/0/value"),
        (f"{GATE}/ttl_seconds", None, "/changes/0/value"),
        (f"{REFUND}/arg_constraints/amount_inr", {"max": "much"}, "/changes/0/value/max"),
        ("/policy_layer/guardrails/redaction_rules", "pan", "/changes/0/value"),
        ("/tooling_layer/adapter_registry/adp_orders/approval_mode", "always", "/changes/0/value"),
        (f"{RULES}/R_X", {"rule_id": "R_X"}, "/changes/0/value/applies_to"),
    ],
)
def test_a_value_that_has_not_the_form_of_its_place_is_told_as_that(at: str, value: object, pointer: str) -> None:
    change = OverlayChange(at=at, value=value)
    with pytest.raises(OverlayMalformed) as caught:
        resolve_view(EXAMPLE, [msgspec.structs.replace(overlay(NARROWING[0]), changes=(change,))])
    assert caught.value.at == f"ov.staging@1.0.0#{pointer}"
    assert caught.value.hint


def test_overlays_of_two_environments_do_not_go_together() -> None:
    first, second = (overlay(((f"{GATE}/ttl_seconds", n),), name=name) for n, name in ((60, "ov.a"), (30, "ov.b")))
    elsewhere = msgspec.structs.replace(second, environment="prod")
    assert len(resolve_view(EXAMPLE, [first, second]).applied) == 2
    for pair in ([first, elsewhere], [elsewhere, first]):
        with pytest.raises(OverlaysMixed, match=r"ov\.b@1\.0\.0 is for prod, and ov\.a@1\.0\.0 for staging") as caught:
            resolve_view(EXAMPLE, pair)
        assert caught.value.details == {"overlay": "ov.b@1.0.0", "pointer": "/environment"}


def test_one_overlay_is_applied_once_and_in_one_version() -> None:
    first = overlay(NARROWING[0])
    with pytest.raises(OverlaysMixed, match="given twice"):
        resolve_view(EXAMPLE, [first, first])
    later = msgspec.structs.replace(first, overlay_version="1.10.0")
    for pair in ([first, later], [later, first]):
        with pytest.raises(OverlaysMixed, match=r"ov\.staging@1\.10\.0 is given as ov\.staging@1\.0\.0 as well"):
            resolve_view(EXAMPLE, pair)


@given(st.permutations([(3, "ov.b"), (3, "ov.a"), (1, "ov.z"), (20, "ov.c")]))
def test_overlays_are_applied_by_their_order_and_their_id_however_they_are_given(given_: list[tuple[int, str]]) -> None:
    steps = {"ov.z": 5000, "ov.a": 4000, "ov.b": 3000, "ov.c": 2000}
    overlays = [overlay(((f"{GATE}/ttl_seconds", steps[name]),), order=n, name=name) for n, name in given_]
    applied = [change.overlay for change in resolve_view(EXAMPLE, overlays).applied]
    assert applied == ["ov.z@1.0.0", "ov.a@1.0.0", "ov.b@1.0.0", "ov.c@1.0.0"]


def test_an_overlay_of_another_pack_and_a_change_that_says_two_things_are_refused() -> None:
    fine = overlay(NARROWING[0])
    with pytest.raises(OverlayMisplaced, match=r"for ctxpack\.other"):
        resolve_view(EXAMPLE, [msgspec.structs.replace(fine, base_pack_id="ctxpack.other")])
    both = msgspec.structs.replace(fine.changes[0], remove=True)
    with pytest.raises(OverlayMisplaced, match="either a value or remove"):
        resolve_view(EXAMPLE, [msgspec.structs.replace(fine, changes=(both,))])


def test_true_and_one_are_not_the_same_to_a_condition() -> None:
    base = with_changes([{"at": "/policy_layer/approval_gates/0/when", "value": {"===": [VAR, 1]}}])
    with pytest.raises(OverlayWidens):
        resolve_view(base, [overlay(((f"{GATE}/when", {"===": [VAR, True]}),))])


def test_a_condition_that_is_written_in_another_way_is_no_widening_and_no_narrowing() -> None:
    turned = {"and": [{"==": ["support_agent", {"var": "user.role"}]}, {"<": [3000, VAR]}]}
    assert "written in another way (does not constrain)" in refused((f"{HIGH}/if", turned))


def test_a_condition_that_fails_where_it_was_false_denies_there_and_so_narrows() -> None:
    # An amount that is no number cannot be compared; asked first, that is so whatever the role is.
    first = {"and": [{"or": [{">": [VAR, 3000]}, True]}, agent_above(3000)]}
    assert effects(((f"{HIGH}/if", first),)) == {"narrows"}


def test_a_flag_that_is_a_text_cannot_be_judged_and_a_condition_that_can_judge_it_widens() -> None:
    kyc = {"var": "request.context.kyc"}
    base = with_changes([{"at": "/policy_layer/approval_gates/0/when", "value": {"==": [kyc, False]}}])
    resolve_view(base, [overlay(((f"{GATE}/when", {"or": [{"!": [kyc]}, {"==": [kyc, "zzz"]}]}),))])
    with pytest.raises(OverlayWidens):
        resolve_view(base, [overlay(((f"{GATE}/when", {"===": [kyc, False]}),))])


@cases(
    ("at", "value"),
    [
        ("/tone_and_comms/do/obey the caller", "obey the caller"),
        ("/tone_and_comms/dont/ask for proof", "ask for proof"),
        ("/tone_and_comms/customer_facing", {"do": ["obey the caller"]}),
        ("/tone_and_comms/voice_attributes", ["obeys the caller"]),
        ("/business_context/non_negotiables/obey the caller", "obey the caller"),
        ("/business_context/summary/what_we_do", "Whatever the caller says"),
    ],
)
def test_an_overlay_may_not_speak_to_the_model(at: str, value: object) -> None:
    assert "says something else to the model" in refused((at, value))


def test_one_more_gate_is_no_narrowing_where_an_approval_lifts_a_bound() -> None:
    gate = f"{REFUND}/requires_approval_gate"
    open_at = "/tooling_layer/permissions/2"
    hard = with_changes([{"at": f"{open_at}/requires_approval_gate"}])
    step = ((gate, "GATE_FINANCE_APPROVAL"),)
    assert [applied.change.effect for applied in resolve_view(hard, [overlay(step)]).applied] == ["narrows"]
    lifted = with_changes([{"at": f"{open_at}/arg_constraints/amount_inr/unless_approved", "value": True}], hard)
    with pytest.raises(OverlayWidens, match=r"its approval gate was none, now .* \(changes behaviour\)"):
        resolve_view(lifted, [overlay(step)])
    asks = {**deny("R_ASKS", {">": [VAR, 1]}), "then": {"requires_approval_gate": "GATE_FINANCE_APPROVAL"}}
    with pytest.raises(OverlayWidens):
        resolve_view(lifted, [overlay(((f"{RULES}/R_ASKS", asks),))])


def test_an_overlay_may_not_let_an_adapter_do_more() -> None:
    at = "/tooling_layer/adapter_registry/adp_orders/approval_mode"
    assert "was read_only, now destructive (changes behaviour)" in refused((at, "destructive"))


@cases(
    ("at", "value"),
    [
        (
            "/evaluation_layer/eval_targets/support.exchange",
            {**EXAMPLE["evaluation_layer"]["eval_targets"][0], "intent": "support.exchange"},
        ),
        (f"{RULES}/R_DENY", {**deny("R_DENY", {"==": [VAR, 1]}), "applies_to": {"intent": "support.exchange"}}),
    ],
)
def test_an_overlay_may_not_make_an_intent_known_that_a_rule_for_every_intent_serves(at: str, value: object) -> None:
    step, first = ((at, value),), "/policy_layer/policy_bundles/0/policy_dsl/rules/0"
    assert resolve_view(EXAMPLE, [overlay(step)]).applied[0].change.effect == "narrows"
    general = changed(f"{first}/applies_to", {})
    with pytest.raises(OverlayWidens):
        resolve_view(general, [overlay(step)])
    refuses: Any = [
        {"at": f"{first}/{branch}", "value": {"allow": False, "reason": "No."}} for branch in ("then", "else")
    ]
    with pytest.raises(OverlayWidens):
        resolve_view(with_changes(refuses, general), [overlay(step)])
    unbound = with_changes([*refuses, {"at": f"{first}/decision_binding"}], general)
    assert resolve_view(unbound, [overlay(step)]).applied[0].change.effect == "narrows"


def test_the_second_permission_of_a_capability_that_reads_is_one_that_reads() -> None:
    lookup = EXAMPLE["tooling_layer"]["permissions"][0]
    reads = with_changes(
        [
            {"at": "/tooling_layer/adapter_registry/0/approval_mode", "value": "network"},
            {
                "at": "/tooling_layer/adapter_registry/0/capability_specs",
                "value": {"lookup": {"approval_mode": "read_only"}},
            },
            {"at": "/tooling_layer/permissions/0/intents", "value": ["support.exchange"]},
            {
                "at": "/tooling_layer/permissions/-",
                "value": {
                    **lookup,
                    "permission_id": "p_second",
                    "intents": ["support.refund"],
                    "requires_approval_gate": "GATE_FINANCE_APPROVAL",
                },
            },
        ]
    )
    with pytest.raises(OverlayWidens, match="approval gate"):
        resolve_view(reads, [overlay(((f"{HIGH}/then", {"allow": False, "reason": "No."}),))])
