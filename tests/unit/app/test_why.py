"""Why something is in or out: what had a say in it, and the fewest changes that flip it, each verified by compiling."""

from pathlib import Path
from typing import Any

import pytest

from contextplane.app import why as asking
from contextplane.app.compile_case import read_case
from contextplane.app.compiling import PackSource
from contextplane.app.knobs import knob_of, turned
from contextplane.app.reasons import full_account
from contextplane.app.why import Why, why
from contextplane.errors import ContextPlaneError
from tests.unit.app.casing import CLOSING, SHOWN, case_file, source_of
from tests.unit.compiler.scenario import CASE, memory, put

REFUND = "adp_payments.issue_refund"
HIGH = "R_HIGH_VALUE_REQUIRES_APPROVAL"
GATE = "GATE_FINANCE_APPROVAL"
READ_ONLY = {"/run_context/safety_mode": "read_only"}
UNVERIFIED = {"/request/input/context/identity_verified": False}


def ask(folder: Path, name: str, changes: dict[str, Any] | None = None, of: dict[str, Any] | None = None) -> Why:
    return why(source_of(folder), case_file(folder, changes, of), name)


def told(found: Why) -> list[list[str]]:
    return [[knob.words for knob in flip] for flip in found.flips]


@pytest.mark.parametrize(
    ("name", "changes", "inside", "flip"),
    [
        (REFUND, {}, True, ['safety_mode="read_only"']),
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
            ["without request.context.signals"],
        ),
        ("requirement/order_lookup", {}, False, ["request.context.order_lookup=true"]),
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
    found = ask(tmp_path, name, changes)
    assert found.item.inside is inside
    assert flip in told(found)
    assert found.complete


@pytest.mark.parametrize(
    ("name", "of", "flip"),
    [
        ("ev_4", put(SHOWN, {"/run_context/run_budget/bucket_tokens/evidence": 100}), "bucket_tokens.evidence=216"),
        (
            CASE["evidence"][4],
            put(SHOWN, {"/run_context/run_budget/bucket_tokens/evidence": 100}),
            "bucket_tokens.evidence=216",
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
    found = ask(tmp_path, f"block/{name}" if name == "session" else name, of=of)
    assert not found.item.inside
    assert any(flip in words for one in told(found) for words in one), told(found)


@pytest.mark.parametrize("name", [REFUND, HIGH, GATE, "fraud_signal_high", "order_lookup", "request"])
@pytest.mark.parametrize("changes", [{}, READ_ONLY, UNVERIFIED, {**READ_ONLY, **UNVERIFIED}])
def test_every_set_that_is_told_flips_it_and_no_part_of_it_does(
    tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    source, file = source_of(tmp_path), case_file(tmp_path, changes)
    found = why(source, file, name)
    for flip in found.flips:
        assert _inside(source, turned(file.file.value, flip, None), found) is not found.item.inside
        for left_out in flip:
            rest = [knob for knob in flip if knob is not left_out]
            assert not rest or _inside(source, turned(file.file.value, rest, None), found) is found.item.inside


def _inside(source: PackSource, value: Any, found: Why) -> bool:  # noqa: ANN401  any JSON
    items = full_account(source, source.compile(read_case(value)))
    return any(one.inside for one in items if (one.kind, one.id) == (found.item.kind, found.item.id))


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


def test_a_piece_among_very_many_is_told_of_as_well(tmp_path: Path) -> None:
    pieces = [{**CLOSING["evidence"][0], "evidence_ref": f"tool:lookup:{n}", "type": "order"} for n in range(150)]
    run = CLOSING["run_context"]
    run = {**run, "run_budget": {**run["run_budget"], "total_tokens": 2000}}
    found = ask(tmp_path, "tool:lookup:140", of={**CLOSING, "run_context": run, "evidence": pieces})
    ((first, second),) = found.flips
    assert {first.name, second.name} == {"run.budget.bucket_tokens.evidence", "run.budget.total_tokens"}


def test_a_missing_fact_is_named_as_missing(tmp_path: Path) -> None:
    context = {"identity_verified": True}
    assert (
        "request.context.refund_amount is missing" in ask(tmp_path, HIGH, {"/request/input/context": context}).reasons
    )


def test_a_fact_that_looks_like_a_secret_is_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = ask(tmp_path, "R_REFUND_REQUIRES_IDV", {"/request/input/context/identity_verified": secret})
    assert secret not in "".join(found.reasons)
    assert any("looks like a secret" in one for one in found.reasons)


def test_a_knob_is_turned_before_it_is_asked(tmp_path: Path) -> None:
    found = why(source_of(tmp_path), case_file(tmp_path), REFUND, [knob_of('safety_mode="read_only"')])
    assert not found.item.inside


@pytest.mark.parametrize("name", ["adp_payments.issue_refnd", "nothing", "", "tool/nothing"])
def test_a_name_of_nothing_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        ask(tmp_path, name)
    assert (refused.value.code, refused.value.family) == ("why_item_unknown", "not_found")
    assert refused.value.hint


def test_a_name_of_several_things_asks_which(tmp_path: Path) -> None:
    renamed = put(SHOWN, {"/evidence/0": "session:session"})
    source, file = source_of(tmp_path), case_file(tmp_path, of=renamed)
    assert why(source, file, "bucket/session").item.kind == "bucket"
    with pytest.raises(ContextPlaneError) as refused:
        why(source, file, "session")  # a bucket, and its block
    assert refused.value.code == "why_item_ambiguous"
    assert "block/session" in (refused.value.hint or "")


def test_what_nothing_flips_is_told_as_such_or_cannot_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_MOST_TRIED", 60)
    found = ask(tmp_path, "biz_summary")  # never dropped
    assert (found.flips, found.complete, found.tried) == ((), False, 60)
    monkeypatch.setattr(asking, "_MOST_TOGETHER", 1)
    found = ask(tmp_path, "biz_summary")
    assert (found.flips, found.complete) == ((), True)
