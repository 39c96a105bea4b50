"""`ctx lint`: a pack judged as its author does it, and every kind of bad input."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from contextplane.authoring.gates.table import EVERY_LAW
from tests.spec.manifest import ROOT, proves
from tests.surfaces.running import Result, ctx
from tests.unit.authoring.changes import GATE, NARROWING, VAR, WIDENING, overlay
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, changed, with_changes

CASES = ROOT / "tests" / "cases" / "context_pack"
REFUSED, NOT_FOUND, USAGE = 10, 13, 2


def lint(folder: Path, pack: object, *arguments: str, name: str = "pack.json") -> Result:
    text = pack if isinstance(pack, bytes) else json.dumps(pack, indent=2).encode()
    (folder / name).write_bytes(text)
    return ctx("lint", name, *arguments, cwd=folder)


def described(folder: Path) -> str:
    (folder / "environment.json").write_bytes(msgspec.json.encode(ENVIRONMENT))
    return "environment.json"


@proves("context-pack:full-example:policy-and-safety-gates-suffice", "context-pack:ci:parse-and-schema")
def test_the_full_example_passes_and_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    done = lint(tmp_path, EXAMPLE)
    assert done.status == 0, done.err
    assert "environment_undescribed" in done.out
    assert done.out.splitlines()[-1].startswith("passed: 0 errors, 0 warnings, 2 that cannot be told here")
    told = lint(tmp_path, EXAMPLE, "--environment", described(tmp_path))
    assert told.out.splitlines()[-1].startswith("passed: 0 errors, 0 warnings, 1 that cannot be told here")


@proves("context-pack:ci:internal-references")
def test_a_finding_names_its_place_its_law_its_cause_and_its_cure(tmp_path: Path) -> None:
    done = lint(tmp_path, changed("/tooling_layer/permissions/0/adapter_id", "adp_order"))
    assert done.status == REFUSED
    lines = done.out.splitlines()
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
    done = lint(tmp_path, text.encode(), name="pack.yaml")
    assert done.status == REFUSED
    row = text.splitlines().index("  - allowed_outcomes:") + 1
    found = [line for line in done.out.splitlines() if "decision_below_tool" in line]
    line = int(found[0].split("pack.yaml:")[1].split(":")[0])
    assert text.splitlines()[line - 1].strip() == "approval_mode: network"
    assert line > row


def test_a_pack_is_read_from_a_pipe(tmp_path: Path) -> None:
    done = ctx("lint", "-", cwd=tmp_path, input=json.dumps(EXAMPLE).encode())
    assert done.status == 0
    broken = ctx("lint", "-", cwd=tmp_path, input=b"{")
    assert broken.status == REFUSED
    assert "Traceback" not in broken.err


def test_json_says_the_same_to_programs(tmp_path: Path) -> None:
    done = lint(tmp_path, changed("/pack_meta/ttl_seconds", "long"), "--json")
    assert done.status == REFUSED
    answer: dict[str, Any] = json.loads(done.out)
    assert answer["passed"] is False
    assert answer["not_run"] == ["integrity", "policy", "risk", "tenancy", "replay", "evaluation", "security"]
    (finding,) = answer["findings"]
    assert (finding["code"], finding["at"], finding["severity"]) == (
        *("schema_type_wrong", "/pack_meta/ttl_seconds", "error"),
    )
    assert finding["line"] > 1


def test_sarif_is_what_code_hosts_read(tmp_path: Path) -> None:
    done = lint(tmp_path, changed("/pack_meta/ttl_seconds", 0), "--sarif")
    assert done.status == REFUSED
    document = json.loads(done.out)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {law.code for law in EVERY_LAW}
    (result,) = run["results"]
    where = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("schema_value_wrong", "error")
    assert where["artifactLocation"]["uri"] == "pack.json"
    assert where["region"]["startLine"] > 1


@pytest.mark.parametrize("code", ["schema_part_missing", "rule_unreachable", "secret_present"])
def test_a_code_is_explained_by_its_law(tmp_path: Path, code: str) -> None:
    done = ctx("lint", "--explain", code, cwd=tmp_path)
    assert done.status == 0
    (law,) = [one for one in EVERY_LAW if one.code == code]
    assert law.text in done.out


def test_an_unknown_code_and_no_pack_at_all_are_answered_with_a_way_out(tmp_path: Path) -> None:
    unknown = ctx("lint", "--explain", "secret_presnt", cwd=tmp_path)
    assert unknown.status == NOT_FOUND
    assert "did you mean secret_present?" in unknown.err
    nothing = ctx("lint", cwd=tmp_path)
    assert nothing.status == USAGE
    assert "no PACK was named" in nothing.err


def test_overlays_are_applied_and_each_change_is_told_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "eu.json").write_bytes(msgspec.json.encode(overlay(((f"{GATE}/when", {">": [VAR, 500]}),))))
    done = lint(tmp_path, EXAMPLE, "--overlay", "eu.json")
    assert done.status == 0
    assert "overlay ov.staging@1.0.0: approval gate GATE_FINANCE_APPROVAL holds in more cases (narrows)" in done.out
    (tmp_path / "bad.json").write_bytes(msgspec.json.encode(overlay(WIDENING[0])))
    wide = lint(tmp_path, EXAMPLE, "--overlay", "bad.json")
    assert wide.status == REFUSED
    assert "overlay_widens" in wide.err
    assert "holds in fewer cases" in wide.err


@pytest.mark.parametrize("what", ["--overlay", "--environment", "--against"])
def test_a_description_of_the_wrong_form_is_refused_with_its_place(tmp_path: Path, what: str) -> None:
    (tmp_path / "other.json").write_text('{\n  "roles": 3,\n  "order": "first"\n}')
    done = lint(tmp_path, EXAMPLE, what, "other.json")
    assert done.status == REFUSED
    assert "other.json:" in done.err or "the old pack:" in done.err
    assert "Traceback" not in done.err


@proves("context-pack:contract-meta:name-is-stable")
def test_a_version_number_that_promises_too_little_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    tighter = {"at": "/policy_layer/approval_gates/0/when", "value": {">": [VAR, 1000]}}

    def step(version: str, *changes: dict[str, Any]) -> Result:
        number = {"at": "/pack_meta/pack_version", "value": version}
        return lint(tmp_path, with_changes([number, *changes]), "--against", "old.json")

    assert step("1.0.1", tighter).status == REFUSED
    assert "a patch version, and the change is minor" in step("1.0.1", tighter).err
    fine = step("1.1.0", tighter)
    assert fine.status == 0
    assert "version class: minor" in fine.out
    assert "policy_layer: approval gate GATE_FINANCE_APPROVAL holds in more cases" in fine.out
    assert step("1.0.0", tighter).status == REFUSED
    renamed = step("2.0.0", {"at": "/pack_meta/pack_id", "value": "ctxpack.other"})
    assert renamed.status == REFUSED
    assert "reject" in renamed.err
    unsafe = step("2.0.0", {"at": "/tooling_layer/permissions/2/requires_approval_gate"})
    assert unsafe.status == REFUSED
    assert "version class: reject" in unsafe.out
    assert lint(tmp_path, EXAMPLE, "--against", "old.json").status == 0


def test_a_number_that_is_too_small_holds_no_finding_back(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    new = with_changes([{"at": "/policy_layer/policy_bundles/0/policy_dsl/rules/0/rationale"}, *_TIGHTER])
    for form in ((), ("--json",), ("--sarif",)):
        done = lint(tmp_path, new, "--against", "old.json", *form)
        assert done.status == REFUSED
        assert "rule_without_rationale" in done.out
        assert "a patch version, and the change is minor" in done.err
        assert "Traceback" not in done.err
    told = json.loads(lint(tmp_path, new, "--against", "old.json", "--json").out)
    assert (told["passed"], told["version_class"]) == (False, "minor")
    assert "a patch version" in told["version_refused"]


_TIGHTER: tuple[dict[str, Any], ...] = (
    {"at": "/policy_layer/approval_gates/0/when", "value": {">": [VAR, 1000]}},
    {"at": "/pack_meta/pack_version", "value": "1.0.1"},
)


def test_the_version_is_that_of_the_pack_without_its_overlays(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(EXAMPLE))
    refund = "/tooling_layer/permissions/adp_payments.issue_refund"
    (tmp_path / "off.json").write_bytes(msgspec.json.encode(overlay(((refund, None),))))
    ungated = with_changes([{"at": "/tooling_layer/permissions/2/requires_approval_gate"}])
    new = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}], ungated)
    done = lint(tmp_path, new, "--overlay", "off.json", "--against", "old.json")
    assert "version class: reject" in done.out


DEEP = b'{"a":' * 300 + b"1" + b"}" * 300


@proves("context-pack:definition:json-document")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(
            ("pack.json", data)
            for data in (b"", b"{", b"not json", b'{"a": 1, "a": 2}', b"\xef\xbb\xbf{}", b'{"a": "\xff"}')
        ),
        *(
            ("pack.json", data)
            for data in (b'{"a": "\x00"}', DEEP, b"[" * 100_000, b"{} {}", b'{"a": NaN}', b'{"a": 1e999}')
        ),
        *(
            ("pack.yaml", data)
            for data in (b"", b"a: [", b"a: !!python/name:os.system x", b"a: &x 1\nb: *x", b"a: 1\na: 2")
        ),
        *(("pack.yaml", data) for data in (b"\xff\xfe", b"[" * 100_000, b"a: 1\n---\nb: 1", b"a: \x00")),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_refused_with_its_place_and_no_traceback(tmp_path: Path, name: str, data: bytes) -> None:
    done = lint(tmp_path, data, name=name)
    assert done.status == REFUSED
    assert name in done.err
    assert "line " in done.err
    assert "Traceback" not in done.err
    told = lint(tmp_path, data, "--json", name=name)
    assert json.loads(told.err or told.out)


@proves("context-pack:definition:json-document", "context-pack:gates:schema-layers-present")
@pytest.mark.parametrize("value", [[], "text", 3, None, True, {}])
def test_a_document_that_is_no_pack_is_a_finding(tmp_path: Path, value: object) -> None:
    done = lint(tmp_path, value)
    assert done.status == REFUSED
    assert "pack.json:1:1" in done.out
    assert "schema/schema_" in done.out


def test_a_file_that_is_not_there_and_a_folder_are_not_found(tmp_path: Path) -> None:
    assert ctx("lint", "nothing.json", cwd=tmp_path).status == NOT_FOUND
    folder = ctx("lint", str(tmp_path), cwd=tmp_path)
    assert folder.status == NOT_FOUND
    assert "Traceback" not in folder.err


def test_fifty_megabytes_are_refused_at_once(tmp_path: Path) -> None:
    for name in ("pack.json", "pack.yaml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(50 << 20)
        done = ctx("lint", name, cwd=tmp_path)
        assert done.status == REFUSED
        assert "author_file_too_large" in done.err


HOSTILE: tuple[Any, ...] = (
    {"and": [{"nosuch": [1]}]},
    {"==": [{"preserve": {}}, 1]},
    {"and": [{">": [{"var": f"request.context.v{n}"}, {"var": f"request.context.v{n + 1}"}]} for n in range(30)]},
    {"or": [{"and": [{"==": [{"var": f"request.context.v{n % 9}"}, m]} for n in range(9)]} for m in range(60)]},
    {"reduce": [{"var": "request.context.items"}, {"+": [{"var": "accumulator"}, {"var": "current"}]}, 0]},
    {"map": [{"map": [{"map": [{"var": "request.context.items"}, {"var": ""}]}, {"var": ""}]}, {"var": ""}]},
)


def deep(depth: int) -> Any:  # noqa: ANN401  any JSON
    expression: Any = {"var": "request.context.refund_amount"}
    for _ in range(depth):
        expression = {"!": [expression]}
    return expression


@pytest.mark.parametrize(
    "expression", [*HOSTILE, deep(33), deep(100), {"and": [True] * 3000}], ids=lambda one: str(one)[:40]
)
def test_a_condition_that_never_ends_or_that_nobody_knows_is_told_in_time(tmp_path: Path, expression: object) -> None:
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules"
    done = lint(tmp_path, with_changes([{"at": f"{rules}/{n}/if", "value": expression} for n in range(2)]))
    assert done.status in (0, REFUSED)
    assert "Traceback" not in done.err
    told = ("condition_invalid", "rule_unreachable", "required_evidence_unobtainable")
    assert any(code in done.out for code in told)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("4111 1111 1111 1111", "payment card number"),
        ("378282246310005", "payment card number"),
        ("2341 2341 2346", "Aadhaar number"),
        ("ABCPE1234F", "PAN of a taxpayer"),
        ("536-22-8726", "social security number"),
        ("GB82 WEST 1234 5698 7654 32", "bank account number"),
    ],
)
@proves("context-pack:gates:security-no-pii-dumps")
def test_numbers_of_cards_accounts_and_people_are_found_and_not_repeated(tmp_path: Path, text: str, kind: str) -> None:
    done = lint(tmp_path, changed("/tone_and_comms/do/0", f"remember {text}, please"))
    assert done.status == REFUSED
    assert f"this looks like personal data: {kind}" in done.out
    assert text not in done.out


def test_a_narrowing_overlay_in_yaml_is_read(tmp_path: Path) -> None:
    document = msgspec.to_builtins(overlay(NARROWING[0]))
    (tmp_path / "eu.yaml").write_text(yaml.safe_dump(document))
    assert lint(tmp_path, EXAMPLE, "--overlay", "eu.yaml").status == 0
