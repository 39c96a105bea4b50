"""Compiling what people have in files: fail closed, with the place; and what a override moves."""

from pathlib import Path
from typing import Any

import pytest

from contextplane.app.compile.sources import source_from_file
from contextplane.compiler.compile import compile_draft
from contextplane.compiler.overrides import OverrideInvalid, parse_override
from contextplane.compiler.report import compare_contexts, list_items
from contextplane.compiler.source import compile_case
from contextplane.errors import ContextPlaneError
from contextplane.registry.artifacts import candidate
from tests.spec.manifest import proves
from tests.unit.compiler.case_files import CLOSING, SHOWN, case_file, compile_with, pack_file, source_of, write_json
from tests.unit.compiler.scenario import CASE, compile_scenario, plain, put
from tests.unit.registry.desk import CATALOG

REFUND = "adp_payments.issue_refund"


@proves("context-pack:playground:runs-the-compiler", "context-pack:playground:starting-scenario")
def test_what_is_compiled_from_files_is_what_the_compiler_makes_of_the_same_values(tmp_path: Path) -> None:
    result = compile_with(tmp_path)
    expected = compile_scenario(lineage=plain(result.context.context_ledger.lineage))
    assert result.context == expected
    assert plain(result.context.manifests.policy_manifest) == CASE["shown"]["policy_manifest"]
    assert result.before is None
    assert compile_draft.__module__ == "contextplane.compiler.compile"


@proves("context-pack:playground:recompiles-on-change")
@pytest.mark.parametrize(
    ("override", "things"),
    [
        ("request.context.identity_verified=false", {("decision", "request"), ("tool", REFUND)}),
        ('safety_mode="read_only"', {("tool", REFUND)}),
        ("request.context.refund_amount=3000", {("gate", "GATE_FINANCE_APPROVAL")}),
        ("run.budget.bucket_tokens.evidence=100", {("bucket", "evidence"), ("evidence", CASE["evidence"][4])}),
        ("request.context.fraud_signal_high=true", {("guardrail", "fraud_signal_high")}),
        ('request.message="Refund it."', {("task", "task")}),
    ],
)
def test_a_knob_moves_what_depends_on_it_and_the_hash(
    tmp_path: Path, override: str, things: set[tuple[str, str]]
) -> None:
    result = compile_with(tmp_path, override)
    assert things <= {(difference.kind, difference.id) for difference in result.changes}
    assert result.hash_changed
    assert result.before == compile_with(tmp_path).context


def test_what_moved_is_told_by_kind_whichever_way_it_moved(tmp_path: Path) -> None:
    up, down = "request.context.refund_amount=4200", "request.context.refund_amount=20"
    low = put(SHOWN, {"/request/input/context/refund_amount": 20})
    for result in (compile_with(tmp_path, down), compile_with(tmp_path, up, of=low)):
        assert list(dict.fromkeys(difference.kind for difference in result.changes)) == [
            "decision",
            "rule",
            "gate",
            "bucket",
        ]


def test_a_knob_that_changes_nothing_moves_nothing(tmp_path: Path) -> None:
    result = compile_with(tmp_path, "request.context.refund_amount=4200")
    assert (result.changes, result.hash_changed) == ((), False)


def test_a_knob_of_which_nothing_is_seen_moves_the_hash_only(tmp_path: Path) -> None:
    result = compile_with(tmp_path, "run.budget.max_tool_calls=3")
    assert (result.changes, result.hash_changed) == ((), True)


