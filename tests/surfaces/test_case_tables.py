"""`ctx test`: tables of cases, their differences, coverage, and the reports for CI."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema_rs
import pytest

from contextplane.app.schemas import read_schema
from contextplane.authoring.yaml_reader import read_yaml_file
from tests.spec.manifest import ROOT
from tests.surfaces.commands import ctx
from tests.surfaces.sample import one_error_line
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json

REFUSED, USAGE, NOT_FOUND = 10, 2, 13

TABLE = """\
pack: pack.json
role: support_agent
set: {request.context.identity_verified: true, request.context.refund_amount: 9000}
cases:
  - name: a large refund waits for finance
    expect:
      allowed: true
      tools: {has: [adp_payments.issue_refund]}
      gates: [GATE_FINANCE_APPROVAL]
      rules: [R_REFUND_REQUIRES_IDV, POLICY_RETURNS_V4#R_HIGH_VALUE_REQUIRES_APPROVAL]
  - name: an unverified customer is denied
    set: {request.context.identity_verified: false}
    expect: {allowed: false, reason: Identity not verified, tools: {lacks: [adp_payments.issue_refund]}}
  - name: a signal escalates
    set: {request.context.signals: [fraud_signal_high]}
    expect: {allowed: false, guardrails: [fraud_signal_high]}
  - name: another tenant is refused
    set: {tenant_id: tenant_other}
    expect: {refused: compile_tenant_mismatch}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pack_file(tmp_path)
    (tmp_path / "refunds.test.yaml").write_text(TABLE, encoding="utf-8")
    return tmp_path


def case(folder: Path, text: str) -> str:
    """Run one case of a table, which must fail, and return the screen."""
    (folder / "one.yaml").write_text(f"pack: pack.json\nrole: support_agent\ncases:\n  - {text}\n", encoding="utf-8")
    result = ctx("test", "one.yaml", cwd=folder)
    assert (result.status, result.err) == (REFUSED, ""), result
    return result.out


def test_every_case_is_a_line_and_what_no_case_reaches_is_named(folder: Path) -> None:
    result = ctx("test", cwd=folder)
    assert (result.status, result.err) == (0, ""), result
    lines = result.out.splitlines()
    assert lines[:5] == [
        "refunds.test.yaml  ctxpack.support@1.0.0",
        "  ok    a large refund waits for finance",
        "  ok    an unverified customer is denied",
        "  ok    a signal escalates",
        "  ok    another tenant is refused",
    ]
    assert lines[-1] == "4 cases, all passed"
    assert "  rule POLICY_RETURNS_V4#R_HIGH_VALUE_REQUIRES_APPROVAL: never false" in lines
    assert not any("R_REFUND_REQUIRES_IDV" in line for line in lines), "both of its branches were reached"
    assert not any("fraud_signal_high" in line for line in lines[5:])


def test_what_no_case_decides_is_told_once(folder: Path) -> None:
    refused = (
        "pack: pack.json\nrole: support_agent\ncases:\n  - {name: a, set: {tenant_id: tenant_other}, expect: {}}\n"
    )
    refused = refused.replace("expect: {}", "expect: {refused: compile_tenant_mismatch}")
    (folder / "one.yaml").write_text(refused, encoding="utf-8")
    result = ctx("test", "one.yaml", cwd=folder)
    assert (result.status, result.err) == (0, "")
    assert "  guardrail fraud_signal_high: never decided\n" in result.out
    assert "never triggered" not in result.out
    assert json.loads(ctx("test", "one.yaml", "--json", cwd=folder).out)["coverage"][0]["percent"] == 0


def test_coverage_may_be_too_small(folder: Path) -> None:
    covered = json.loads(ctx("test", "--json", cwd=folder).out)["coverage"][0]["percent"]
    assert ctx("test", "--coverage-min", str(covered), cwd=folder).status == 0
    result = ctx("test", "--coverage-min", str(covered + 1), "--quiet", cwd=folder)
    assert (result.status, result.out) == (REFUSED, f"coverage is {covered} %, less than {covered + 1} %\n")
    one_error_line(ctx("test", "--coverage-min", "101", cwd=folder), USAGE, "usage")


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        (
            "{name: x, set: {request.context.identity_verified: false}, expect: {allowed: true}}",
            "allowed: true was expected, and it is denied: R_REFUND_REQUIRES_IDV: Identity not verified",
        ),
        ("{name: x, expect: {reason: the moon}}", "reason: 'the moon' was expected, and it is denied: "),
        (
            "{name: x, safety_mode: read_only, expect: {tools: {has: [adp_payments.issue_refund]}}}",
            "tools: adp_payments.issue_refund was expected, and is not surfaced (above_ceiling)",
        ),
        (
            (
                "{name: x, set: {request.context.identity_verified: true, request.context.refund_amount: 9000}, "
                "expect: {gates: [], tools: [adp_orders.lookup, adp_policy.eval]}}"
            ),
            (
                "tools: adp_payments.issue_refund is surfaced, and was not expected\n"
                "        gates: GATE_FINANCE_APPROVAL is active, and was not expected"
            ),
        ),
        ("{name: x, expect: {refused: compile_budget_invalid}}", "it compiled, and is denied: "),
        (
            "{name: x, set: {tenant_id: tenant_other}, expect: {allowed: false}}",
            "refused with compile_tenant_mismatch: ",
        ),
        (
            "{name: x, set: {tenant_id: tenant_other}, expect: {refused: compile_intent_unknown}}",
            "; compile_intent_unknown was expected",
        ),
        (
            "{name: x, expect: {guardrails: [fraud_signal_high]}}",
            "guardrails: fraud_signal_high was expected, and is not",
        ),
        (
            "{name: x, expect: {rules: [R_REFUND_REQUIRES_IDV]}}",
            "rules: R_REFUND_REQUIRES_IDV was expected, and is not",
        ),
    ],
)
def test_a_difference_says_what_was_expected_and_what_is(folder: Path, text: str, difference: str) -> None:
    screen = case(folder, text)
    assert "  FAIL  x  (one.yaml:4:5)\n" in screen
    assert difference in screen
    assert screen.endswith("1 case, 1 failed\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "{name: x, expect: {tools: {lacks: [adp_orders.lokup]}}}",
            "no tool adp_orders.lokup (did you mean adp_orders.look",
        ),
        ("{name: x, expect: {gates: [GATE]}}", "/cases/0/expect/gates: the pack has no gate GATE"),
        ("{name: x, expect: {rules: [R_NONE]}}", "the pack has no rule R_NONE"),
        ("{name: x, expect: {guardrails: [fraud]}}", "the pack has no guardrail fraud"),
        ("{name: x, expect: {}}", "it expects nothing, so it cannot fail"),
        ("{name: x, expect: {tools: {}, gates: {has: []}}}", "it expects nothing, so it cannot fail"),
        ("{name: x, expect: {allowd: true}}", "did you mean allowed?"),
        ("{name: x, expect: {allowed: 'yes'}}", "must be true or false"),
        ("{name: x, expect: {allowed: true, refused: y}}", "expect refused alone"),
        ("{name: x, set: {request.a.b: 1}, expect: {allowed: true}}", "'a' is not a field of this part"),
        ("{name: x, evidence: [{type: a}], expect: {allowed: true}}", "content"),
        ("{name: x, expect: {unresolved: [order_lookp]}}", "the pack has no required evidence order_lookp"),
        ("{name: x, set: {requst.a: 1}, expect: {allowed: true}}", "/cases/0/set/requst.a: names nothing in a request"),
        (
            "{name: x, set: {safety_mode: wild}, expect: {allowed: true}}",
            "/cases/0/set/safety_mode: safety_mode 'wild'",
        ),
        ("{name: x, as_of: now, expect: {allowed: true}}", "/cases/0/as_of"),
    ],
)
def test_a_table_that_could_not_fail_is_refused_with_its_place(folder: Path, text: str, words: str) -> None:
    (folder / "one.yaml").write_text(f"pack: pack.json\ncases:\n  - {text}\n", encoding="utf-8")
    line = one_error_line(ctx("test", "one.yaml", cwd=folder), REFUSED, "test_table_invalid")
    assert "one.yaml:3:" in line
    assert words in line


