"""`ctx lint` answers bad input with a finding or a refusal and its place, in time, without traceback."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.spec.manifest import proves
from tests.surfaces.commands import ctx
from tests.surfaces.context_packs import lint
from tests.unit.authoring.packs import ENVIRONMENT, changed, with_changes

REFUSED, NOT_FOUND = 10, 13


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (msgspec.to_builtins(ENVIRONMENT), "it describes an environment"),
        ({"model": {"identifier": "m"}, "steps": []}, "it looks like the log of a run"),
    ],
)
def test_a_file_of_another_kind_is_told_as_that(tmp_path: Path, document: object, what: str) -> None:
    result = lint(tmp_path, document)
    assert result.status == REFUSED
    assert f"not_a_context_pack: pack.json: {what}, not a context pack ('ctx " in result.err


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
    lint_result = lint(tmp_path, data, name=name)
    assert lint_result.status == REFUSED
    assert name in lint_result.err
    assert "line " in lint_result.err
    assert "Traceback" not in lint_result.err
    result = lint(tmp_path, data, "--json", name=name)
    assert json.loads(result.err or result.out)


@proves("context-pack:definition:json-document", case="[]")
@proves("context-pack:gates:schema-layers-present", case="{}")
@pytest.mark.parametrize("value", [[], "text", 3, None, True, {}], ids=repr)
def test_a_document_that_is_no_pack_is_a_finding(tmp_path: Path, value: object) -> None:
    result = lint(tmp_path, value)
    assert result.status == REFUSED
    assert "pack.json:1:1" in result.out
    assert "schema/schema_" in result.out


def test_a_file_that_is_not_there_and_a_folder_are_not_found(tmp_path: Path) -> None:
    assert ctx("lint", "nothing.json", cwd=tmp_path).status == NOT_FOUND
    folder = ctx("lint", str(tmp_path), cwd=tmp_path)
    assert folder.status == NOT_FOUND
    assert "Traceback" not in folder.err


def test_fifty_megabytes_are_refused_at_once(tmp_path: Path) -> None:
    for name in ("pack.json", "pack.yaml"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(50 << 20)
        result = ctx("lint", name, cwd=tmp_path)
        assert result.status == REFUSED
        assert "author_file_too_large" in result.err


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
    "expression", [*HOSTILE, deep(33), deep(100), {"and": [True] * 3000}], ids=lambda value: str(value)[:40]
)
def test_a_condition_that_never_ends_or_that_nobody_knows_is_told_in_time(tmp_path: Path, expression: object) -> None:
    rules = "/policy_layer/policy_bundles/0/policy_dsl/rules"
    result = lint(tmp_path, with_changes([{"at": f"{rules}/{n}/if", "value": expression} for n in range(2)]))
    assert result.status in (0, REFUSED)
    assert "Traceback" not in result.err
    codes = ("condition_invalid", "rule_unreachable", "required_evidence_unobtainable")
    assert any(code in result.out for code in codes)


@proves("context-pack:gates:security-no-pii-dumps")
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
def test_numbers_of_cards_accounts_and_people_are_found_and_not_repeated(tmp_path: Path, text: str, kind: str) -> None:
    result = lint(tmp_path, changed("/tone_and_comms/do/0", f"remember {text}, please"))
    assert result.status == REFUSED
    assert f"this looks like personal data: {kind}" in result.out
    assert text not in result.out
