"""What a difference does: conditions by their cases, rules by their branches, and no difference without a word."""

import contextlib
import copy
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.overlay.resolved_view import (
    OverlayMalformed,
    OverlayMisplaced,
    OverlayUnsafe,
    OverlayWidens,
    resolve_view,
)
from contextplane.model.artifact import OverlayChange
from contextplane.model.json.canonical import canonical
from tests.support.cases import cases
from tests.unit.authoring.changes import AMOUNT, GATE, HIGH, RULES, STAFF, VAR, Step, agent_above, deny, overlay
from tests.unit.authoring.packs import EXAMPLE, leaves, part, with_changes

IDV = f"{RULES}/R_REFUND_REQUIRES_IDV"
VERIFIED = {"==": [{"var": "request.context.identity_verified"}, True]}
REGION = {"==": [{"var": "request.context.region"}, "IN"]}
FEE = {"var": "request.context.fee"}
ALLOWING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0"
ASKING = "/policy_layer/policy_bundles/0/policy_dsl/rules/1"


def effects(step: Step, base: Any = EXAMPLE) -> set[str]:  # noqa: ANN401  any JSON
    return {applied.change.effect for applied in resolve_view(base, [overlay(step)]).applied}


def differences(*changes: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change.effect, change.words) for change in compare_packs(EXAMPLE, with_changes(list(changes)))]


@cases(
    "condition",
    [
        {"and": [VERIFIED, REGION]},
        {"and": [REGION, VERIFIED]},
        {"and": [VERIFIED, {"<": [VAR, 1000]}]},
        {"and": [VERIFIED, {"in": [{"var": "user.role"}, ["support_agent", "support_lead"]]}]},
        False,
    ],
    ids=str,
)
def test_an_overlay_may_add_a_condition_to_a_rule_that_allows_and_otherwise_denies(condition: object) -> None:
    assert effects(((f"{IDV}/if", condition),)) == {"narrows"}


@cases(
    "condition",
    [True, {"or": [VERIFIED, REGION]}, {"!!": [{"var": "request.context.identity_verified"}]}, REGION],
    ids=str,
)
def test_an_overlay_may_not_allow_in_more_or_in_other_cases(condition: object) -> None:
    with pytest.raises(OverlayWidens, match=r"rule R_REFUND_REQUIRES_IDV: its condition holds in (more|other) cases"):
        effects(((f"{IDV}/if", condition),))


def test_what_cannot_be_told_is_said_and_refused() -> None:
    sum_of_two = {"<": [{"+": [VAR, FEE]}, 3000]}
    assert effects(((f"{IDV}/if", {"and": [VERIFIED, sum_of_two]}),)) == {"narrows"}
    with pytest.raises(OverlayWidens, match="cannot tell in which cases its condition holds"):
        effects(((f"{IDV}/if", sum_of_two),))


def test_a_condition_that_no_longer_reads_a_fact_lets_off_whoever_leaves_it_out() -> None:
    with pytest.raises(OverlayWidens, match=r"no longer restricts requests without .*user\.role"):
        effects(((f"{HIGH}/if", {">": [VAR, 1000]}),))
    with pytest.raises(OverlayWidens, match=r"holds in more cases: was .*, now true \(changes behaviour\)"):
        effects(((f"{HIGH}/if", True),))
    # Who has no role was denied, whatever the amount; where the amount is asked first, only above it.
    turned = {"and": [{">": [VAR, 3000]}, {"==": [{"var": "user.role"}, "support_agent"]}]}
    with pytest.raises(OverlayWidens, match=r"no longer restricts requests without user\.role"):
        effects(((f"{HIGH}/if", turned),))
    assert effects(((f"{HIGH}/if", {"and": [STAFF, {">": [VAR, 1000]}]}),)) == {"narrows"}
    assert effects(((f"{GATE}/when", True),)) == {"narrows"}
    assert effects(((f"{IDV}/if", False),)) == {"narrows"}


