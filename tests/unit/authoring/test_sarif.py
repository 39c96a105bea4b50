"""SARIF 2.1.0: what the format asks for, of any findings, and fingerprints that stay when the file is rearranged."""

import copy
import json
from typing import Any

import jsonschema_rs
import pytest

from contextplane.authoring.gates.table import EVERY_LAW, judge_pack
from contextplane.authoring.law import Finding
from contextplane.authoring.overlay.resolved_view import OverlayUnsafe
from contextplane.authoring.positions import Place
from contextplane.authoring.sarif import LocatedFinding, failed_cases_log, sarif, unreadable_log
from tests.spec.manifest import ROOT
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, with_changes

BROKEN = with_changes(
    [
        {"at": "/tooling_layer/permissions/2/requires_approval_gate"},
        {"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding", "value": "support.refund.exec"},
        {"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/rationale"},
    ]
)
FORMAT = jsonschema_rs.validator_for(
    json.loads((ROOT / "tests" / "cases" / "sarif.schema.json").read_text(encoding="utf-8")), validate_formats=True
)
"""Of SARIF 2.1.0 what our logs use: required members, closed objects, enumerations."""

LEVELS = {"error": "error", "warning": "warning", "unknown": "note"}


def log_of(pack: Any, *, line: int = 3) -> Any:  # noqa: ANN401  JSON
    report = judge_pack(pack, ENVIRONMENT)
    located = [
        LocatedFinding(finding=finding, uri="a%20b.json", place=Place(line=line, column=2))
        for finding in report.findings
    ]
    return sarif(located, pack, "1.2.3", not_run=report.not_run)


def fingerprints_by_law(pack: Any) -> dict[str, set[str]]:  # noqa: ANN401  JSON
    """The fingerprints of the results, by their rule."""
    fingerprints: dict[str, set[str]] = {}
    for result in log_of(pack)["runs"][0]["results"]:
        fingerprints.setdefault(result["ruleId"], set()).update(result["partialFingerprints"].values())
    return fingerprints


@pytest.mark.parametrize("pack", [EXAMPLE, BROKEN, {}], ids=["passes", "broken", "no form"])
def test_the_format_has_all_that_it_must_have(pack: Any) -> None:  # noqa: ANN401  JSON
    document = log_of(pack)
    assert not [(error.instance_path, error.message) for error in FORMAT.iter_errors(document)]
    assert set(document) == {"$schema", "version", "runs"}
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {law.code for law in EVERY_LAW}
    assert driver["informationUri"] == "urn:contextplane:lint"
    for rule in driver["rules"]:
        texts = [rule[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
        assert all(text.endswith(".") for text in texts)
        assert f"'ctx explain {rule['id']}'" in rule["help"]["text"]
        assert rule["helpUri"] == f"urn:contextplane:{rule['id']}"
    assert {rule["defaultConfiguration"]["level"] for rule in driver["rules"]} <= {"error", "warning"}
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["results"]
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in LEVELS.values()
        assert result["message"]["text"][-1] in ".?!"
        assert result["message"]["text"][-2:] != "?."
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert min(region["startLine"], region["startColumn"]) >= 1
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.json"
        assert all(isinstance(fingerprint, str) for fingerprint in result["partialFingerprints"].values())


def test_gates_that_could_not_look_are_told() -> None:
    (run,) = log_of({})["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert "integrity" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert "invocations" not in log_of(EXAMPLE)["runs"][0]


def test_a_fingerprint_stays_when_lines_and_parts_move_and_each_finding_has_its_own() -> None:
    moved = copy.deepcopy(BROKEN)
    moved["tooling_layer"]["permissions"].reverse()
    moved["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"].reverse()
    assert fingerprints_by_law(moved) == fingerprints_by_law(BROKEN)
    results = log_of(BROKEN)["runs"][0]["results"]
    assert log_of(BROKEN, line=99)["runs"][0]["results"] != results
    fingerprints = [fingerprint for result in results for fingerprint in result["partialFingerprints"].values()]
    assert len(set(fingerprints)) == len(results)


def test_a_fingerprint_is_of_the_law_and_of_the_part() -> None:
    other = with_changes([{"at": "/tooling_layer/permissions/2/capability", "value": "void"}], BROKEN)
    other = with_changes([{"at": "/tooling_layer/adapter_registry/2/capabilities", "value": ["void"]}], other)
    law = "destructive_without_gate"
    assert fingerprints_by_law(other)[law] != fingerprints_by_law(BROKEN)[law]
    assert (
        fingerprints_by_law(other)["decision_binding_unknown"]
        == fingerprints_by_law(BROKEN)["decision_binding_unknown"]
    )


def test_a_sentence_that_begins_with_an_id_keeps_it() -> None:
    def text_of(cause: str, cure: str) -> str:
        finding = Finding(gate="risk", code="secret_present", severity="error", at="", cause=cause, cure=cure)
        located = [LocatedFinding(finding=finding, uri="p.json", place=Place(line=1, column=1))]
        log: Any = sarif(located, {}, "1.2.3")
        return str(log["runs"][0]["results"][0]["message"]["text"])

    assert text_of("adp_orders.lookup is destructive", "add a gate") == "adp_orders.lookup is destructive. Add a gate."
    assert text_of("refund is no intent", "did you mean X?") == "refund is no intent. Did you mean X?"
    assert text_of("the key is there", "'ctx new' writes it") == "The key is there. 'ctx new' writes it."
    assert text_of("network: too high", "alias:prod is one") == "network: too high. alias:prod is one."


def test_logs_of_unreadable_files_and_failed_cases_have_the_format() -> None:
    error = OverlayUnsafe("it is no JSON", at="a b.json:3:4", hint="write JSON")
    for document in (
        unreadable_log(error, "A file is JSON.", "a%20b.json", Place(line=3, column=4), "1.2.3"),
        failed_cases_log([("case", "no tool is left", "a%20b.json", Place(line=3, column=4))], "1.2.3"),
    ):
        assert not [(problem.instance_path, problem.message) for problem in FORMAT.iter_errors(document)]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("version",), "2.1"),
        (("runs", 0, "tool", "driver", "name"), None),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "results", 0, "level"), "fatal"),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "colour"), "red"),
        (("runs", 0, "tool", "driver", "informationUri"), "no uri"),
    ],
)
def test_the_check_of_the_format_refuses_what_the_format_does(at: tuple[str | int, ...], value: object) -> None:
    document = log_of(BROKEN)
    assert FORMAT.is_valid(document)
    part = document
    for step in at[:-1]:
        part = part[step]
    part[at[-1]] = value
    assert not FORMAT.is_valid(document)
