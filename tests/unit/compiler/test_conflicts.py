"""What pieces of evidence that contradict each other leave standing."""

from typing import Any

from tests.support.cases import cases
from tests.unit.compiler.scenario import evidence
from tests.unit.compiler.test_evidence import FIRST, SECOND, compile_evidence, gate_of, reasons


def pair(resolution: dict[str, Any], *, kind: str = "order_lookup", back: dict[str, Any] | None = None) -> list[Any]:
    first = evidence(evidence_ref=FIRST, type=kind, conflicts=[{"evidence_ref": SECOND, **resolution}])
    second = evidence(evidence_ref=SECOND, type=kind, content="other")
    if back is not None:
        second["conflicts"] = [{"evidence_ref": FIRST, **back}]
    return [first, second]


def test_a_name_whose_evidence_is_in_an_open_conflict_says_so() -> None:
    (missing,) = gate_of(compile_evidence(*pair({}))).unresolved
    assert missing.reason == "refused"
    assert [(piece.reason, piece.at) for piece in missing.evidence] == [
        ("conflict_unresolved", "evidence#/0"),
        ("conflict_unresolved", "evidence#/1"),
    ]


@cases(
    ("resolution", "back"),
    [
        ({}, None),
        ({"selected": FIRST}, None),
        ({"resolution_ref": "review:7"}, None),
        ({"selected": "tool:adp_orders.lookup:tc_3", "resolution_ref": "review:7"}, None),
        ({"selected": FIRST, "resolution_ref": "review:7"}, {"selected": SECOND, "resolution_ref": "review:8"}),
        ({"selected": FIRST, "resolution_ref": "review:7"}, {}),
        ({"selected": FIRST, "resolution_ref": " \u200b"}, None),
    ],
    ids=[
        *("nobody decided", "nobody accounts", "nothing selected", "a third one", "two verdicts", "one disagrees"),
        "blanks account",
    ],
)
def test_an_open_conflict_on_required_evidence_rejects_both_and_blocks(
    resolution: dict[str, Any], back: dict[str, Any] | None
) -> None:
    settled = evidence(content="a third one that agrees with nobody")
    context = compile_evidence(*pair(resolution, back=back), settled)
    assert reasons(context) == [("conflict_unresolved", "evidence#/0"), ("conflict_unresolved", "evidence#/1")]
    gate = gate_of(context)
    assert gate.unresolved == ()
    assert [(conflict.evidence_refs, conflict.required, conflict.selected) for conflict in gate.conflicts] == [
        ((FIRST, SECOND), True, None)
    ]
    assert (gate.sufficiency, gate.commit_allowed) == ("insufficient", False)


def test_a_piece_that_was_altered_decides_nothing() -> None:
    first, second = pair({"selected": SECOND, "resolution_ref": "review:7"})
    context = compile_evidence({**first, "content_hash": f"sha256:{'0' * 64}"}, second)
    assert reasons(context) == [("content_altered", "evidence#/0"), ("conflict_unresolved", "evidence#/1")]
    assert not gate_of(context).commit_allowed


def test_a_resolved_conflict_names_what_was_selected_and_who_accounts_for_it() -> None:
    context = compile_evidence(*pair({"selected": SECOND, "resolution_ref": "review:7"}))
    gate = gate_of(context)
    (conflict,) = gate.conflicts
    assert (conflict.selected, conflict.resolution_ref) == (SECOND, "review:7")
    assert reasons(context) == [("superseded", "evidence#/0")]
    assert gate.commit_allowed
    assert {satisfied.name: satisfied.by for satisfied in gate.satisfied}["order_lookup"] == SECOND


def test_a_piece_that_is_not_trusted_cannot_take_the_place_of_another() -> None:
    first, second = pair({"selected": FIRST, "resolution_ref": "review:7"})
    context = compile_evidence({**first, "trust": "untrusted"}, second)
    assert [reason for reason, _ in reasons(context)] == ["conflict_unresolved"] * 2
    assert not gate_of(context).commit_allowed


def test_an_open_conflict_about_something_else_is_noted_and_blocks_nothing() -> None:
    context = compile_evidence(evidence(), *pair({}, kind="order_history"))
    assert len(context.manifests.evidence_manifest) == 3
    assert gate_of(context).commit_allowed
    (record,) = [stage for stage in context.context_ledger.stages if stage.stage == "evidence"]
    assert record.notes == (f"{FIRST} and {SECOND} contradict each other",)


def test_a_piece_that_contradicts_itself_supersedes_nothing() -> None:
    itself = {"evidence_ref": FIRST, "selected": FIRST, "resolution_ref": "review:7"}
    context = compile_evidence(evidence(evidence_ref=FIRST, conflicts=[itself]))
    assert reasons(context) == []
    assert gate_of(context).commit_allowed
