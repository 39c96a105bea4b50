"""Why something is in or out: what had a say in it, and the fewest changes that flip it, each verified by compiling."""

from pathlib import Path
from typing import Any

import pytest

from contextplane.audit import why
from contextplane.audit.why import Explanation, explain
from contextplane.compiler.case import read_case
from contextplane.compiler.overrides import apply_overrides, parse_override
from contextplane.compiler.source import PackSource, list_all_items
from contextplane.errors import ContextPlaneError
from tests.unit.compiler.case_files import CLOSING, SHOWN, case_file, source_of
from tests.unit.compiler.scenario import CASE, memory, put

REFUND = "adp_payments.issue_refund"
HIGH = "R_HIGH_VALUE_REQUIRES_APPROVAL"
GATE = "GATE_FINANCE_APPROVAL"
READ_ONLY = {"/run_context/safety_mode": "read_only"}
UNVERIFIED = {"/request/input/context/identity_verified": False}


def ask(
    folder: Path, name: str, changes: dict[str, Any] | None = None, of: dict[str, Any] | None = None
) -> Explanation:
    return explain(source_of(folder), case_file(folder, changes, of), name)


def flips(explanation: Explanation) -> list[list[str]]:
    return [[override.words for override in flip] for flip in explanation.counterfactuals]


@pytest.mark.parametrize(
    ("name", "changes", "inside", "flip"),
    [
        (REFUND, {}, True, ['safety_mode="delegated"']),
        (REFUND, READ_ONLY, False, ['safety_mode="destructive"']),
        (REFUND, UNVERIFIED, False, ["request.context.identity_verified=true"]),
        (
            REFUND,
            {**READ_ONLY, **UNVERIFIED},
            False,
            ['safety_mode="destructive"', "request.context.identity_verified=true"],
        ),
        (HIGH, {}, True, ["request.context.refund_amount=3000"]),
        (HIGH, {"/request/input/context/refund_amount": 20}, False, ["request.context.refund_amount=3001"]),
        (GATE, {}, True, ["request.context.refund_amount=3000"]),
        (GATE, {"/request/input/context/refund_amount": 20}, False, ["request.context.refund_amount=3001"]),
        ("fraud_signal_high", {}, False, ["request.context.fraud_signal_high=true"]),
        (
            "fraud_signal_high",
            {"/request/input/context/signals": ["fraud_signal_high"]},
            True,
            ["request.context.signals=null"],
        ),
        ("requirement/identity_verified", UNVERIFIED, False, ["request.context.identity_verified=true"]),
        ("decision/request", UNVERIFIED, False, ["request.context.identity_verified=true"]),
    ],
)
def test_the_fewest_changes_that_flip_it_are_told(
    tmp_path: Path,
    name: str,
    changes: dict[str, Any],
    inside: bool,  # noqa: FBT001  a row
    flip: list[str],
) -> None:
    explanation = ask(tmp_path, name, changes)
    assert explanation.item.inside is inside
    assert flip in flips(explanation)
    assert explanation.complete


@pytest.mark.parametrize(
    ("name", "of", "flip"),
    [
        ("ev_4", put(SHOWN, {"/run_context/run_budget/bucket_tokens/evidence": 100}), "bucket_tokens.evidence=127"),
        (
            CASE["evidence"][4],
            put(SHOWN, {"/run_context/run_budget/bucket_tokens/evidence": 100}),
            "bucket_tokens.evidence=127",
        ),
        (CASE["evidence"][0], put(SHOWN, {"/environment/snapshot": "later"}), "kg_2026_05_03_T0930"),
        (
            "tool:adp_orders.lookup:tc_117",
            put(CLOSING, {"/as_of": "2027-01-01T00:00:00Z"}),
            '/as_of="2026-05-04T09:30:00Z"',
        ),
        ("order_lookup", put(CLOSING, {"/evidence/0/trust": "untrusted"}), '/evidence/0/trust="verified"'),
        ("mem:1", {**SHOWN, "memories": [memory(memory_ref="mem:1", state="candidate")]}, "promoted"),
        ("session", put(SHOWN, {"/run_context/run_budget/total_tokens": 300}), "total_tokens="),
    ],
)
def test_evidence_memory_and_blocks_are_asked_about_too(
    tmp_path: Path, name: str, of: dict[str, Any], flip: str
) -> None:
    explanation = ask(tmp_path, f"block/{name}" if name == "session" else name, of=of)
    assert not explanation.item.inside
    assert any(flip in words for flips in flips(explanation) for words in flips), flips(explanation)


