"""Golden cases: what was recorded holds, what drifted is named with its stage, and nothing passes in silence."""

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.app.compile.check import check_pack
from contextplane.app.compile.golden import golden_files, record_cases
from contextplane.app.compile.sources import source_from_file
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError
from contextplane.evaluation.golden import CaseResult, check_cases
from contextplane.evaluation.golden_case import GoldenContext, GoldenRefusal, read_outcome
from tests.spec.manifest import proves
from tests.unit.compiler.case_files import CLOSING, SHOWN, pack_file, source_of, write_json
from tests.unit.compiler.scenario import CASES, PACK, put

THRESHOLD = {"/policy_layer/policy_bundles/0/policy_dsl/rules/1/if/and/1/>/1": 5000}
VERSION = {"/pack_meta/pack_version": "1.0.1"}
SUMMARY = {"/business_context/summary/what_we_do": "Post-purchase support of our customers, worldwide and at any hour"}
UNKNOWN = {"/request/input/intent": "support.other", "/run_context/intent": "support.other"}
PERMISSION = "/tooling_layer/permissions/2"


def folder(tmp_path: Path) -> str:
    """Two cases that compile, and one that must be refused."""
    cases = tmp_path / "golden"
    cases.mkdir()
    write_json(cases, "shown.json", SHOWN)
    write_json(cases, "closing.json", CLOSING)
    write_json(cases, "unknown.json", put(SHOWN, UNKNOWN))
    (cases / "README.md").write_text("what these are", encoding="utf-8")
    return str(cases)


def recorded(tmp_path: Path) -> str:
    cases = folder(tmp_path)
    record_cases(source_of(tmp_path), golden_files(cases))
    return cases


def document_of(cases: Path, name: str) -> dict[str, Any]:
    """A case with what is recorded of it, in one document."""
    document: dict[str, Any] = json.loads((cases / f"{name}.json").read_bytes())
    beside = cases / f"{name}.expected.json"
    return {**document, "expected": json.loads(beside.read_bytes())} if beside.exists() else document


def write_document(cases: Path, name: str, document: dict[str, Any]) -> None:
    """Write a case, and what is expected of it beside it."""
    write_json(cases, f"{name}.json", {key: part for key, part in document.items() if key != "expected"})
    write_json(cases, f"{name}.expected.json", document["expected"])


def run(cases: str, source: PackSource) -> dict[str, CaseResult]:
    return {result.name: result for result in check_cases(source, golden_files(cases))}


def test_what_was_recorded_holds_of_the_same_pack(tmp_path: Path) -> None:
    ran = run(recorded(tmp_path), source_of(tmp_path))
    assert [(name, result.passed, result.other_version) for name, result in ran.items()] == [
        ("closing", True, False),
        ("shown", True, False),
        ("unknown", True, False),
    ]


def test_the_golden_cases_that_are_kept_here_hold() -> None:
    """When the compiler was changed on purpose, `ctx golden record tests/cases/golden PACK` writes them anew."""
    ran = run(str(CASES / "golden"), source_from_file(str(CASES / "context_pack" / "support.json")))
    assert len(ran) == 6
    assert {name: (result.stage, result.words) for name, result in ran.items() if not result.passed} == {}


def test_recording_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    before = {path.name: (path.read_bytes(), path.stat().st_ino) for path in cases.glob("*.json")}
    record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert {path.name: (path.read_bytes(), path.stat().st_ino) for path in cases.glob("*.json")} == before