def test_a_condition_that_cannot_be_evaluated_in_some_case_is_judged_all_the_same() -> None:
    never = {"and": [{">": [VAR, 0]}, {"===": [VAR, 0]}, VERIFIED]}
    assert [effect for effect, _ in differences({"at": f"{ALLOWING}/if", "value": never})] == ["narrows"]


def test_a_guardrail_that_is_more_than_its_label_is_judged_by_what_it_says_more() -> None:
    refusal = "/policy_layer/guardrails/must_refuse/0"
    label, above = "refund_without_identity", {">": [VAR, 9000]}
    assert differences({"at": refusal, "value": {"id": label}}) == []
    assert [
        effect for effect, _ in differences({"at": refusal, "value": {"id": label, "message": "Verify first."}})
    ] == ["wording"]
    assert [effect for effect, _ in differences({"at": refusal, "value": {"id": label, "when": above}})] == ["narrows"]
    more = with_changes([{"at": refusal, "value": {"id": label, "when": above}}])
    assert [change.effect for change in compare_packs(more, EXAMPLE)] == ["widens"]


def test_a_denial_is_not_stricter_than_a_prohibition_of_what_reads() -> None:
    base = with_changes([{"at": f"{ALLOWING}/then/prohibits", "value": ["adp_orders.lookup"]}])
    with pytest.raises(OverlayWidens, match="holds in fewer cases"):
        effects(((f"{IDV}/if", {"and": [VERIFIED, REGION]}),), base)
    writes = with_changes([{"at": f"{ALLOWING}/then/prohibits", "value": ["adp_payments.issue_refund"]}])
    assert effects(((f"{IDV}/if", {"and": [VERIFIED, REGION]}),), writes) == {"narrows"}


def test_a_denial_is_not_stricter_than_a_bound_on_what_may_still_be_read() -> None:
    base = with_changes([{"at": f"{ALLOWING}/then/arg_constraints", "value": {"limit": {"max": 5}}}])
    with pytest.raises(OverlayWidens, match="holds in fewer cases"):
        effects(((f"{IDV}/if", {"and": [VERIFIED, REGION]}),), base)
    both = with_changes([{"at": f"{ALLOWING}/else/arg_constraints", "value": {"limit": {"max": 5}}}], base)
    assert effects(((f"{IDV}/if", {"and": [VERIFIED, REGION]}),), both) == {"narrows"}


def test_what_comes_to_neither_true_nor_false_denies_and_to_decide_it_widens() -> None:
    # A list that is there holds as an operand of `!!`; by itself it is no answer, which denies.
    flag = {"var": "request.context.flag"}
    base = with_changes([{"at": f"{ASKING}/if", "value": flag}])
    asking = with_changes([{"at": f"{ASKING}/if", "value": {"!!": [flag]}}])
    assert [change.effect for change in compare_packs(base, asking)] == ["widens"]
    assert [change.effect for change in compare_packs(asking, base)] == ["narrows"]


def test_a_rule_that_alone_allows_may_not_do_so_in_more_cases() -> None:
    # Without the other rule, whatever this one does not speak of is denied, for nothing allows it.
    alone = with_changes([{"at": ALLOWING}])
    lower = ((f"{HIGH}/if", agent_above(1000)),)
    assert effects(lower) == {"narrows"}
    with pytest.raises(OverlayWidens):
        effects(lower, alone)


def test_a_new_rule_that_allows_is_no_narrowing_where_nothing_else_allows() -> None:
    rule = {
        "rule_id": "R_ASKS",
        "applies_to": {"intent": "support.refund"},
        "if": {">": [VAR, 1]},
        "then": {"allow": True, "requires": ["order_lookup"]},
    }
    assert effects(((f"{RULES}/R_ASKS", rule),)) == {"narrows"}
    with pytest.raises(OverlayWidens, match="new rule R_ASKS"):
        effects(((f"{RULES}/R_ASKS", rule),), with_changes([{"at": ALLOWING}]))


