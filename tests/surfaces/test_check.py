"""`ctx check`: the checklist for a change of a context pack, a verdict and a reason for each line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spec.manifest import proves
from tests.surfaces.commands import ctx
from tests.surfaces.context_packs import (
    REDACTION,
    VERSION,
    VOID,
    answer,
    environment_file,
    example,
    numbered,
    pack_file,
)
from tests.surfaces.sample import one_error_line

STEPS = ["schema", "references", "tool_surface", "golden", "incidents", "evaluators", "diff", "sign"]
SURFACE = [
    {"adapter_id": "adp_payments", "capabilities": ["issue_refund"]},
    {"adapter_id": "adp_policy", "capabilities": ["eval"]},
    {"adapter_id": "adp_orders", "capabilities": ["lookup"]},
]
PERMISSIONS = "/tooling_layer/permissions"


def lines(folder: Path, *args: str) -> dict[str, tuple[str, str]]:
    """Verdict and reason of each line, by step. No checklist is complete yet, so the status is 10 or 15."""
    result = ctx("check", *args, "--json", cwd=folder)
    report = json.loads(result.out)
    assert result.status == (10 if report["outcome"] == "failed" else 15)
    assert [line["number"] for line in report["lines"]] == list(range(1, 9))
    assert [line["step"] for line in report["lines"]] == STEPS
    verdicts = {line["verdict"] for line in report["lines"]}
    assert report["outcome"] == ("failed" if "failed" in verdicts else "incomplete")
    assert all(line["says"] and line["reason"] for line in report["lines"])
    return {line["step"]: (line["verdict"], line["reason"]) for line in report["lines"]}


def golden(folder: Path, surface: object) -> str:
    (folder / "golden").mkdir()
    (folder / "golden" / "tool_surface.json").write_text(json.dumps(surface), encoding="utf-8")
    return "golden"


@proves("context-pack:ci:parse-and-schema", "context-pack:ci:internal-references")
def test_a_good_change_passes_what_can_be_told_and_is_incomplete(tmp_path: Path) -> None:
    checklist = lines(tmp_path, numbered(tmp_path, "1.1.0", REDACTION), "--against", example(tmp_path))
    assert [checklist[step][0] for step in STEPS] == ["passed", "passed", *["unknown"] * 4, "passed", "unknown"]


def test_what_needs_cases_runs_or_evaluators_says_so_and_does_not_pass(tmp_path: Path) -> None:
    checklist = lines(tmp_path, example(tmp_path), "--golden", golden(tmp_path, SURFACE))
    assert checklist["golden"] == ("unknown", "the golden folder holds no case: 'ctx golden record' makes them")
    assert checklist["incidents"] == ("unknown", "needs recorded runs")
    assert checklist["evaluators"] == ("unknown", "needs the evaluators")
    assert checklist["sign"][1].startswith("undecided above: 3, 4, 5, 6, 7; ")


@proves("context-pack:ci:parse-and-schema")
def test_a_wrong_form_fails_the_first_line_and_nothing_below_it_passes(tmp_path: Path) -> None:
    new = numbered(tmp_path, "1.1.0", {"at": "/evaluation_layer"}, {"at": "/notes", "value": "x"})
    checklist = lines(tmp_path, new, "--against", example(tmp_path), "--golden", golden(tmp_path, SURFACE))
    wrong = "failed by law: schema_part_missing at /evaluation_layer, schema_part_unknown at /notes"
    assert checklist["schema"] == ("failed", wrong)
    assert {checklist[step][0] for step in STEPS[1:-1]} == {"unknown"}
    assert checklist["sign"] == ("failed", f"failed above: 1; {wrong}")


@proves("context-pack:ci:internal-references")
def test_a_name_that_leads_nowhere_fails_the_second_line(tmp_path: Path) -> None:
    checklist = lines(
        tmp_path, pack_file(tmp_path / "p.json", {"at": f"{PERMISSIONS}/0/capability", "value": "look_up"})
    )
    assert checklist["schema"][0] == "passed"
    assert checklist["references"][0] == "failed"
    assert f"permission_capability_unknown at {PERMISSIONS}/0/capability" in checklist["references"][1]


def test_an_error_of_any_gate_stands_against_signing(tmp_path: Path) -> None:
    checklist = lines(tmp_path, pack_file(tmp_path / "p.json", {"at": f"{PERMISSIONS}/2/requires_approval_gate"}))
    assert (checklist["schema"][0], checklist["references"][0]) == ("passed", "passed")
    assert checklist["sign"] == ("failed", f"failed by law: destructive_without_gate at {PERMISSIONS}/2")


def test_a_description_of_the_environment_lets_more_be_told(tmp_path: Path) -> None:
    environment = {
        "endpoints": ["internal://orders", "internal://policy", "internal://payments"],
        "roles": ["support_ops", "finance_lead"],
        "ontologies": ["ont.support@1.0.0"],
        "snapshots": ["alias:prod"],
        "tenants": ["tenant_acme_prod"],
        "approval_ceiling": "destructive",
    }
    (tmp_path / "prod.json").write_text(json.dumps(environment), encoding="utf-8")
    assert "environment_undescribed" in lines(tmp_path, example(tmp_path))["sign"][1]
    assert "environment_undescribed" not in lines(tmp_path, "old.json", "--environment", "prod.json")["sign"][1]
    (tmp_path / "prod.json").write_text(json.dumps({**environment, "roles": ["support_ops"]}), encoding="utf-8")
    line = lines(tmp_path, "old.json", "--environment", "prod.json")["sign"]
    assert (line[0], "role_unheld" in line[1]) == ("failed", True)


@pytest.mark.parametrize(
    ("surface", "verdict", "reason"),
    [
        (SURFACE, "unknown", "the pack exposes the 3 expected tools and no other; "),
        (SURFACE[1:], "failed", "not expected: adp_payments.issue_refund"),
        ([*SURFACE, {"adapter_id": "adp_x", "capabilities": ["y"]}], "failed", "expected and not exposed: adp_x.y"),
        ([], "failed", "not expected: adp_orders.lookup, adp_payments.issue_refund, adp_policy.eval"),
    ],
    ids=["the same in another order", "one beyond it", "one missing", "none expected"],
)
def test_what_the_pack_exposes_is_held_against_the_expected_surface(
    tmp_path: Path, surface: object, verdict: str, reason: str
) -> None:
    line = lines(tmp_path, example(tmp_path), "--golden", golden(tmp_path, surface))["tool_surface"]
    assert (line[0], line[1].startswith(reason)) == (verdict, True), line


def test_a_golden_folder_that_expects_nothing_tells_nothing_of_the_surface(tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    line = lines(tmp_path, example(tmp_path), "--golden", "golden")["tool_surface"]
    assert line == ("unknown", "golden cases are needed for the tools of each request (--golden)")


def test_a_permission_that_allows_nothing_is_no_part_of_the_surface(tmp_path: Path) -> None:
    new = numbered(tmp_path, "2.0.0", {"at": f"{PERMISSIONS}/0/allow", "value": False})
    line = lines(tmp_path, new, "--golden", golden(tmp_path, SURFACE[:2]))["tool_surface"]
    assert line[1].startswith("the pack exposes the 2 expected tools")


def overlay(folder: Path, change: dict[str, Any]) -> str:
    document = {
        "overlay_id": "ovl.prod",
        "overlay_version": "1.0.0",
        "base_pack_id": "ctxpack.support",
        "environment": "prod",
        "order": 1,
        "issuer": "tenant_acme_prod",
        "changes": [change],
    }
    (folder / "overlay.json").write_text(json.dumps(document), encoding="utf-8")
    return "overlay.json"


def test_the_surface_is_that_of_the_pack_with_its_overlays_and_the_difference_that_of_the_pack(tmp_path: Path) -> None:
    taken = overlay(tmp_path, {"at": "/policy_layer/guardrails/redaction_rules/aadhaar", "value": "aadhaar"})
    checklist = lines(tmp_path, numbered(tmp_path, "1.0.1"), "--against", example(tmp_path), "--overlay", taken)
    assert checklist["diff"] == (
        "passed",
        "ctxpack.support@1.0.0 to ctxpack.support@1.0.1; the least version class is patch",
    )
    off = {"at": "/tooling_layer/permissions/adp_payments.issue_refund/allow", "value": False}
    checklist = lines(tmp_path, "old.json", "--overlay", overlay(tmp_path, off), "--golden", golden(tmp_path, SURFACE))
    assert checklist["tool_surface"] == ("failed", "expected and not exposed: adp_payments.issue_refund")


def test_an_overlay_does_not_make_an_unsafe_pack_safe(tmp_path: Path) -> None:
    new = numbered(tmp_path, "2.0.0", {"at": f"{PERMISSIONS}/2/requires_approval_gate"})
    off = {"at": "/tooling_layer/permissions/adp_payments.issue_refund/allow", "value": False}
    checklist = lines(tmp_path, new, "--against", example(tmp_path), "--overlay", overlay(tmp_path, off))
    refused = "ctxpack.support@2.0.0 may not be published under any number: the gates report errors in it"
    assert checklist["diff"] == ("failed", refused)


@proves("context-pack:versioning:constrained-is-minor")
@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1.0.1", "failed"), ("1.1.0", "passed"), ("2.0.0", "passed"), ("1.0.0", "failed"), ("0.9.0", "failed")],
)
def test_the_number_must_say_as_much_as_the_change(tmp_path: Path, version: str, verdict: str) -> None:
    checklist = lines(tmp_path, numbered(tmp_path, version, REDACTION), "--against", example(tmp_path))
    assert checklist["diff"][0] == verdict, checklist["diff"]


@proves("context-pack:ci:diff-by-layer")
def test_the_difference_is_listed_by_layer_below_its_line(tmp_path: Path) -> None:
    new, old = numbered(tmp_path, "2.0.0", REDACTION, *VOID), example(tmp_path)
    screen = ctx("check", new, "--against", old, cwd=tmp_path).out
    at = [screen.index(f"\n      {layer}\n") for layer in ("pack_meta", "policy_layer", "tooling_layer")]
    assert at == sorted(at)
    assert "\n        minor  new redaction aadhaar (less is possible)\n" in screen
    void = "new write capability adp_payments.void for support.refund (more is possible)"
    assert f"\n        major  {void}\n8. " in screen
    assert screen.endswith("\nincomplete: 3 passed, 0 failed, 5 undecided\n")


def test_the_same_pack_twice_is_no_change(tmp_path: Path) -> None:
    old = example(tmp_path)
    report, _ = answer("check", old, "--against", old, cwd=tmp_path, status=15)
    assert report["lines"][6]["reason"] == "nothing changed since ctxpack.support@1.0.0"
    assert (report["difference"]["has_drift"], report["difference"]["entries"]) == (False, [])


def test_another_pack_is_not_the_version_before(tmp_path: Path) -> None:
    new = numbered(tmp_path, "2.0.0", {"at": "/pack_meta/pack_id", "value": "ctxpack.other"})
    line = lines(tmp_path, new, "--against", example(tmp_path))["diff"]
    assert line == ("failed", "ctxpack.support and ctxpack.other are two packs, not two versions of one")


def test_the_pack_can_be_piped_in(tmp_path: Path) -> None:
    old = (tmp_path / example(tmp_path)).read_bytes()
    assert ctx("check", "-", cwd=tmp_path, input=old).out == ctx("check", "old.json", cwd=tmp_path).out


def test_nothing_in_a_file_speaks_to_the_terminal(tmp_path: Path) -> None:
    new = pack_file(tmp_path / "p.json", {"at": "/\x1b[31mred", "value": "x"}, {"at": "/notes\u202e", "value": "x"})
    screen = ctx("check", new, cwd=tmp_path).out
    assert "schema_part_unknown at /\\x1b[31mred" in screen
    assert all(c.isprintable() or c == "\n" for c in screen)


BROKEN = {
    "bad.yaml": "a: [1\nb: }",
    "bad.json": '{"a": 1, "a": 2}',
    "log.json": '{"model": {"identifier": "m"}, "system_prompt": "s", "steps": []}',
    "list.json": "[]",
    "text.json": '"x"',
    "empty.json": "",
}


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["nope.json"], 13, "document_unreadable"),
        (["."], 13, "document_unreadable"),
        (["bad.yaml"], 10, "yaml_refused"),
        (["bad.json"], 10, "json_duplicate_key"),
        (["empty.json"], 10, "json_empty"),
        (["old.json", "--against", "nope.json"], 13, "document_unreadable"),
        (["old.json", "--against", "."], 13, "document_unreadable"),
        (["old.json", "--against", "bad.yaml"], 10, "yaml_refused"),
        (["old.json", "--against", "log.json"], 10, "not_a_context_pack"),
        (["old.json", "--against", "list.json"], 10, "not_a_context_pack"),
        (["old.json", "--against", "text.json"], 10, "not_a_context_pack"),
        (["old.json", "--golden", "nope"], 13, "document_unreadable"),
        (["old.json", "--golden", "old.json"], 13, "document_unreadable"),
        (["old.json", "--golden", "log"], 10, "description_invalid"),
        (["old.json", "--golden", "broken"], 10, "json_malformed"),
        (["old.json", "--golden", "folder"], 13, "document_unreadable"),
        (["old.json", "--overlay", "nope.json"], 13, "document_unreadable"),
        (["old.json", "--overlay", "log.json"], 10, "description_invalid"),
        (["old.json", "--environment", "log.json"], 10, "description_invalid"),
        ([], 2, "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_read_is_one_error_and_no_verdict(
    tmp_path: Path, args: list[str], status: int, code: str
) -> None:
    example(tmp_path)
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for folder, text in (("log", BROKEN["log.json"]), ("broken", "[")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool_surface.json").write_text(text, encoding="utf-8")
    (tmp_path / "folder" / "tool_surface.json").mkdir(parents=True)
    one_error_line(ctx("check", *args, cwd=tmp_path), status, code)


def test_a_widening_overlay_is_refused_before_anything_is_checked(tmp_path: Path) -> None:
    wide = overlay(tmp_path, {"at": "/policy_layer/guardrails/redaction_rules/pan", "remove": True})
    line = one_error_line(ctx("check", example(tmp_path), "--overlay", wide, cwd=tmp_path), 10, "overlay_widens")
    assert "redaction pan is gone" in line


def test_the_version_is_compared_and_not_the_text(tmp_path: Path) -> None:
    new = numbered(tmp_path, "1.10.0", REDACTION)
    old = pack_file(tmp_path / "old.json", {"at": VERSION, "value": "1.9.0"})
    assert lines(tmp_path, new, "--against", old)["diff"][0] == "passed"


SKIPS = [f"--skip={line}" for line in ("tool_surface", "golden=no cases yet", "5", "6=no evaluators yet")]


def test_a_change_passes_if_every_line_that_is_not_skipped_does(tmp_path: Path) -> None:
    new, old = numbered(tmp_path, "1.1.0", REDACTION), example(tmp_path)
    described = ["--environment", environment_file(tmp_path), "--against", old]
    report, _ = answer("check", new, *described, *SKIPS, cwd=tmp_path, status=0)
    verdicts = {line["step"]: (line["verdict"], line["reason"]) for line in report["lines"]}
    assert report["outcome"] == "passed"
    assert verdicts["golden"] == ("skipped", "no cases yet")
    assert verdicts["incidents"] == ("skipped", "left out with --skip")
    assert verdicts["sign"] == ("passed", "nothing prevents it; skipped: 3, 4, 5, 6")
    screen = ctx("check", new, *described, *SKIPS, cwd=tmp_path).out
    assert screen.endswith("\npassed: 4 passed, 0 failed, 0 undecided, 4 skipped\n")
    answer("check", new, *described, *SKIPS[:-1], cwd=tmp_path, status=15)


def test_a_line_that_failed_refuses_whatever_is_skipped(tmp_path: Path) -> None:
    small = numbered(tmp_path, "1.0.1", REDACTION)
    answer("check", small, "--against", example(tmp_path), *SKIPS, cwd=tmp_path, status=10)


@pytest.mark.parametrize(("line", "hint"), [("schema", "one of: tool_surface"), ("8", "one of"), ("goldn", "golden")])
def test_only_lines_that_others_do_not_rest_on_can_be_skipped(tmp_path: Path, line: str, hint: str) -> None:
    result = ctx("check", example(tmp_path), "--skip", line, cwd=tmp_path)
    assert hint in one_error_line(result, 2, "usage")