@pytest.mark.parametrize("name", [REFUND, HIGH, GATE, "fraud_signal_high", "order_lookup", "request"])
@pytest.mark.parametrize("changes", [{}, READ_ONLY, UNVERIFIED, {**READ_ONLY, **UNVERIFIED}])
def test_every_set_that_is_told_flips_it_and_no_part_of_it_does(
    tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    source, file = source_of(tmp_path), case_file(tmp_path, changes)
    explanation = explain(source, file, name)
    for flip in explanation.counterfactuals:
        assert _inside(source, apply_overrides(file.file.value, flip, None), explanation) is not explanation.item.inside
        for left_out in flip:
            rest = [override for override in flip if override is not left_out]
            assert (
                not rest
                or _inside(source, apply_overrides(file.file.value, rest, None), explanation) is explanation.item.inside
            )


def _inside(source: PackSource, value: Any, explanation: Explanation) -> bool:  # noqa: ANN401  any JSON
    items = list_all_items(source, source.compile(read_case(value)))
    return any(item.inside for item in items if (item.kind, item.id) == (explanation.item.kind, explanation.item.id))


def test_the_reasons_name_who_had_a_say_and_what_was_read(tmp_path: Path) -> None:
    rule = "\n".join(ask(tmp_path, HIGH).reasons)
    assert "applies to intent support.refund" in rule
    assert "request.context.refund_amount is 4200" in rule
    gate = "\n".join(ask(tmp_path, GATE).reasons)
    assert f"rule:{HIGH} asks for it" in gate
    low = "\n".join(ask(tmp_path, GATE, {"/request/input/context/refund_amount": 20}).reasons)
    assert "its when does not hold" in low
    tool = "\n".join(ask(tmp_path, REFUND, {**READ_ONLY, **UNVERIFIED}).reasons)
    assert "above_ceiling" in tool
    assert "intent_denied" in tool
    assert "Identity not verified" in tool


def test_a_required_name_is_told_every_piece_that_does_not_answer_it(tmp_path: Path) -> None:
    piece = CLOSING["evidence"][0]
    pieces = [
        {**piece, "evidence_ref": "session:a", "content": "[]"},
        {**piece, "evidence_ref": "session:b", "classification": "RESTRICTED"},
    ]
    explanation = ask(tmp_path, "order_lookup", of={**CLOSING, "evidence": pieces})
    assert explanation.item.words == (
        "refused: session:a is empty, session:b is classification_above_pack; adp_orders.lookup can produce it"
    )
    assert explanation.reasons == (
        "decision support.refund.execute requires it",
        "rule R_REFUND_REQUIRES_IDV requires it",
        "session:a does not answer it: empty (/evidence/0)",
        "session:b does not answer it: classification_above_pack (/evidence/1)",
    )
    many = [{**pieces[0], "evidence_ref": f"session:{n}"} for n in range(25)]
    explanation = ask(tmp_path, "order_lookup", of={**CLOSING, "evidence": many})
    assert "session:2 is empty and 22 more" in explanation.item.words
    assert (len(explanation.reasons), explanation.reasons[-1]) == (23, "and 5 more")


def test_a_piece_among_very_many_is_told_of_as_well(tmp_path: Path) -> None:
    pieces = [{**CLOSING["evidence"][0], "evidence_ref": f"tool:lookup:{n}", "type": "order"} for n in range(150)]
    run = CLOSING["run_context"]
    run = {**run, "run_budget": {**run["run_budget"], "total_tokens": 2000}}
    explanation = ask(tmp_path, "tool:lookup:140", of={**CLOSING, "run_context": run, "evidence": pieces})
    ((first, second),) = explanation.counterfactuals
    assert {first.name, second.name} == {"run.budget.bucket_tokens.evidence", "run.budget.total_tokens"}


def test_a_missing_fact_is_named_as_missing(tmp_path: Path) -> None:
    context = {"identity_verified": True}
    assert (
        "request.context.refund_amount is missing" in ask(tmp_path, HIGH, {"/request/input/context": context}).reasons
    )


def test_a_fact_that_looks_like_a_secret_is_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    explanation = ask(tmp_path, "R_REFUND_REQUIRES_IDV", {"/request/input/context/identity_verified": secret})
    assert secret not in "".join(explanation.reasons)
    assert 'request.context.identity_verified is "[redacted:access_token]"' in explanation.reasons


def test_a_fact_that_the_pack_redacts_is_shown_as_its_mask(tmp_path: Path) -> None:
    card = "4111 1111 1111 1111"
    explanation = ask(tmp_path, "R_REFUND_REQUIRES_IDV", {"/request/input/context/identity_verified": card})
    assert 'request.context.identity_verified is "[redacted:credit_card]"' in explanation.reasons
    assert card not in str(explanation)


def test_a_knob_is_turned_before_it_is_asked(tmp_path: Path) -> None:
    explanation = explain(source_of(tmp_path), case_file(tmp_path), REFUND, [parse_override('safety_mode="read_only"')])
    assert not explanation.item.inside


@pytest.mark.parametrize("name", ["adp_payments.issue_refnd", "nothing", "", "tool/nothing"])
def test_a_name_of_nothing_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        ask(tmp_path, name)
    assert (refused.value.code, refused.value.family) == ("why_item_unknown", "not_found")
    assert refused.value.hint


def test_a_name_of_several_things_asks_which(tmp_path: Path) -> None:
    renamed = put(SHOWN, {"/evidence/0": "session:session"})
    source, file = source_of(tmp_path), case_file(tmp_path, of=renamed)
    assert explain(source, file, "bucket/session").item.kind == "bucket"
    with pytest.raises(ContextPlaneError) as refused:
        explain(source, file, "session")  # a bucket, and its block
    assert refused.value.code == "why_item_ambiguous"
    assert "block/session" in (refused.value.hint or "")


def test_what_nothing_flips_is_told_as_such_or_cannot_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = {**READ_ONLY, **UNVERIFIED, "/request/input/context/fraud_signal_high": True}  # three things to change
    monkeypatch.setattr(why, "_MAX_TRIED", 60)
    explanation = ask(tmp_path, REFUND, denied)
    assert (explanation.counterfactuals, explanation.complete, explanation.tried) == ((), False, 60)
    monkeypatch.setattr(why, "_MAX_OVERRIDES", 1)
    explanation = ask(tmp_path, REFUND, denied)
    assert (explanation.counterfactuals, explanation.complete) == ((), True)


@pytest.mark.parametrize("name", ["biz_summary", "bucket/business", "redaction/pan", "setting/currency", "task"])
def test_of_what_no_request_turns_round_nothing_is_tried_and_the_law_is_told(tmp_path: Path, name: str) -> None:
    explanation = ask(tmp_path, name)
    assert (explanation.counterfactuals, explanation.tried, explanation.complete) == ((), 0, True)
    assert explanation.reasons


@pytest.mark.parametrize(("verified", "other", "says"), [(True, "false", "denied"), (False, "true", "allowed")])
def test_a_rule_that_always_takes_effect_is_turned_round_when_it_says_the_other_thing(
    tmp_path: Path,
    verified: bool,  # noqa: FBT001  a row
    other: str,
    says: str,
) -> None:
    explanation = ask(tmp_path, "R_REFUND_REQUIRES_IDV", {"/request/input/context/identity_verified": verified})
    assert flips(explanation) == [[f"request.context.identity_verified={other}"]]
    (after,) = explanation.outcomes
    assert after is not None
    assert (after.inside, after.words.partition(";")[0]) == (True, says)


def test_policy_that_answers_a_name_no_longer_does_when_a_rule_fails(tmp_path: Path) -> None:
    assert flips(ask(tmp_path, "policy_eval")) == [
        ['request.context.identity_verified="other"'],
        ['request.context.refund_amount="other"'],
    ]


@pytest.mark.parametrize("name", [REFUND, HIGH, GATE, "fraud_signal_high", "order_lookup", "request", "mem:1"])
def test_every_change_that_is_told_can_be_typed_as_it_stands(tmp_path: Path, name: str) -> None:
    of = {**CLOSING, "memories": [memory(memory_ref="mem:1", state="candidate")]}
    source, file = source_of(tmp_path), case_file(tmp_path, of=of)
    for changes in (
        (),
        (parse_override("request.context.fraud_signal_high=true"), parse_override('safety_mode="read_only"')),
    ):
        explanation = explain(source, file, name, changes)
        assert explanation.counterfactuals
        for flip in explanation.counterfactuals:
            typed = [*changes, *(parse_override(override.words) for override in flip)]
            assert explain(source, file, name, typed).item.inside is not explanation.item.inside


@pytest.mark.parametrize(
    ("name", "of", "line"),
    [
        ("request", put(SHOWN, UNVERIFIED), "R_REFUND_REQUIRES_IDV: Identity not verified; refund path blocked."),
        ("request", SHOWN, "allowed by R_REFUND_REQUIRES_IDV, R_HIGH_VALUE_REQUIRES_APPROVAL"),
        (
            "fraud_signal_high",
            put(SHOWN, {"/request/input/context/signals": ["fraud_signal_high"]}),
            "triggered: request.context.signals names it",
        ),
        (
            "fraud_signal_high",
            put(SHOWN, {"/request/input/context/fraud_signal_high": "maybe"}),
            "triggered: request.context.fraud_signal_high is given, and not false",
        ),
        (
            "tool:adp_orders.lookup:tc_117",
            CLOSING,
            "observed at 2026-05-04T09:30:00Z, holds until 2026-05-04T10:30:00Z; judged at 2026-05-04T09:31:00Z",
        ),
        ("tool:adp_orders.lookup:tc_117", CLOSING, "it answers order_lookup"),
        (CASE["evidence"][0], SHOWN, "a bare reference: it is shown, and can answer nothing (/evidence/0)"),
        ("order_lookup", CLOSING, "decision support.refund.execute requires it"),
        ("ev_0", SHOWN, f"priority 60, from {CASE['evidence'][0]}"),
        (
            "bucket/session",
            put(SHOWN, {"/run_context/run_budget/bucket_tokens/session": 1}),
            "is dropped: over_budget",
        ),
    ],
)
def test_what_is_known_of_a_thing_is_told(tmp_path: Path, name: str, of: dict[str, Any], line: str) -> None:
    assert any(line in reason for reason in ask(tmp_path, name, of=of).reasons), ask(tmp_path, name, of=of).reasons


@pytest.mark.parametrize(
    ("amount", "line"),
    [
        (4200, "nothing triggers it: its when does not hold, and neither request.context.too_much nor"),
        (50000, "triggered: its when holds"),
        (None, "triggered: its when could hold: request.context.refund_amount is missing"),
        ("x", "triggered: its when cannot be judged: "),
    ],
)
def test_a_guardrail_with_a_condition_tells_what_became_of_it(tmp_path: Path, amount: object, line: str) -> None:
    when = {">": [{"var": "request.context.refund_amount"}, 40000]}
    rail = {"id": "too_much", "when": when, "message": "Too much for a refund."}
    source = source_of(tmp_path, {"/policy_layer/guardrails/must_refuse/0": rail})
    explanation = explain(source, case_file(tmp_path, {"/request/input/context/refund_amount": amount}), "too_much")
    assert 'when {">": [{"var": "request.context.refund_amount"}, 40000]}' in explanation.reasons
    assert explanation.reasons[-1].startswith(line)
    assert explanation.counterfactuals


IN_OFFICE_HOURS = {
    "rule_id": "R_OFFICE_HOURS",
    "applies_to": {"intent": "support.refund"},
    "if": {
        "and": [
            {"<=": [{"var": "run.weekday"}, 5]},
            {">=": [{"var": "run.hour"}, 9]},
            {"<": [{"var": "run.hour"}, 18]},
            {"!": [{"in": [{"var": "run.date"}, ["2026-11-16", "2026-11-17"]]}]},
        ]
    },
    "then": {"requires": ["order_lookup"]},
    "else": {"allow": False, "reason": "Refunds are made in office hours."},
    "rationale": "Somebody must be there.",
}


@pytest.mark.parametrize("as_of", ["2026-11-14T06:00:00Z", None])
def test_a_closed_window_is_told_with_the_next_moment_at_which_it_is_open(tmp_path: Path, as_of: str | None) -> None:
    source = source_of(tmp_path, {"/policy_layer/policy_bundles/0/policy_dsl/rules/-": IN_OFFICE_HOURS})
    explanation = explain(source, case_file(tmp_path, {"/as_of": as_of}, SHOWN), "request")
    ((change,),) = explanation.counterfactuals
    # From a Saturday in Kolkata: Monday and Tuesday are frozen, and 9 o'clock on Wednesday is 03:30 in UTC.
    # Without a moment, the week begins with the pack.
    assert change.words == f'run.as_of="{"2026-11-18T04:00:00Z" if as_of else "2026-05-11T04:00:00Z"}"'


OWN_ORDER = {
    "rule_id": "R_OWN_ORDER",
    "applies_to": {"intent": "support.refund"},
    "if": {"==": [{"var": "user.user_id"}, {"var": "request.context.buyer_id"}]},
    "then": {"requires": ["order_lookup"]},
    "else": {"allow": False, "reason": "The order is of another customer."},
    "rationale": "Customers are refunded for their own orders.",
}


@pytest.mark.parametrize(
    ("user_id", "flip"), [("usr_771", ['request.context.buyer_id="usr_771"']), ("4111 1111 1111 1111", None)]
)
def test_a_fact_that_must_equal_another_is_told_with_the_value_of_that_one_unless_it_is_redacted(
    tmp_path: Path, user_id: str, flip: list[str] | None
) -> None:
    source = source_of(tmp_path, {"/policy_layer/policy_bundles/0/policy_dsl/rules/-": OWN_ORDER})
    places = ("/request/user/user_id", "/run_context/user/user_id")
    changes = {"/request/input/context/buyer_id": "usr_9", **dict.fromkeys(places, user_id)}
    explanation = explain(source, case_file(tmp_path, changes, SHOWN), "request")
    assert (flip in flips(explanation)) is (flip is not None)
    assert "4111" not in str(explanation.counterfactuals)