@cases(
    ("changes", "effect", "words"),
    [
        ([{"at": f"{ASKING}/then/allow"}], "narrows", "no longer allows"),
        ([{"at": f"{ASKING}/then/allow", "value": False}], "narrows", "denies now"),
        ([{"at": f"{ALLOWING}/else/allow"}], "widens", "no longer denies"),
        ([{"at": f"{ALLOWING}/else/allow", "value": True}], "widens", "no longer denies and allows now"),
        ([{"at": f"{ASKING}/else", "value": {"allow": True}}], "widens", "allows now (did not before)"),
    ],
)
def test_to_allow_or_no_longer_to_say_so_is_a_change(changes: list[dict[str, Any]], effect: str, words: str) -> None:
    ((actual_effect, actual_words),) = differences(*changes)
    assert actual_effect == effect
    assert actual_words.endswith(words)
    assert actual_words.startswith("rule R_")


def test_to_say_that_it_allows_is_major_and_to_say_it_no_longer_is_seen() -> None:
    silent = with_changes([{"at": f"{ASKING}/then/allow"}])
    (change,) = compare_packs(silent, EXAMPLE)
    assert (change.effect, change.at.rpartition("/")[2]) == ("widens", "allow")


@cases(
    ("at", "value", "words"),
    [
        ("max", 60000, "argument amount_inr may now be up to 60000 (was 50000)"),
        ("max", 40000, "argument amount_inr must now be at most 40000 (was 50000)"),
        ("min", 0, "argument amount_inr may now be as low as 0 (was 1)"),
        ("min", 5, "argument amount_inr must now be at least 5 (was 1)"),
        ("pattern", "^[0-9]+$", "argument amount_inr must now match ^[0-9]+$"),
        ("enum", [1, 2], "argument amount_inr must now be one of [1,2] (was anything)"),
        ("equals", 7, "argument amount_inr must now equal 7"),
        (
            "max",
            {"var": "request.context.x"},
            'argument amount_inr must now be at most {"var":"request.context.x"} (was',
        ),
        ("required", True, "argument amount_inr is now required"),
        ("unless_approved", True, "an approval now lifts what bounds the argument amount_inr"),
    ],
)
def test_a_bound_is_told_with_its_permission_and_its_argument(at: str, value: object, words: str) -> None:
    place = f"/tooling_layer/permissions/2/arg_constraints/amount_inr/{at}"
    ((_, actual),) = differences({"at": place, "value": value})
    assert actual.startswith(f"permission adp_payments.issue_refund: {words}")


@cases(
    ("argument", "old", "new", "effect", "words"),
    [
        (
            "amount",
            {"max": 5},
            {"max": 4},
            "narrows",
            "argument amount of adp_orders.lookup must now be at most 4 (was 5)",
        ),
        ("amount", {"max": 5}, {"max": 6}, "widens", "argument amount of adp_orders.lookup may now be up to 6 (was 5)"),
        ("amount", None, {"max": 6}, "narrows", "argument amount of adp_orders.lookup must now be at most 6 (had no"),
        ("amount", {"max": 6}, None, "widens", "argument amount of adp_orders.lookup has lost its bound of 6"),
        ("enum", {"max": 5}, {"max": 6}, "changes", "what bounds the argument enum of adp_orders.lookup was"),
        ("required", None, {"max": 6}, "narrows", "what bounds the argument required of adp_orders.lookup is now"),
        (
            "max",
            {"max": 5},
            None,
            "widens",
            'what bounds the argument max of adp_orders.lookup was {"max":5}, now gone',
        ),
    ],
)
def test_a_bound_of_one_capability_is_told_with_its_capability(
    argument: str, old: object, new: object, effect: str, words: str
) -> None:
    place = f"{ASKING}/then/arg_constraints"
    packs = [
        with_changes(
            [{"at": place, "value": {"adp_orders.lookup": {"x": {"max": 1}, **({argument: side} if side else {})}}}]
        )
        for side in (old, new)
    ]
    (change,) = compare_packs(*packs)
    assert (change.effect, change.words.startswith(f"rule R_HIGH_VALUE_REQUIRES_APPROVAL, then: {words}")) == (
        effect,
        True,
    )


