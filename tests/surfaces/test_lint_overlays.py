"""`ctx lint --overlay`: what overlays change, where their findings are placed, which are refused."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.spec.manifest import ROOT
from tests.surfaces.commands import Result, ctx
from tests.surfaces.context_packs import lint
from tests.unit.authoring.changes import GATE, NARROWING, VAR, WIDENING, deny, overlay
from tests.unit.authoring.packs import EXAMPLE, changed, with_changes

REFUSED = 10


def test_overlays_are_applied_and_each_change_is_told_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "eu.json").write_bytes(msgspec.json.encode(overlay(((f"{GATE}/when", {">": [VAR, 500]}),))))
    result = lint(tmp_path, EXAMPLE, "--overlay", "eu.json")
    assert result.status == 0
    assert "overlay eu.json:1:" in result.out
    assert "ov.staging@1.0.0: approval gate GATE_FINANCE_APPROVAL: its condition holds in more cases" in result.out
    (tmp_path / "bad.json").write_bytes(msgspec.json.encode(overlay(WIDENING[0])))
    wide = lint(tmp_path, EXAMPLE, "--overlay", "bad.json")
    assert wide.status == REFUSED
    assert "overlay_widens: bad.json:1:" in wide.err
    assert "holds in fewer cases: was request.context.refund_amount > 3000, now " in wide.err


def in_yaml(folder: Path, name: str, document: object) -> list[str]:
    """Write a document as YAML; return its lines."""
    text = yaml.safe_dump(document, sort_keys=False)
    (folder / name).write_text(text, encoding="utf-8")
    return text.splitlines()


def findings_of(result: Result, code: str) -> list[dict[str, Any]]:
    return [finding for finding in json.loads(result.out)["findings"] if finding["code"] == code]


def test_after_an_overlay_took_an_entry_out_findings_are_where_they_stand_in_the_file(tmp_path: Path) -> None:
    gone = overlay((("/tooling_layer/permissions/adp_policy.eval", None),))
    in_yaml(tmp_path, "eu.yaml", msgspec.to_builtins(gone))
    pack = with_changes([{"at": "/tooling_layer/permissions/2/requires_approval_gate"}])
    rows = in_yaml(tmp_path, "pack.yaml", pack)
    result = ctx("lint", "pack.yaml", "--overlay", "eu.yaml", "--json", cwd=tmp_path)
    (finding,) = findings_of(result, "destructive_without_gate")
    assert finding["at"] == "/tooling_layer/permissions/1"
    assert rows[finding["line"] - 1] == "  - permission_id: p_issue_refund"
    assert finding["place"] == f"pack.yaml:{finding['line']}:{finding['column']}"


def test_what_an_overlay_brought_is_found_in_the_file_of_the_overlay(tmp_path: Path) -> None:
    rule = deny("R_NEVER", {"and": [{">": [VAR, 5]}, {"<": [VAR, 5]}]})
    where = "/policy_layer/policy_bundles/POLICY_RETURNS_V4/policy_dsl/rules/R_NEVER"
    rows = in_yaml(tmp_path, "eu.yaml", msgspec.to_builtins(overlay(((where, rule),))))
    lint_result = lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml", "--json")
    (finding,) = findings_of(lint_result, "rule_unreachable")
    assert (finding["file"], rows[finding["line"] - 1].strip()) == ("eu.yaml", "then:")
    screen = lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml")
    assert f"error   eu.yaml:{finding['line']}:{finding['column']}  policy/rule_unreachable" in screen.out
    sarif = json.loads(lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml", "--sarif").out)
    files = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in sarif["runs"][0]["results"]
    ]
    assert "eu.yaml" in files


@pytest.mark.parametrize(
    ("changes", "code", "row", "message"),
    [
        ([{"at": "/a/b", "value": 1}], "overlay_misplaced", "- at: /a/b", "known here: "),
        ([{"at": f"{GATE}/ttl_secondz", "value": 1}], "overlay_malformed", "value: 1", "did you mean ttl_seconds?"),
        ([{"at": f"{GATE}/ttl_seconds", "value": 9000}], "overlay_widens", f"- at: {GATE}/ttl_seconds", "allows more"),
    ],
)
def test_an_overlay_that_is_refused_is_told_with_its_file_line_and_column(
    tmp_path: Path, changes: list[object], code: str, row: str, message: str
) -> None:
    rows = in_yaml(tmp_path, "eu.yaml", msgspec.to_builtins(overlay()) | {"changes": changes})
    result = lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml")
    assert result.status == REFUSED
    line = 1 + next(n for n, text in enumerate(rows) if text.strip() == row)
    column = len(rows[line - 1]) - len(rows[line - 1].lstrip("- ")) + 1
    assert f"ctx: {code}: eu.yaml:{line}:{column}: " in result.err
    assert message in result.err
    error = json.loads(lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml", "--json").err)["error"]
    assert (error["at"], error["details"]["place"]) == (f"eu.yaml:{line}:{column}",) * 2


def test_overlays_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    first = overlay(((f"{GATE}/ttl_seconds", 60),), name="ov.a")
    in_yaml(tmp_path, "a.yaml", msgspec.to_builtins(first))
    in_yaml(tmp_path, "b.yaml", msgspec.to_builtins(first) | {"overlay_id": "ov.b", "environment": "prod"})
    mixed = lint(tmp_path, EXAMPLE, "--overlay", "a.yaml", "--overlay", "b.yaml")
    assert mixed.status == REFUSED
    assert "overlays_mixed: b.yaml:4:1: ov.b@1.0.0 is for prod, and ov.a@1.0.0 for staging" in mixed.err
    twice = lint(tmp_path, EXAMPLE, "--overlay", "a.yaml", "--overlay", "a.yaml")
    assert (twice.status, "ov.a@1.0.0 is given twice" in twice.err) == (REFUSED, True)


def test_an_overlay_is_not_applied_to_a_pack_that_has_no_form_and_that_is_said(tmp_path: Path) -> None:
    in_yaml(tmp_path, "a.yaml", msgspec.to_builtins(overlay(NARROWING[0])))
    result = lint(tmp_path, changed("/pack_meta/ttl_seconds", "long"), "--overlay", "a.yaml")
    assert result.status == REFUSED
    assert "overlays not applied, because the schema is violated" in result.out


def test_an_overlay_and_a_catalog_are_judged_for_themselves(tmp_path: Path) -> None:
    document = msgspec.to_builtins(overlay(NARROWING[0]))
    lint_result = lint(tmp_path, document)
    assert (lint_result.status, lint_result.err) == (0, "")
    assert "integrity/overlay_base_absent  /base_pack_id" in lint_result.out
    wrong = lint(tmp_path, {**document, "changes": [{"at": "/policy_layr/guardrails", "remove": True}]}, "--sarif")
    assert wrong.status == REFUSED
    (run,) = json.loads(wrong.out)["runs"]
    assert "overlay_layer_unknown" in [result["ruleId"] for result in run["results"]]
    catalog = json.loads((ROOT / "tests" / "cases" / "decision_catalog" / "support.json").read_bytes())
    assert lint(tmp_path, catalog).status == 0
    assert lint(tmp_path, {**catalog, "decision_specs": []}).status == REFUSED
    example = lint(tmp_path, document, "--against", "pack.json")
    assert "it is an overlay, not a context pack ('ctx lint PACK --overlay FILE'" in example.err


def test_the_version_is_that_of_the_pack_without_its_overlays(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    refund = "/tooling_layer/permissions/adp_payments.issue_refund"
    (tmp_path / "off.json").write_bytes(msgspec.json.encode(overlay(((refund, None),))))
    ungated = with_changes([{"at": "/tooling_layer/permissions/2/requires_approval_gate"}])
    new = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}], ungated)
    result = lint(tmp_path, new, "--overlay", "off.json", "--against", "old.json")
    assert "version class: reject" in result.out


def test_a_narrowing_overlay_in_yaml_is_read(tmp_path: Path) -> None:
    document = msgspec.to_builtins(overlay(NARROWING[0]))
    (tmp_path / "eu.yaml").write_text(yaml.safe_dump(document))
    assert lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml").status == 0