def test_a_case_that_only_compiles_with_the_knob_has_nothing_to_compare_with(tmp_path: Path) -> None:
    wrong = put(SHOWN, {"/request/input/intent": "support.other", "/run_context/intent": "support.other"})
    result = compile_with(tmp_path, 'intent="support.refund"', of=wrong)
    assert (result.before, result.refused_before) == (None, "compile_intent_unknown")
    assert result.context == compile_with(tmp_path).context


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"/request/input/intent": "support.refnd", "/run_context/intent": "support.refnd"}, "compile_intent_unknown"),
        ({"/request/context_pack_refs/0": "ctxpack.support@9.0.0"}, "compile_pack_not_requested"),
        ({"/request/tenant_id": "other"}, "compile_tenant_mismatch"),
        ({"/run_context/run_budget/bucket_tokens/evidence": -1}, "compile_budget_invalid"),
        ({"/evidence": [{**CLOSING["evidence"][0], "tenant_id": "other"}]}, "compile_evidence_of_another_tenant"),
        ({"/request/input/context/signals": 7}, "facts_refused"),
        ({"/environment/ontologies": []}, "compile_ontology_missing"),
    ],
)
def test_a_refusal_says_where_it_stands(tmp_path: Path, changes: dict[str, Any], code: str) -> None:
    file = case_file(tmp_path, changes)
    with pytest.raises(ContextPlaneError) as refused:
        compile_case(source_of(tmp_path), file)
    assert refused.value.code == code
    assert (refused.value.at or "").startswith(f"{tmp_path}/")
    assert refused.value.hint
    if code != "compile_ontology_missing":  # that stands in the pack
        assert str(refused.value.details["pointer"]) in {change.replace("/0", "") for change in changes} | set(
            changes
        ) | {
            "/request/context_pack_refs",
            "/evidence/0/tenant_id",
            "/request/input/intent",
        }


@pytest.mark.parametrize(
    ("override", "pointer", "words", "hint"),
    [
        (
            "run.budget.total_tokens=-1",
            "/run_context/run_budget/total_tokens",
            "-1 is no number of tokens",
            "0 or more",
        ),
        (
            'safety_mode="yolo"',
            "/run_context/safety_mode",
            "'yolo' is none of the known values",
            "read_only, local_write",
        ),
        ("request.channel=1", "/request/input/channel", "must be text, not 1", "write text"),
        ('/run_context/user={"user_id":""}', "/run_context/user/user_id", "this text is empty", "write something"),
    ],
)
def test_a_value_that_may_not_stand_there_is_the_fault_of_the_command(
    tmp_path: Path, override: str, pointer: str, words: str, hint: str
) -> None:
    with pytest.raises(OverrideInvalid) as refused:
        compile_with(tmp_path, override)
    assert (refused.value.family, refused.value.at) == ("usage", f"--set {override.partition('=')[0]}")
    assert refused.value.message == f"its value is refused: {words}"
    assert hint in (refused.value.hint or "")
    assert refused.value.details["pointer"] == pointer


@pytest.mark.parametrize(
    ("overrides", "changes", "code", "at"),
    [
        (('intent="support.nothing"',), {}, "compile_intent_unknown", "--set intent"),
        (
            ("request.context.refund_amount=1",),
            {"/run_context/safety_mode": "x"},
            "compile_case_invalid",
            "request.json:",
        ),
        (
            ("run.budget.bucket_tokens.tool=1",),
            {"/run_context/run_budget/bucket_tokens": {"tool": 2}},
            "compile_budget_invalid",
            "--set run.budget.bucket_tokens.tool",
        ),
    ],
)
def test_what_the_pack_or_the_file_is_refused_for_is_no_fault_of_the_command(
    tmp_path: Path, overrides: tuple[str, ...], changes: dict[str, Any], code: str, at: str
) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        compile_with(tmp_path, *overrides, of=put(SHOWN, changes))
    assert (refused.value.code, refused.value.family) == (code, "refused")
    assert at in (refused.value.at or "")


def test_a_pack_that_does_not_pass_the_gates_is_not_compiled(tmp_path: Path) -> None:
    path = pack_file(tmp_path, {"/tooling_layer/permissions/0/capability": "look_up"})
    with pytest.raises(ContextPlaneError) as refused:
        source_from_file(path)
    assert refused.value.code == "compile_pack_not_sound"
    assert refused.value.message.startswith("2 errors; the first: ")
    assert f"ctx lint {path}" in (refused.value.hint or "")
    assert (refused.value.at or "").startswith(f"{path}:")


BINDING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding"
SHARED = "decision-catalog.support@2.1.0"