def test_a_bound_of_every_tool_that_becomes_one_of_a_single_capability_widens() -> None:
    place = f"{ASKING}/then/arg_constraints"
    every = with_changes([{"at": place, "value": {"amount": {"max": 5}}}])
    single = with_changes([{"at": place, "value": {"adp_orders.lookup": {"amount": {"max": 5}}}}])
    assert {change.effect for change in compare_packs(every, single)} == {"widens", "narrows"}


@cases(
    ("at", "value", "words"),
    [
        ("/policy_layer/approval_gates/0/ttl_seconds", 60, "approval gate GATE_FINANCE_APPROVAL: "),
        ("/tooling_layer/adapter_registry/0/endpoint_ref", "internal://x", "adapter adp_orders: "),
        ("/decision_layer/decision_specs/0/owner_role", "x", "decision support.refund.execute: "),
        ("/evaluation_layer/eval_targets/0/utility", 0.5, "evaluator target for support.refund: "),
        ("/evaluation_layer/release_gates/0/max_delta", 0.5, "release gate for policy: "),
        (f"{ASKING}/then/requires", ["order_lookup"], "rule R_HIGH_VALUE_REQUIRES_APPROVAL, then: "),
    ],
)
def test_a_change_inside_a_part_names_the_part(at: str, value: object, words: str) -> None:
    ((_, actual),) = differences({"at": at, "value": value})
    assert actual.startswith(words)


@pytest.mark.parametrize("token", ["ghp_" + "a1B2" * 9, "q8Zk2LmP9xVt4RwY7nBc3Df6Gh1Js5"])
def test_a_secret_is_not_repeated(token: str) -> None:
    ((_, actual),) = differences(
        {"at": "/tooling_layer/adapter_registry/0/endpoint_ref", "value": f"https://x/{token}"}
    )
    assert token not in actual
    assert "looks like a secret" in actual


VALUES = st.one_of(
    *(
        st.just(value)
        for value in (None, True, False, 0, -1, 2.5, "", "x", [], {}, [1], {"a": 1}, {"var": "user.role"})
    ),
)
PLACES = [at for at, _ in leaves(EXAMPLE)]


@given(st.sampled_from(PLACES), VALUES)
def test_no_difference_is_without_a_word(at: str, value: object) -> None:
    new = with_changes([{"at": at, "value": value}])
    assume(canonical(new) != canonical(EXAMPLE))
    assert compare_packs(EXAMPLE, new)
    assert compare_packs(new, EXAMPLE)


def test_empty_parts_that_come_are_told_and_no_order_is() -> None:
    ((effect, words),) = differences({"at": f"{ASKING}/else", "value": {}})
    assert (effect, words) == ("metadata", "rule R_HIGH_VALUE_REQUIRES_APPROVAL: else is written in another way")
    ((effect, _),) = differences({"at": "/policy_layer/guardrails/redaction_rules/-", "value": "pan"})
    assert effect == "metadata"
    turned = copy.deepcopy(EXAMPLE)
    turned["policy_layer"]["guardrails"]["redaction_rules"].reverse()
    assert compare_packs(EXAMPLE, turned) == ()


@given(st.sampled_from([GATE, HIGH, IDV, AMOUNT, f"{GATE}/when", f"{HIGH}/then", "/policy_layer"]), VALUES)
def test_whatever_an_overlay_sets_is_applied_or_refused_and_nothing_else(at: str, value: object) -> None:
    changed = msgspec.structs.replace(overlay(), changes=(OverlayChange(at=at, value=value),))
    with contextlib.suppress(OverlayWidens, OverlayMalformed, OverlayMisplaced, OverlayUnsafe):
        assert resolve_view(EXAMPLE, [changed]).value != EXAMPLE


