"""SARIF 2.1.0: what the format asks for, of any findings, and fingerprints that stay when the file is rearranged."""

import copy
from typing import Any

import pytest

from contextplane.authoring.gates.table import EVERY_LAW, judged
from contextplane.authoring.positions import Place
from contextplane.authoring.sarif import Located, sarif
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, with_changes

BROKEN = with_changes(
    [
        {"at": "/tooling_layer/permissions/2/requires_approval_gate"},
        {"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding", "value": "support.refund.exec"},
        {"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/rationale"},
    ]
)
LEVELS = {"error": "error", "warning": "warning", "unknown": "note"}


def written(pack: Any, *, line: int = 3) -> Any:  # noqa: ANN401  JSON
    report = judged(pack, ENVIRONMENT)
    located = [
        Located(finding=finding, uri="a%20b.json", place=Place(line=line, column=2)) for finding in report.findings
    ]
    return sarif(located, pack, "1.2.3", not_run=report.not_run)


def prints(pack: Any) -> dict[str, set[str]]:  # noqa: ANN401  JSON
    """The fingerprints of the results, by their rule."""
    found: dict[str, set[str]] = {}
    for result in written(pack)["runs"][0]["results"]:
        found.setdefault(result["ruleId"], set()).update(result["partialFingerprints"].values())
    return found


@pytest.mark.parametrize("pack", [EXAMPLE, BROKEN, {}], ids=["passes", "broken", "no form"])
def test_the_format_has_all_that_it_must_have(pack: Any) -> None:  # noqa: ANN401  JSON
    document = written(pack)
    assert set(document) == {"$schema", "version", "runs"}
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {law.code for law in EVERY_LAW}
    assert all(rule["shortDescription"]["text"].endswith(".") for rule in driver["rules"])
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
        assert all(isinstance(one, str) for one in result["partialFingerprints"].values())


def test_gates_that_could_not_look_are_told() -> None:
    (run,) = written({})["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert "integrity" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert "invocations" not in written(EXAMPLE)["runs"][0]


def test_a_fingerprint_stays_when_lines_and_parts_move_and_each_finding_has_its_own() -> None:
    moved = copy.deepcopy(BROKEN)
    moved["tooling_layer"]["permissions"].reverse()
    moved["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"].reverse()
    assert prints(moved) == prints(BROKEN)
    results = written(BROKEN)["runs"][0]["results"]
    assert written(BROKEN, line=99)["runs"][0]["results"] != results
    one_each = [fingerprint for result in results for fingerprint in result["partialFingerprints"].values()]
    assert len(set(one_each)) == len(results)


def test_a_fingerprint_is_of_the_law_and_of_the_part() -> None:
    other = with_changes([{"at": "/tooling_layer/permissions/2/capability", "value": "void"}], BROKEN)
    other = with_changes([{"at": "/tooling_layer/adapter_registry/2/capabilities", "value": ["void"]}], other)
    law = "destructive_without_gate"
    assert prints(other)[law] != prints(BROKEN)[law]
    assert prints(other)["decision_binding_unknown"] == prints(BROKEN)["decision_binding_unknown"]
