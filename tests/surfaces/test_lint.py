"""`ctx lint`: findings of a pack, their explanations, and the comparison with the version before."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextplane.authoring.gates.table import EVERY_LAW
from tests.spec.manifest import proves
from tests.surfaces.commands import Result, ctx
from tests.surfaces.context_packs import VERSION, answer, environment_file, lint, pack_file
from tests.surfaces.sample import one_error_line
from tests.unit.authoring.changes import VAR
from tests.unit.authoring.packs import EXAMPLE, changed, with_changes

REFUSED, NOT_FOUND, USAGE = 10, 13, 2


@proves("context-pack:full-example:policy-and-safety-gates-suffice", "context-pack:ci:parse-and-schema")
def test_the_full_example_passes_and_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    lint_result = lint(tmp_path, EXAMPLE)
    assert lint_result.status == 0, lint_result.err
    *warnings, verdict, _, _ = lint_result.out.splitlines()
    left = lint_result.out.splitlines()[-2:]
    assert verdict == "passed: 0 errors, 3 warnings"
    assert len([line for line in warnings if line.startswith("warning ")]) == 3
    assert left[0].startswith("skipped (tenancy/environment_undescribed): no environment description")
    assert left[1].startswith("skipped (replay/golden_cases_unstable): golden cases are not compiled here")
    result = lint(tmp_path, EXAMPLE, "--environment", environment_file(tmp_path))
    assert result.out.splitlines() == [*warnings, verdict, left[1]]


@proves("context-pack:ci:internal-references")
def test_a_finding_names_its_place_its_law_its_cause_and_its_cure(tmp_path: Path) -> None:
    result = lint(tmp_path, changed("/tooling_layer/permissions/0/adapter_id", "adp_order"))
    assert result.status == REFUSED
    lines = result.out.splitlines()
    at = next(n for n, line in enumerate(lines) if "permission_adapter_unknown" in line)
    row = (tmp_path / "pack.json").read_text().splitlines().index('        "adapter_id": "adp_order",') + 1
    assert lines[at].split() == [
        *("error", f"pack.json:{row}:9", "integrity/permission_adapter_unknown"),
        "/tooling_layer/permissions/0/adapter_id",
    ]
    assert lines[at + 1].strip() == "the adapter 'adp_order' is not declared"
    assert lines[at + 2].strip() == "-> did you mean adp_orders?"


def test_yaml_is_judged_with_the_places_of_the_yaml_file(tmp_path: Path) -> None:
    text = yaml.safe_dump(changed("/decision_layer/decision_specs/0/approval_mode", "network"))
    result = lint(tmp_path, text.encode(), name="pack.yaml")
    assert result.status == REFUSED
    row = text.splitlines().index("  - allowed_outcomes:") + 1
    lines = [line for line in result.out.splitlines() if "decision_below_tool" in line]
    line = int(lines[0].split("pack.yaml:")[1].split(":")[0])
    assert text.splitlines()[line - 1].strip() == "approval_mode: network"
    assert line > row


def test_a_pack_is_read_from_a_pipe(tmp_path: Path) -> None:
    result = ctx("lint", "-", cwd=tmp_path, input=json.dumps(EXAMPLE).encode())
    assert result.status == 0
    broken = ctx("lint", "-", cwd=tmp_path, input=b"{")
    assert broken.status == REFUSED
    assert "Traceback" not in broken.err


def test_json_says_the_same_to_programs(tmp_path: Path) -> None:
    result = lint(tmp_path, changed("/pack_meta/ttl_seconds", "long"), "--json")
    assert result.status == REFUSED
    answer: dict[str, Any] = json.loads(result.out)
    assert answer["passed"] is False
    assert answer["not_run"] == ["integrity", "policy", "risk", "tenancy", "replay", "evaluation", "security"]
    (finding,) = answer["findings"]
    assert (finding["code"], finding["at"], finding["severity"]) == (
        *("schema_type_wrong", "/pack_meta/ttl_seconds", "error"),
    )
    assert finding["line"] > 1


def test_sarif_is_what_code_hosts_read(tmp_path: Path) -> None:
    lint_result = lint(tmp_path, changed("/pack_meta/ttl_seconds", 0), "--sarif")
    assert lint_result.status == REFUSED
    document = json.loads(lint_result.out)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {law.code for law in EVERY_LAW}
    (result,) = run["results"]
    where = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("schema_value_wrong", "error")
    assert where["artifactLocation"]["uri"] == "pack.json"
    assert where["region"]["startLine"] > 1
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("not run, because the schema is violated: integrity")


@pytest.mark.parametrize(
    ("name", "data", "code", "place"),
    [
        ("bad.json", b'{"a": 1,\n "b": }', "json_malformed", (2, 7)),
        ("bad.yaml", b"a: 1\nb: [1,\nc: {", "yaml_refused", (4, 1)),
        ("bad.json", b'{"a":\n "\xff"}', "json_utf8_invalid", (2, 3)),
        ("bad.json", b"", "json_empty", (1, 1)),
        ("bad.yaml", b"a: 1\na: 2\n", "yaml_refused", (2, 1)),
        ("bad.json", b'{"input": {}, "request_id": "r"}', "not_a_context_pack", (1, 1)),
    ],
)
def test_sarif_of_a_file_that_cannot_be_judged_has_one_result_with_its_place(
    tmp_path: Path, name: str, data: bytes, code: str, place: tuple[int, int]
) -> None:
    (tmp_path / name).write_bytes(data)
    result = ctx("lint", name, "--sarif", cwd=tmp_path)
    assert (result.status, result.err.startswith(f"ctx: {code}: {name}")) == (REFUSED, True)
    (run,) = json.loads(result.out)["runs"]
    (rule,), (only,) = run["tool"]["driver"]["rules"], run["results"]
    assert (rule["id"], only["ruleId"], only["level"]) == (code, code, "error")
    where = only["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == name
    assert (where["region"]["startLine"], where["region"]["startColumn"]) == place


def test_sarif_names_a_file_as_other_tools_take_it(tmp_path: Path) -> None:
    folder = tmp_path / "refunds für alle"
    folder.mkdir()
    named = {
        "a b#1%.json": "a%20b%231%25.json",
        "c:d.json": "c%3Ad.json",
        "back\\slash?.json": "back%5Cslash%3F.json",
        "./plain.json": "plain.json",
        "../refunds für alle/up.json": "up.json",
    }
    for name, uri in named.items():
        (run,) = json.loads(lint(folder, changed("/pack_meta/ttl_seconds", 0), "--sarif", name=name).out)["runs"]
        (result,) = run["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    inside = ctx("lint", "refunds für alle/plain.json", "--sarif", cwd=tmp_path)
    assert '"refunds%20f%C3%BCr%20alle/plain.json"' in inside.out
    outside = ctx("lint", "../plain.json", "--sarif", cwd=folder)
    assert outside.status == NOT_FOUND


@pytest.mark.parametrize("code", ["schema_part_missing", "rule_unreachable", "secret_present"])
def test_a_code_is_explained_by_its_law(tmp_path: Path, code: str) -> None:
    result = ctx("lint", "--explain", code, cwd=tmp_path)
    assert result.status == 0
    (law,) = [law for law in EVERY_LAW if law.code == code]
    assert law.text in result.out


def test_a_gate_is_explained_by_all_its_laws(tmp_path: Path) -> None:
    result = ctx("lint", "--explain", "policy", cwd=tmp_path)
    assert result.status == 0
    laws = [law for law in EVERY_LAW if law.gate == "policy"]
    assert all(f"  {law.code} ({law.severity})\n      {law.text}\n" in result.out for law in laws)
    as_printed = ctx("lint", "--explain", "risk/destructive_without_gate", cwd=tmp_path)
    assert as_printed.out.startswith("risk/destructive_without_gate (error)\n")


def test_an_error_of_ctx_is_explained_and_the_others_are_pointed_at(tmp_path: Path) -> None:
    result = ctx("lint", "--explain", "yaml_refused", cwd=tmp_path)
    assert result.out.startswith("yaml_refused (an error of ctx; family refused, exit status 10)\nA YAML text that is ")
    unknown = ctx("lint", "--explain", "xyz", cwd=tmp_path)
    assert unknown.status == NOT_FOUND
    assert "the gates are schema, integrity, policy, risk, " in unknown.err
    assert "'ctx explain' lists every code" in unknown.err


def test_an_unknown_code_and_no_pack_at_all_are_answered_with_a_way_out(tmp_path: Path) -> None:
    unknown = ctx("lint", "--explain", "secret_presnt", cwd=tmp_path)
    assert unknown.status == NOT_FOUND
    assert "did you mean secret_present?" in unknown.err
    nothing = ctx("lint", cwd=tmp_path)
    assert nothing.status == USAGE
    assert "no PACK was named" in nothing.err


@pytest.mark.parametrize("what", ["--overlay", "--environment", "--against"])
def test_a_description_of_the_wrong_form_is_refused_with_its_place(tmp_path: Path, what: str) -> None:
    (tmp_path / "other.json").write_text('{\n  "roles": 3,\n  "order": "first"\n}')
    result = lint(tmp_path, EXAMPLE, what, "other.json")
    assert result.status == REFUSED
    assert "other.json:" in result.err
    assert "Traceback" not in result.err


@proves("context-pack:contract-meta:name-is-stable")
def test_a_version_number_that_promises_too_little_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    tighter = {"at": "/policy_layer/approval_gates/0/when", "value": {">": [VAR, 1000]}}

    def step(version: str, *changes: dict[str, Any]) -> Result:
        number = {"at": "/pack_meta/pack_version", "value": version}
        return lint(tmp_path, with_changes([number, *changes]), "--against", "old.json")

    assert step("1.0.1", tighter).status == REFUSED
    assert "a patch version, and the change is minor" in step("1.0.1", tighter).err
    assert step("1.0.1", tighter).out.splitlines()[-3].startswith("refused: 0 errors")
    fine = step("1.1.0", tighter)
    assert fine.status == 0
    assert "least version class: minor" in fine.out
    assert "    minor  approval gate GATE_FINANCE_APPROVAL: its condition holds in more cases" in fine.out
    assert step("1.0.0", tighter).status == REFUSED
    renamed = step("2.0.0", {"at": "/pack_meta/pack_id", "value": "ctxpack.other"})
    assert renamed.status == REFUSED
    assert "are two packs, not two versions of one" in renamed.err
    unsafe = step("2.0.0", {"at": "/tooling_layer/permissions/2/requires_approval_gate"})
    assert unsafe.status == REFUSED
    assert "version class: reject" in unsafe.out
    assert lint(tmp_path, EXAMPLE, "--against", "old.json").status == 0


def test_a_number_that_is_too_small_holds_no_finding_back(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    new = with_changes([{"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/rationale"}, *_TIGHTER])
    for form in ((), ("--json",), ("--sarif",)):
        result = lint(tmp_path, new, "--against", "old.json", *form)
        assert result.status == REFUSED
        assert "rule_without_rationale" in result.out
        assert "a patch version, and the change is minor" in result.err
        assert "Traceback" not in result.err
    report = json.loads(lint(tmp_path, new, "--against", "old.json", "--json").out)
    assert (report["passed"], report["version_class"]) == (False, "minor")
    assert "a patch version" in report["version_refused"]


_TIGHTER: tuple[dict[str, Any], ...] = (
    {"at": "/policy_layer/approval_gates/0/when", "value": {">": [VAR, 1000]}},
    {"at": "/pack_meta/pack_version", "value": "1.0.1"},
)


SUM = {">": [{"+": [{"var": "request.context.refund_amount"}, {"var": "request.context.fee"}]}, 3000]}
ASKING = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/if"


def test_strict_refuses_what_cannot_be_decided(tmp_path: Path) -> None:
    described = ["--environment", environment_file(tmp_path)]
    assert lint(tmp_path, EXAMPLE, "--strict", *described).status == 0
    undescribed = lint(tmp_path, EXAMPLE, "--strict")
    assert undescribed.status == 10
    assert "refused: 0 errors, 3 warnings, 1 undecided (--strict)" in undescribed.out
    untold = with_changes([{"at": ASKING, "value": {"var": "request.context.flag"}}])
    assert lint(tmp_path, untold, *described).status == 0
    report, _ = answer("lint", "pack.json", "--strict", *described, cwd=tmp_path, status=10)
    severities = [finding["severity"] for finding in report["findings"] if finding["at"]]
    assert (report["passed"], severities.count("unknown"), severities.count("error")) == (False, 1, 0)


def test_a_difference_whose_effect_cannot_be_told_is_major_and_strict_refuses_it(tmp_path: Path) -> None:
    old = pack_file(tmp_path / "old.json", {"at": ASKING, "value": SUM})
    more = {">": [SUM[">"][0], 4000]}
    new = pack_file(tmp_path / "new.json", {"at": ASKING, "value": more}, {"at": VERSION, "value": "2.0.0"})
    report, _ = answer("diff", old, new, cwd=tmp_path, status=0)
    assert (report["version_class"], report["undecided"]) == ("major", 1)
    screen = ctx("diff", old, new, "--strict", cwd=tmp_path)
    assert screen.status == 10
    assert "Undecided: the effect of 1 change cannot be told, so it counts as major" in screen.out
    assert (
        ctx("lint", new, "--against", old, "--strict", "--environment", environment_file(tmp_path), cwd=tmp_path).status
        == 10
    )
    assert ctx("diff", old, old, "--strict", cwd=tmp_path).status == 0
    for refs in (("pk_aaaaaaaa", "pk_bbbbbbbb"), ("3fa9", "81c2")):
        assert "only for context packs" in one_error_line(ctx("diff", *refs, "--strict", cwd=tmp_path), USAGE, "usage")