@cases(
    ("spec", "effects"),
    [
        ({"description": "Looks up one order by its id."}, {"wording"}),
        ({"arguments": {"order_id": {"type": "string", "description": "Its id."}}}, {"wording"}),
        ({"arguments": {"order_id": {"type": "integer"}}}, {"changes"}),
        ({"arguments": {"order_id": {"type": "string"}, "of": {"type": "string"}}}, {"changes"}),
    ],
)
def test_words_about_a_tool_are_wording_and_its_arguments_are_behaviour(spec: Any, effects: set[str]) -> None:  # noqa: ANN401  any JSON
    at = "/tooling_layer/adapter_registry/0/capability_specs"
    before = {"description": "Looks up an order.", "arguments": {"order_id": {"type": "string"}}}
    packs = [with_changes([{"at": at, "value": {"lookup": side}}]) for side in (before, before | spec)]
    assert {change.effect for change in compare_packs(*packs)} == effects


def test_a_changed_description_names_its_capability() -> None:
    at = "/tooling_layer/adapter_registry/0/capability_specs"
    packs = [with_changes([{"at": at, "value": {"lookup": {"description": text}}}]) for text in ("One.", "Two.")]
    assert [change.words for change in compare_packs(*packs)] == [
        "adapter adp_orders: the description of lookup was One., now Two."
    ]


LIFTABLE = {"at": "/tooling_layer/permissions/2/arg_constraints/amount_inr/unless_approved", "value": True}


def test_a_gate_in_more_cases_is_a_way_around_a_bound_that_an_approval_lifts() -> None:
    more = ((f"{GATE}/when", {">": [VAR, 1000]}),)
    assert effects(more) == {"narrows"}
    with pytest.raises(OverlayWidens, match=r"more cases: .*, and an approval lifts a bound of this pack"):
        effects(more, with_changes([LIFTABLE]))
    asks = ((f"{HIGH}/if", agent_above(1000)),)
    assert effects(asks) == {"narrows"}
    with pytest.raises(OverlayWidens, match="its condition holds in more cases"):
        effects(asks, with_changes([LIFTABLE]))


def test_a_new_rule_may_not_lead_to_a_further_decision() -> None:
    spec = part(EXAMPLE, "/decision_layer/decision_specs/0")
    more = {"at": "/decision_layer/decision_specs/-", "value": {**spec, "decision_key": "support.refund.void"}}
    base = with_changes([more])
    rule = deny("R_NEW", {">": [VAR, 1]})
    bound = {**rule, "decision_binding": spec["decision_key"]}
    assert effects(((f"{RULES}/R_NEW", rule),), base) == {"narrows"}
    assert effects(((f"{RULES}/R_NEW", bound),), base) == {"narrows"}
    with pytest.raises(OverlayWidens, match="new rule R_NEW"):
        effects(((f"{RULES}/R_NEW", {**bound, "decision_binding": "support.refund.void"}),), base)


def test_a_rule_mode_that_its_decision_caps_may_lower_that_of_a_tool() -> None:
    capped = with_changes(
        [
            {"at": f"{ASKING}/then/approval_mode"},
            {"at": "/decision_layer/decision_specs/0/approval_mode", "value": "network"},
        ]
    )
    highest = ((f"{HIGH}/then/approval_mode", "destructive"),)
    assert effects(highest, with_changes([{"at": f"{ASKING}/then/approval_mode"}])) == {"narrows"}
    with pytest.raises(OverlayWidens, match="approval mode"):
        effects(highest, capped)


FACTS = [{"var": f"request.context.f{n}"} for n in range(6)]


def test_a_widening_is_found_among_many_facts_and_so_is_a_narrowing() -> None:
    # Each fact has eight classes of values, so that they cannot be tried one by one.
    parts = [{"<": [fact, 10]} for fact in FACTS]
    base = with_changes([{"at": f"{ALLOWING}/if", "value": {"and": parts}}])
    assert effects(((f"{IDV}/if", {"and": [*parts[:5], {"<": [FACTS[5], 9]}]}),), base) == {"narrows"}
    for looser in (
        {"and": [*parts[:5], {"<": [FACTS[5], 11]}]},
        {"and": parts[:5]},
        {"and": [*parts[:5], {"<": [{"var": ["request.context.f5", 0]}, 10]}]},
    ):
        with pytest.raises(OverlayWidens):
            effects(((f"{IDV}/if", looser),), base)
    (change,) = compare_packs(
        base, with_changes([{"at": f"{ALLOWING}/if", "value": {"and": [parts[-1], *parts[:-1]]}}])
    )
    assert change.effect == "metadata", "each missing fact denies, in any order"


