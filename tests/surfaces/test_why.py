"""`ctx why`: what decided an item, and what would flip the decision."""

import json
from pathlib import Path

import pytest

from tests.surfaces.commands import ctx
from tests.surfaces.sample import one_error_line
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json

REFUND = "adp_payments.issue_refund"
NOT_FOUND = 13


def test_it_is_told_for_people_and_for_machines(tmp_path: Path) -> None:
    pack_file(tmp_path)
    write_json(tmp_path, "request.json", SHOWN)
    command = ("why", "pack.json", REFUND, "--request", "request.json", "--safety-mode", "read_only")
    result = ctx(*command, cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    *lines, tried = result.out.splitlines()
    assert lines == [
        f"tool {REFUND} is out, by stage tools",
        "  above_ceiling: is destructive, and the run's ceiling is read_only",
        "It would be in with:",
        '  safety_mode="destructive"',
    ]
    assert tried.startswith("found by compiling ")
    answer = json.loads(ctx(*command, "--json", cwd=tmp_path).out)
    assert answer["flips"] == [
        [{"name": "safety_mode", "at": "/run_context/safety_mode", "change": 'safety_mode="destructive"'}]
    ]
    assert (answer["item"]["inside"], answer["complete"]) == (False, True)


@pytest.mark.parametrize(
    ("item", "first", "turned"),
    [
        (
            "GATE_FINANCE_APPROVAL",
            "gate GATE_FINANCE_APPROVAL is active, by stage tools",
            "It would not be active with:",
        ),
        ("request", "decision request is allowed, by stage policy", "It would be denied with:"),
        (
            "R_REFUND_REQUIRES_IDV",
            "rule POLICY_RETURNS_V4#R_REFUND_REQUIRES_IDV is in effect, by stage policy",
            "It would be reversed with:",
        ),
        ("biz_summary", "block biz_summary is in, by stage budget", "No change of a request makes it out."),
    ],
)
def test_each_kind_is_told_in_words_of_its_own(tmp_path: Path, item: str, first: str, turned: str) -> None:
    pack_file(tmp_path)
    write_json(tmp_path, "request.json", SHOWN)
    lines = ctx("why", "pack.json", item, "--request", "request.json", cwd=tmp_path).out.splitlines()
    assert lines[0] == first
    assert turned in lines


def test_a_name_of_nothing_is_not_found(tmp_path: Path) -> None:
    pack_file(tmp_path)
    write_json(tmp_path, "request.json", SHOWN)
    result = ctx("why", "pack.json", "adp_payments.issue_refnd", "--request", "request.json", cwd=tmp_path)
    assert REFUND in one_error_line(result, NOT_FOUND, "why_item_unknown")