def test_a_pack_is_compiled_with_the_catalogs_that_it_draws_on(tmp_path: Path) -> None:
    bound = pack_file(tmp_path, {BINDING: "support.refund.review"})
    with pytest.raises(ContextPlaneError) as refused:
        source_from_file(bound)
    assert refused.value.code == "compile_pack_not_sound"
    naming = {"/request/context_pack_refs": ["ctxpack.support@1.0.0", SHARED]}
    catalogs = (candidate(CATALOG),)
    compiled = compile_case(source_from_file(bound, (), catalogs), case_file(tmp_path, naming)).context
    assert [lineage.ref for lineage in compiled.context_ledger.lineage] == ["ctxpack.support@1.0.0", SHARED]
    assert compiled.context_ledger.lineage[1].digest == str(catalogs[0].digest)
    assert "support.refund.review (recommend): " in compiled.compiled_prompt.system
    assert "Decide support.refund.execute, support.refund.review" in compiled.compiled_prompt.developer


def test_the_order_in_which_catalogs_are_given_moves_nothing(tmp_path: Path) -> None:
    other = {**CATALOG, "catalog_id": "decision-catalog.other", "intents": [], "task_templates": []}
    catalogs = (candidate(CATALOG), candidate(other))
    file = case_file(tmp_path)
    first, second = (
        compile_case(source_from_file(pack_file(tmp_path), (), order), file).context
        for order in (catalogs, catalogs[::-1])
    )
    assert first == second


def test_a_catalog_that_a_request_names_and_nobody_gives_is_missed(tmp_path: Path) -> None:
    file = case_file(tmp_path, {"/request/context_pack_refs": ["ctxpack.support@1.0.0", SHARED]})
    with pytest.raises(ContextPlaneError) as refused:
        compile_case(source_of(tmp_path), file)
    assert (refused.value.code, refused.value.details["pointer"]) == (
        "compile_document_not_given",
        "/request/context_pack_refs/1",
    )
    assert "--catalog" in (refused.value.hint or "")


@pytest.mark.parametrize("document", [{}, [], {"overlay_id": "x"}, SHOWN])
def test_what_is_no_pack_is_not_compiled(tmp_path: Path, document: object) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        source_from_file(write_json(tmp_path, "p.json", document))
    assert refused.value.code in {"compile_pack_not_sound", "not_a_context_pack"}


def test_an_overlay_is_applied_and_part_of_the_lineage(tmp_path: Path) -> None:
    overlay = {
        "overlay_id": "ovl.prod",
        "overlay_version": "1.0.0",
        "base_pack_id": "ctxpack.support",
        "environment": "prod",
        "order": 1,
        "issuer": "tenant_acme_prod",
        "changes": [{"at": "/policy_layer/guardrails/redaction_rules/iban", "value": "iban"}],
    }
    source = source_from_file(pack_file(tmp_path), (write_json(tmp_path, "o.json", overlay),))
    compiled = compile_case(source, case_file(tmp_path)).context
    assert "iban" in compiled.runtime_controls.redaction_rules_active
    assert [lineage.ref for lineage in compiled.context_ledger.lineage] == ["ctxpack.support@1.0.0", "ovl.prod@1.0.0"]
    assert "iban" not in compile_with(tmp_path).context.runtime_controls.redaction_rules_active


def test_the_account_names_every_candidate_once(tmp_path: Path) -> None:
    compiled = compile_with(tmp_path, "run.budget.bucket_tokens.evidence=100", 'safety_mode="read_only"').context
    items = list_items(compiled)
    names = [(item.kind, item.id) for item in items]
    assert len(names) == len(set(names))
    assert {item.id for item in items if item.kind == "evidence"} == set(CASE["evidence"])
    assert {item.id for item in items if item.kind == "tool" and not item.inside} == {REFUND}
    assert all(item.words and item.stage for item in items)
    assert compare_contexts(compiled, compiled) == ()


def test_what_is_in_counts_before_what_was_left_out_under_the_same_name(tmp_path: Path) -> None:
    twice = {**SHOWN, "evidence": [CASE["evidence"][0]] * 2}
    pieces = [item for item in list_items(compile_with(tmp_path, of=twice).context) if item.kind == "evidence"]
    assert [(piece.id, piece.inside) for piece in pieces] == [(CASE["evidence"][0], True)]


def test_knobs_are_turned_in_their_order(tmp_path: Path) -> None:
    overrides = [
        parse_override("request.context.refund_amount=1"),
        parse_override("request.context.refund_amount=4200"),
    ]
    assert compile_case(source_of(tmp_path), case_file(tmp_path), overrides).hash_changed is False