@pytest.mark.parametrize(
    ("path", "data", "status", "code"),
    [
        ("none.test.yaml", None, NOT_FOUND, "document_unreadable"),
        ("/dev/null", None, NOT_FOUND, "document_unreadable"),
        ("pack.json", None, REFUSED, "test_table_invalid"),
        ("x.yaml", b"\xff", REFUSED, "yaml_refused"),
        ("x.json", b"[1]", REFUSED, "test_table_invalid"),
        (
            "x.json",
            b'{"pack": "none.json", "cases": [{"name": "a", "expect": {"allowed": true}}]}',
            13,
            "document_unreadable",
        ),
        (
            "x.json",
            b'{"pack": "x.json", "cases": [{"name": "a", "expect": {"allowed": true}}]}',
            10,
            "not_a_context_pack",
        ),
        ("x.json", b"0" * (5 << 20), REFUSED, "author_file_too_large"),
    ],
)
def test_what_is_no_table_is_refused(folder: Path, path: str, data: bytes | None, status: int, code: str) -> None:
    if data is not None:
        (folder / path).write_bytes(data)
    one_error_line(ctx("test", path, cwd=folder), status, code)


def test_tables_are_found_in_folders_and_an_empty_folder_is_told(folder: Path) -> None:
    inner = folder / "tests" / "deep"
    inner.mkdir(parents=True)
    (inner / "b.test.yml").write_text(TABLE.replace("pack.json", "../../pack.json"), encoding="utf-8")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "c.test.yaml").write_text("nothing", encoding="utf-8")
    answer = json.loads(ctx("test", ".", "refunds.test.yaml", "--json", cwd=folder).out)
    assert sorted({row["table"] for row in answer["cases"]}) == ["refunds.test.yaml", "tests/deep/b.test.yml"]
    assert len(answer["cases"]) == 8
    assert len(answer["coverage"]) == 1, "both tables test the same file"
    (folder / "empty").mkdir()
    one_error_line(ctx("test", "empty", cwd=folder), NOT_FOUND, "test_tables_missing")


