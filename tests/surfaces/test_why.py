"""`ctx why`: what had a say, and what would flip it."""

import json
from pathlib import Path

from tests.surfaces.running import ctx
from tests.surfaces.sample import one_error_line
from tests.unit.app.casing import SHOWN, pack_file, written

REFUND = "adp_payments.issue_refund"
NOT_FOUND = 13


def test_it_is_told_for_people_and_for_machines(tmp_path: Path) -> None:
    pack_file(tmp_path)
    written(tmp_path, "request.json", SHOWN)
    asked = ("why", "pack.json", REFUND, "--request", "request.json", "--safety-mode", "read_only")
    shown = ctx(*asked, cwd=tmp_path)
    assert (shown.status, shown.err) == (0, "")
    first, *rest = shown.out.splitlines()
    assert first.startswith(f"tool {REFUND} is out, by stage tools: above_ceiling: ")
    assert rest[-3:-1] == ["It would be in with:", '  safety_mode="destructive"']
    assert rest[-1].startswith("verified among ")
    answer = json.loads(ctx(*asked, "--json", cwd=tmp_path).out)
    assert answer["flips"] == [
        [{"name": "safety_mode", "at": "/run_context/safety_mode", "change": 'safety_mode="destructive"'}]
    ]
    assert (answer["item"]["inside"], answer["complete"]) == (False, True)


def test_a_name_of_nothing_is_not_found(tmp_path: Path) -> None:
    pack_file(tmp_path)
    written(tmp_path, "request.json", SHOWN)
    done = ctx("why", "pack.json", "adp_payments.issue_refnd", "--request", "request.json", cwd=tmp_path)
    assert REFUND in one_error_line(done, NOT_FOUND, "why_item_unknown")