def test_a_file_keeps_its_case_and_what_is_expected_stands_beside_it(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    assert json.loads((cases / "shown.json").read_bytes()) == SHOWN
    expected = document_of(cases, "shown")["expected"]
    assert set(expected) >= {"manifests", "runtime_controls", "budget_report", "compiled_context_hash", "prompt"}
    unknown = document_of(cases, "unknown")["expected"]
    assert (unknown["refused"], unknown["stage"]) == ("compile_intent_unknown", "intent")


def test_a_case_that_is_refused_is_not_changed_by_hand_either(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    case = json.loads((cases / "unknown.json").read_bytes())
    case["request"]["input"]["message"] = "another"
    (cases / "unknown.json").write_text(json.dumps(case))
    ran = run(str(cases), source_of(tmp_path))["unknown"]
    assert (ran.passed, ran.stage) == (False, "record")
    assert "was edited after it was recorded" in ran.words


def test_a_case_of_which_nothing_is_recorded_does_not_pass(tmp_path: Path) -> None:
    ran = run(folder(tmp_path), source_of(tmp_path))
    assert {(result.stage, result.recorded) for result in ran.values()} == {("record", False)}
    assert all("'ctx golden record' writes it" in result.words for result in ran.values())


@pytest.mark.parametrize(
    ("changes", "stage", "thing"),
    [
        (THRESHOLD, "policy", ("rule", "POLICY_RETURNS_V4#R_HIGH_VALUE_REQUIRES_APPROVAL")),
        ({f"{PERMISSION}/arg_constraints/amount_inr/max": 49999}, "tools", ("tool", "adp_payments.issue_refund")),
        (SUMMARY, "budget", ("bucket", "business")),
        ({"/policy_layer/guardrails/redaction_rules/0": "iban"}, "redaction", ("redaction", "iban")),
        ({"/intelligence_refs/embedding_keys/0": "support_orders_v2"}, "scope", None),
    ],
)
def test_what_drifted_is_named_with_the_first_stage_that_did(
    tmp_path: Path, changes: dict[str, Any], stage: str, thing: tuple[str, str] | None
) -> None:
    ran = run(recorded(tmp_path), source_of(tmp_path, {**changes, **VERSION}))
    assert ran["unknown"].passed
    drifted = ran["shown"]
    assert (drifted.passed, drifted.stage) == (False, stage)
    assert drifted.words
    assert thing is None or thing in {(difference.kind, difference.id) for difference in drifted.changes}


def test_a_new_number_alone_is_no_drift_and_is_said(tmp_path: Path) -> None:
    ran = run(recorded(tmp_path), source_of(tmp_path, VERSION))
    assert [(result.passed, result.other_version) for result in ran.values()] == [
        (True, True),
        (True, True),
        (True, False),
    ]


def test_another_hash_of_the_same_pack_is_a_drift(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    shown = document_of(cases, "shown")
    shown["expected"]["compiled_context_hash"] = "sha256:" + "0" * 64
    write_document(cases, "shown", recorded_again(shown))
    drifted = run(str(cases), source_of(tmp_path))["shown"]
    assert (drifted.stage, drifted.words) == ("seal", "nothing by name; compiled_context_hash is not as recorded")


def recorded_again(document: dict[str, Any]) -> dict[str, Any]:
    """As if this had been recorded, and not changed by hand."""
    expected = read_outcome(document["expected"])
    assert isinstance(expected, GoldenContext)
    case = {key: part for key, part in document.items() if key != "expected"}
    return {**document, "expected": {**document["expected"], "recorded": expected.digest_for(case)}}


@pytest.mark.parametrize(
    ("changes", "stage", "words"),
    [
        ({"/expected/compiler_version": "0.9.0"}, "seal", "compiler 0.9.0 recorded it, and this is"),
        ({"/expected/lineage/0/ref": "ctxpack.support@9.0.0"}, "record", "was edited after it was recorded"),
        ({"/expected/lineage/0/digest": "sha256:" + "0" * 64}, "record", "was edited after it was recorded"),
        ({"/expected/compiled_context_hash": "sha256:" + "0" * 64}, "record", "was edited after it was recorded"),
        ({"/request/context_pack_refs/0": "ctxpack.support@9.0.0"}, "record", "was edited after it was recorded"),
        ({"/run_context/run_budget/max_tool_calls": 1}, "record", "was edited after it was recorded"),
        ({"/expected/recorded": ""}, "record", "was edited after it was recorded"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("pack", [{}, VERSION], ids=["the same version", "another version"])
def test_what_was_changed_by_hand_does_not_pass(
    tmp_path: Path, changes: dict[str, Any], stage: str, words: str, pack: dict[str, Any]
) -> None:
    cases = Path(recorded(tmp_path))
    write_document(cases, "shown", put(document_of(cases, "shown"), changes))
    ran = run(str(cases), source_of(tmp_path, pack))
    assert (ran["shown"].passed, ran["shown"].stage, ran["closing"].passed) == (False, stage, True)
    assert words in ran["shown"].words


def test_a_change_by_hand_is_told_also_where_it_moved_something(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    changed = put(json.loads((cases / "shown.json").read_bytes()), {"/request/input/context/refund_amount": 20})
    write_json(cases, "shown.json", changed)
    drifted = run(str(cases), source_of(tmp_path))["shown"]
    assert (drifted.stage, drifted.notes) == (
        "policy",
        ("the case or its expected result was edited after it was recorded",),
    )
    assert ("gate", "GATE_FINANCE_APPROVAL") in {(difference.kind, difference.id) for difference in drifted.changes}


def test_a_case_that_comes_to_the_same_by_other_rules_tells_what_is_not_as_recorded(tmp_path: Path) -> None:
    cases = tmp_path / "golden"
    cases.mkdir()
    write_json(cases, "low.json", put(SHOWN, {"/request/input/context/refund_amount": 20}))
    record_cases(source_of(tmp_path), golden_files(str(cases)))
    drifted = run(str(cases), source_of(tmp_path, {**THRESHOLD, **VERSION}))["low"]
    assert (drifted.stage, drifted.changes) == ("policy", ())
    assert drifted.words == "nothing by name; policy_decision.policy_decision_id is not as recorded"


OTHER_RULE: dict[str, Any] = {
    "rule_id": "R_OTHER",
    "applies_to": {"intent": "support.other"},
    "if": {"==": [{"var": "request.context.kind"}, "gift"]},
    "then": {"allow": True},
    "else": {"allow": False, "reason": "No gift."},
    "rationale": "Only gifts.",
    "decision_binding": PACK["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"][0]["decision_binding"],
}
RULES = PACK["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"]
TARGETS = PACK["evaluation_layer"]["eval_targets"]
WITH_OTHER = {
    "/policy_layer/policy_bundles/0/policy_dsl/rules": [OTHER_RULE, *RULES],
    "/evaluation_layer/eval_targets": [*TARGETS, {**TARGETS[0], "intent": "support.other"}],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"/policy_layer/policy_bundles/0/policy_dsl/rules": RULES, "/evaluation_layer/eval_targets": TARGETS},
        {"/policy_layer/policy_bundles/0/policy_dsl/rules": [{**OTHER_RULE, "rationale": "Other words."}, *RULES]},
        {"/policy_layer/policy_bundles/0/policy_dsl/rules": [*RULES, OTHER_RULE]},
        {"/policy_layer/policy_bundles/0/policy_dsl/rules/1/else": {"allow": False, "reason": "Other words."}},
    ],
    ids=["without it", "another text", "at another place", "the branch that is not taken"],
)
def test_a_case_drifts_by_what_it_used_and_not_by_a_word_in_another_rule(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    cases = folder(tmp_path)
    (Path(cases) / "unknown.json").unlink()
    record_cases(source_of(tmp_path, WITH_OTHER), golden_files(cases))
    ran = run(cases, source_of(tmp_path, copy.deepcopy({**WITH_OTHER, **changes})))
    assert {name: (result.passed, result.words, result.other_version) for name, result in ran.items()} == {
        "closing": (True, "", True),
        "shown": (True, "", True),
    }


def test_a_tool_that_is_not_surfaced_is_no_drift_until_it_is(tmp_path: Path) -> None:
    cases = folder(tmp_path)
    (Path(cases) / "unknown.json").unlink()
    record_cases(source_of(tmp_path, {f"{PERMISSION}/allow": False}), golden_files(cases))
    mode = {f"{PERMISSION}/allow": False, f"{PERMISSION}/arg_constraints/amount_inr/max": 4}
    assert all(result.passed for result in run(cases, source_of(tmp_path, mode)).values())
    ran = run(cases, source_of(tmp_path))["shown"]
    assert ran.stage == "tools"
    assert ("tool", "adp_payments.issue_refund") in {(change.kind, change.id) for change in ran.changes}


def test_a_result_inside_its_case_is_read_and_recording_moves_it_out(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    for name in ("shown", "closing", "unknown"):
        write_json(cases, f"{name}.json", document_of(cases, name))
        (cases / f"{name}.expected.json").unlink()
    assert all(result.passed for result in run(str(cases), source_of(tmp_path)).values())
    results = record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert all(result.passed and result.moved for result in results)
    assert json.loads((cases / "shown.json").read_bytes()) == SHOWN
    assert all(result.passed for result in run(str(cases), source_of(tmp_path)).values())
    assert not any(result.moved for result in record_cases(source_of(tmp_path), golden_files(str(cases))))


def test_a_result_whose_case_is_gone_is_told(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    (cases / "shown.json").unlink()
    with pytest.raises(ContextPlaneError, match="its case is not in the folder") as refused:
        golden_files(str(cases))
    assert (refused.value.code, refused.value.at) == ("golden_case_invalid", str(cases / "shown.expected.json"))


def test_what_has_not_its_form_any_more_is_recorded_anew(tmp_path: Path) -> None:
    cases = folder(tmp_path)
    write_json(Path(cases), "shown.json", {**SHOWN, "expected": {"hash": 1}})
    with pytest.raises(ContextPlaneError, match="'ctx golden record' writes it again"):
        golden_files(cases)
    record_cases(source_of(tmp_path), golden_files(cases, anew=True))
    assert all(result.passed for result in run(cases, source_of(tmp_path)).values())


@pytest.mark.parametrize("text", [b"<<<<<<< HEAD\n{}", b"\xff", b"", b"[]"])
def test_a_result_that_cannot_be_read_is_told_and_recorded_anew(tmp_path: Path, text: bytes) -> None:
    cases = Path(recorded(tmp_path))
    (cases / "shown.expected.json").write_bytes(text)
    with pytest.raises(ContextPlaneError) as refused:
        golden_files(str(cases))
    assert (refused.value.at or "").startswith(str(cases / "shown.expected.json"))
    record_cases(source_of(tmp_path), golden_files(str(cases), anew=True))
    assert run(str(cases), source_of(tmp_path))["shown"].passed


def test_a_case_that_was_compiled_and_is_refused_has_drifted_and_so_has_the_reverse(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    swapped = {"shown": "unknown", "unknown": "shown"}
    expected = {name: document_of(cases, name)["expected"] for name in swapped}
    for name, other in swapped.items():
        write_document(cases, name, {**document_of(cases, name), "expected": expected[other]})
    ran = run(str(cases), source_of(tmp_path))
    assert (ran["shown"].passed, ran["shown"].stage) == (False, "intent")
    assert (ran["unknown"].passed, ran["unknown"].stage) == (False, "intent")
    assert "compile_intent_unknown" in ran["unknown"].words


def test_a_case_that_is_refused_with_another_code_has_drifted(tmp_path: Path) -> None:
    cases = Path(recorded(tmp_path))
    case = json.loads((cases / "unknown.json").read_bytes())
    expected = GoldenRefusal(refused="compile_tenant_mismatch", stage="scope").record_for(case)
    write_document(cases, "unknown", {**case, "expected": msgspec.to_builtins(expected)})
    drifted = run(str(cases), source_of(tmp_path))["unknown"]
    assert (drifted.passed, drifted.stage, drifted.refusal_changed) == (False, "intent", False)
    assert drifted.words == "refused with compile_intent_unknown; compile_tenant_mismatch was expected"


@pytest.mark.parametrize(
    ("name", "document", "code"),
    [
        ("bad.json", put(SHOWN, {"/request/context_pack_refs": ["ctxpack.other@1.0.0"]}), "compile_pack_not_requested"),
        ("bad.json", [], "golden_case_invalid"),
        ("bad.yaml", [], "golden_case_invalid"),
        ("shown.yaml", SHOWN, "golden_case_invalid"),
        ("bad.YML", {**SHOWN, "note": "x"}, "compile_case_invalid"),
        ("bad.json", {**SHOWN, "expected": {"hash": 1}}, "golden_case_invalid"),
        ("bad.json", {"request": 1}, "compile_case_invalid"),
        ("bad.json", {**SHOWN, "note": "x"}, "compile_case_invalid"),
    ],
)
def test_a_file_that_is_no_case_is_refused_with_its_place(
    tmp_path: Path, name: str, document: object, code: str
) -> None:
    cases = folder(tmp_path)
    bad = write_json(Path(cases), name, document)
    with pytest.raises(ContextPlaneError) as refused:
        check_cases(source_of(tmp_path), golden_files(cases))
    assert refused.value.code == code
    assert (refused.value.at or "").startswith(bad)


def test_nothing_is_recorded_where_one_file_is_no_case(tmp_path: Path) -> None:
    cases = Path(folder(tmp_path))
    write_json(cases, "then.json", {**SHOWN, "note": "x"})
    before = {path.name: path.read_bytes() for path in cases.iterdir()}
    with pytest.raises(ContextPlaneError):
        record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert {path.name: path.read_bytes() for path in cases.iterdir()} == before


def test_an_empty_folder_and_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, code in (("empty", "golden_cases_missing"), ("none", "document_unreadable")):
        with pytest.raises(ContextPlaneError) as refused:
            golden_files(str(tmp_path / name))
        assert refused.value.code == code


def line(tmp_path: Path, step: str, changes: dict[str, Any] | None = None) -> tuple[str, str]:
    path = pack_file(tmp_path, changes, "changed.json")
    checklist = check_pack(path, golden=str(tmp_path / "golden")).checklist
    return next((line.verdict, line.reason) for line in checklist.lines if line.step == step)


@proves("context-pack:ci:compile-golden")
def test_the_checklist_compiles_the_golden_requests(tmp_path: Path) -> None:
    folder(tmp_path)
    assert line(tmp_path, "golden")[0] == "failed"  # nothing is recorded
    record_cases(source_of(tmp_path), golden_files(str(tmp_path / "golden")))
    assert line(tmp_path, "golden") == ("passed", "all compile to what was recorded: 3")
    assert "golden_cases_unstable" not in line(tmp_path, "sign")[1]
    assert "golden_cases_unstable" in check_pack(pack_file(tmp_path)).checklist.lines[-1].reason
    verdict, reason = line(tmp_path, "golden", THRESHOLD)
    assert verdict == "failed"
    assert "shown drifted at policy" in reason


@proves("context-pack:gates:replay-stable-manifests", case="another manifest")
@proves("context-pack:gates:replay-stable-budget-reports", case="another budget report")
@pytest.mark.parametrize("changes", [THRESHOLD, SUMMARY], ids=["another manifest", "another budget report"])
def test_a_pack_whose_cases_compile_to_something_else_is_failed(tmp_path: Path, changes: dict[str, Any]) -> None:
    recorded(tmp_path)
    assert line(tmp_path, "golden", changes)[0] == "failed"
    assert line(tmp_path, "sign", changes)[0] == "failed"


def test_tools_are_as_recorded_only_where_something_is_recorded_and_it_compiles(tmp_path: Path) -> None:
    cases = folder(tmp_path)
    assert line(tmp_path, "tool_surface") == ("unknown", "no tools are recorded for closing, shown, unknown")
    record_cases(source_of(tmp_path), golden_files(cases))
    assert line(tmp_path, "tool_surface") == ("passed", "as recorded in all golden requests: 3")
    for name, other in (("shown", "unknown"), ("unknown", "shown")):
        before = document_of(Path(cases), other)
        write_document(Path(cases), other, {**before, "expected": document_of(Path(cases), name)["expected"]})
        assert line(tmp_path, "tool_surface") == ("failed", f"other tools than recorded in: {other}")
        write_document(Path(cases), other, before)


@proves("context-pack:ci:minimal-surface")
def test_the_checklist_fails_on_any_tool_beyond_the_recorded_surface(tmp_path: Path) -> None:
    cases = folder(tmp_path)
    record_cases(source_of(tmp_path, {PERMISSION + "/allow": False}), golden_files(cases))
    verdict, reason = line(tmp_path, "tool_surface")
    assert verdict == "failed"
    assert "closing, shown" in reason
    assert line(tmp_path, "tool_surface", {PERMISSION + "/allow": False})[0] == "passed"


def test_nothing_is_compiled_from_a_pack_that_is_refused(tmp_path: Path) -> None:
    recorded(tmp_path)
    verdict, reason = line(tmp_path, "golden", {"/tooling_layer/permissions/0/capability": "look_up"})
    assert (verdict, reason) == ("unknown", "nothing is compiled from a pack that is refused")


def test_a_case_is_run_with_the_overlays_of_the_pack(tmp_path: Path) -> None:
    recorded(tmp_path)
    overlay = {
        "overlay_id": "ovl.prod",
        "overlay_version": "1.0.0",
        "base_pack_id": "ctxpack.support",
        "environment": "prod",
        "order": 1,
        "issuer": "tenant_acme_prod",
        "changes": [{"at": "/policy_layer/guardrails/redaction_rules/iban", "value": "iban"}],
    }
    path = write_json(tmp_path, "o.json", overlay)
    ran = run(str(tmp_path / "golden"), source_from_file(pack_file(tmp_path), (path,)))
    assert ("redaction", "iban") in {(difference.kind, difference.id) for difference in ran["shown"].changes}
    checklist = check_pack(pack_file(tmp_path), golden=str(tmp_path / "golden"), overlays=(path,)).checklist
    assert next(line.verdict for line in checklist.lines if line.step == "golden") == "failed"