def test_another_pack_takes_the_place_of_that_of_the_table(folder: Path) -> None:
    pack_file(folder, {"/tooling_layer/permissions/2/allow": False}, "stricter.json")
    result = ctx("test", "--pack", "stricter.json", cwd=folder)
    assert result.status == REFUSED
    assert "tools: adp_payments.issue_refund was expected, and is not surfaced (" in result.out


@pytest.mark.parametrize("bare", [False, True], ids=["whole", "envelope"])
def test_cases_may_change_a_request_in_a_file(folder: Path, bare: bool) -> None:  # noqa: FBT001  a case
    write_json(folder, "base.json", SHOWN["request"] if bare else SHOWN)
    table = "pack: pack.json\nbase: base.json\nsafety_mode: read_only\nrole: support_agent\ncases:\n"
    rows = "  - {name: x, expect: {allowed: true, tools: {lacks: [adp_payments.issue_refund]}}}\n"
    (folder / "refunds.test.yaml").write_text(table + rows, encoding="utf-8")
    result = ctx("test", cwd=folder)
    assert result.status == 0, result


def test_reports_for_ci_name_the_failed_cases_with_their_places(folder: Path) -> None:
    text = TABLE.replace("gates: [GATE_FINANCE_APPROVAL]", "gates: []").replace(
        "a large refund", 'a "<large>" \\x07 refund'
    )
    (folder / "refunds.test.yaml").write_text(text, encoding="utf-8")
    result = ctx("test", "--junit", "junit.xml", "--sarif", "log.sarif", cwd=folder)
    assert result.status == REFUSED
    suites = ET.fromstring((folder / "junit.xml").read_text(encoding="utf-8"))  # noqa: S314  our own file
    assert (suites.get("tests"), suites.get("failures")) == ("4", "1")
    failed = [element for element in suites.iter("testcase") if element.find("failure") is not None]
    assert [(element.get("file"), element.get("line")) for element in failed] == [("refunds.test.yaml", "5")]
    assert (failed[0].find("failure").text or "").startswith("gates: GATE_FINANCE_APPROVAL is active")  # type: ignore[union-attr]
    (run,) = json.loads((folder / "log.sarif").read_text(encoding="utf-8"))["runs"]
    (only,) = run["results"]
    assert only["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert run["tool"]["driver"]["rules"][0]["id"] == only["ruleId"] == "case_failed"
    one_error_line(ctx("test", "--junit", "none/x.xml", cwd=folder), 1, "storage_failed")


def test_the_table_that_new_writes_passes(tmp_path: Path) -> None:
    for args in (("refunds.yaml",), ("refunds.test.yaml", "--test")):
        assert ctx("new", *args, cwd=tmp_path).status == 0
    result = ctx("test", cwd=tmp_path)
    assert (result.status, result.out.splitlines()[-1]) == (0, "4 cases, all passed")


@pytest.mark.parametrize("expected", ["[adp_orders.lookup, adp_policy.eval]", "{lacks: [adp_payments.issue_refund]}"])
def test_a_tool_that_only_the_budget_leaves_out_is_no_tool_that_policy_keeps_away(folder: Path, expected: str) -> None:
    small = "/run_context/run_budget/bucket_tokens/tool: 30"
    facts = "request.context.identity_verified: true, request.context.refund_amount: 10"
    screen = case(folder, f"{{name: a, set: {{{small}, {facts}}}, expect: {{tools: {expected}}}}}")
    assert "tools: adp_payments.issue_refund is left out for its tokens only, and was not expected" in screen


def test_a_report_replaces_no_table_and_no_link_and_no_device(folder: Path) -> None:
    for option in ("--junit", "--sarif"):
        one_error_line(ctx("test", option, "refunds.test.yaml", cwd=folder), USAGE, "usage")
    assert (folder / "refunds.test.yaml").read_text(encoding="utf-8") == TABLE
    (folder / "link.xml").symlink_to("real.xml")
    assert ctx("test", "--junit", "link.xml", cwd=folder).status == 0
    assert (folder / "link.xml").is_symlink()
    ET.parse(folder / "real.xml")  # noqa: S314  our own
    os.mkfifo(folder / "pipe")
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit((folder / "pipe").read_text, encoding="utf-8")
        assert ctx("test", "--junit", "pipe", cwd=folder).status == 0
        assert text.result(10) == (folder / "real.xml").read_text(encoding="utf-8")
    assert (folder / "pipe").is_fifo()


def test_a_fact_that_the_pack_does_not_read_is_a_warning(folder: Path) -> None:
    changes = "set: {request.context.identity_verifed: true, request.context.identity_verified: false}"
    text = f"pack: pack.json\nrole: support_agent\ncases:\n  - {{name: a, {changes}, expect: {{allowed: false}}}}\n"
    (folder / "one.yaml").write_text(text, encoding="utf-8")
    words = "the pack does not read request.context.identity_verifed; did you mean identity_verified?"
    result = ctx("test", "one.yaml", cwd=folder)
    assert (result.status, result.err) == (0, "")
    assert f"  ok    a\n        warning: {words}\n" in result.out
    (answer,) = json.loads(ctx("test", "one.yaml", "--json", cwd=folder).out)["cases"]
    assert (answer["passed"], answer["warnings"]) == (True, [words])


EVIDENCE = """\
pack: pack.json
role: support_agent
as_of: 2026-05-04T09:31:00Z
set: {request.context.identity_verified: true, request.context.refund_amount: 9000}
evidence: [{type: order_lookup, content: {order_id: ord_881}}]
cases:
  - name: a looked-up order is evidence
    expect: {unresolved: {lacks: [order_lookup]}}
  - name: without it, the name is open
    evidence: []
    expect: {unresolved: {has: [order_lookup]}}
  - name: words of a stranger close nothing
    evidence: [{type: order_lookup, content: it arrived, trust: untrusted}]
    expect: {unresolved: {has: [order_lookup]}}
  - name: nor does what is stale
    evidence:
      - {type: order_lookup, content: x, observed_at: 2026-05-03T00:00:00Z, expires_at: 2026-05-04T00:00:00Z}
    expect: {unresolved: {has: [order_lookup]}}
  - name: nor the result of another tool
    evidence: [{type: order_lookup, content: x, evidence_ref: "tool:adp_payments.issue_refund:tc_1"}]
    expect: {unresolved: {has: [order_lookup]}}
"""


def test_a_case_may_come_with_evidence(folder: Path) -> None:
    (folder / "one.yaml").write_text(EVIDENCE, encoding="utf-8")
    result = ctx("test", "one.yaml", cwd=folder)
    assert (result.status, result.err) == (0, ""), result
    assert "5 cases, all passed\n" in result.out
    wrong = EVIDENCE.replace("lacks: [order_lookup]", "has: [order_lookup]")
    (folder / "one.yaml").write_text(wrong, encoding="utf-8")
    result = ctx("test", "one.yaml", cwd=folder)
    assert result.status == REFUSED
    assert "unresolved: order_lookup was expected, and is not open" in result.out


def test_the_schema_of_tables_takes_those_that_run() -> None:
    check = jsonschema_rs.validator_for(json.loads(read_schema("test-table")))
    tables = [*sorted((ROOT / "tests" / "cases" / "packs").glob("*.test.yaml"))]
    for text in (TABLE, EVIDENCE, *(table.read_text(encoding="utf-8") for table in tables)):
        table = read_yaml_file(text.encode()).value
        assert not [(error.instance_path, error.message) for error in check.iter_errors(table)]
    assert not check.is_valid({"pack": "p.yaml", "cases": [{"name": "a", "expect": {"allowd": True}}]})