LIMITED = "/tooling_layer/permissions/2/limits"
DAILY = {"per": "user", "period": "24h", "max_calls": 3}
TOTAL = {"per": "run", "sum_of": "amount_inr", "max": 500}


@cases(
    ("old", "new", "effect", "words"),
    [
        ([DAILY], [{**DAILY, "max_calls": 2}], "narrows", "the most of calls per user in 24h was 3, now 2"),
        ([DAILY], [{**DAILY, "max_calls": 4}], "widens", "the most of calls per user in 24h was 3, now 4"),
        ([TOTAL], [{**TOTAL, "max": 400}], "narrows", "the most of amount_inr per run was 500, now 400"),
        ([TOTAL], [{**TOTAL, "max": 600}], "widens", "the most of amount_inr per run was 500, now 600"),
        ([TOTAL], [TOTAL, DAILY], "narrows", "new limit of calls per user in 24h"),
        ([TOTAL, DAILY], [TOTAL], "widens", "the limit of calls per user in 24h is gone"),
        (None, [TOTAL], "narrows", "new limit of amount_inr per run"),
        ([DAILY], None, "widens", "the limit of calls per user in 24h is gone"),
    ],
)
def test_a_lower_limit_of_calls_narrows(old: Any, new: Any, effect: str, words: str) -> None:  # noqa: ANN401  any JSON
    packs = [with_changes([{"at": LIMITED, "value": side}] if side else []) for side in (old, new)]
    (change,) = compare_packs(*packs)
    assert (change.effect, change.words) == (effect, f"permission adp_payments.issue_refund: {words}")


def test_another_period_is_another_limit() -> None:
    packs = [with_changes([{"at": LIMITED, "value": [{**DAILY, "period": period}]}]) for period in ("24h", "1h")]
    assert {change.effect for change in compare_packs(*packs)} == {"narrows", "widens"}


def test_an_overlay_may_lower_a_limit_of_calls_and_not_raise_or_remove_it() -> None:
    base = with_changes([{"at": LIMITED, "value": [DAILY]}])
    at = "/tooling_layer/permissions/adp_payments.issue_refund/limits"
    assert effects(((at, [{**DAILY, "max_calls": 2}]),), base) == {"narrows"}
    for looser in ([{**DAILY, "max_calls": 4}], [], [{**DAILY, "period": "1h"}], [{**DAILY, "per": "tenant"}]):
        with pytest.raises(OverlayWidens):
            effects(((at, looser),), base)


def test_the_arguments_that_a_capability_lists_are_compared_one_by_one() -> None:
    at = "/tooling_layer/adapter_registry/0/capability_specs"
    capability = EXAMPLE["tooling_layer"]["adapter_registry"][0]["capabilities"][0]
    order, note = {"type": "string", "required": True}, {"type": "string", "description": "x" * 200}
    packs = [
        with_changes([{"at": at, "value": {capability: {**listed, "default_timeout_ms": 100}}}])
        for listed in ({}, {"arguments": {"order_id": order}}, {"arguments": {"order_id": order, "note": note}})
    ]
    adapter = EXAMPLE["tooling_layer"]["adapter_registry"][0]["adapter_id"]
    expected = {
        (0, 1): f"{capability} now lists its arguments: order_id (string, required)",
        (1, 2): f"new argument note (string) of {capability}",
        (2, 1): f"argument note of {capability} is gone",
        (1, 0): f"{capability} no longer lists its arguments",
    }
    for (old, new), words in expected.items():
        (change,) = compare_packs(packs[old], packs[new])
        assert (change.effect, change.words) == ("changes", f"adapter {adapter}: {words}")
