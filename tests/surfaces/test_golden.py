"""`ctx golden`: record and check cases; `ctx check` and `ctx publish` use them."""

import json
from pathlib import Path

from tests.surfaces.commands import ctx
from tests.surfaces.registries import prepared
from tests.surfaces.sample import Store, one_error_line
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import version

REFUSED, DRIFT, NOT_FOUND = 10, 12, 13


def test_what_is_recorded_is_checked_and_a_drift_is_named(tmp_path: Path) -> None:
    pack_file(tmp_path)
    (tmp_path / "golden").mkdir()
    write_json(tmp_path / "golden", "refund.json", SHOWN)
    result = ctx("golden", "check", "golden", "pack.json", cwd=tmp_path)
    expected = "not recorded refund: 'ctx golden record' writes it\n1 case, 0 drifted, 1 not recorded\n"
    assert (result.status, result.out) == (DRIFT, expected)
    result = ctx("golden", "record", "golden", "pack.json", cwd=tmp_path)
    assert (result.status, result.out) == (0, "refund: recorded\n")
    result = ctx("golden", "check", "golden", "pack.json", cwd=tmp_path)
    assert (result.status, result.out) == (0, "as recorded  refund\n1 case, 0 drifted\n")
    other = pack_file(tmp_path, {"/tooling_layer/permissions/2/allow": False}, "other.json")
    result = ctx("golden", "check", "golden", other, cwd=tmp_path)
    assert result.status == DRIFT
    assert "drifted      refund  at tools\n    - tool adp_payments.issue_refund: " in result.out
    assert ctx("golden", "check", "golden", other, "--quiet", cwd=tmp_path).out == "refund\n"
    answer = json.loads(ctx("golden", "check", "golden", other, "--json", cwd=tmp_path).out)
    assert (answer["passed"], answer["cases"][0]["stage"]) == (False, "tools")
    result = ctx("golden", "record", "golden", other, cwd=tmp_path)
    assert "refund: recorded again, different from tools on\n    - tool adp_payments.issue_refund: " in result.out
    write_json(tmp_path / "golden", "other.json", put(SHOWN, {"/request/context_pack_refs/0": "ctxpack.other@1.0.0"}))
    # A case of another pack tries nothing of this one.
    for verb in ("record", "check"):
        result = ctx("golden", verb, "golden", other, cwd=tmp_path)
        assert "golden/other.json:" in one_error_line(result, REFUSED, "compile_pack_not_requested")
    write_json(tmp_path / "golden", "other.json", put(SHOWN, {"/request/input/intent": "support.unknown"}))
    result = ctx("golden", "record", "golden", other, cwd=tmp_path)
    assert "other: recorded; it is refused with compile_intent_mismatch\n" in result.out
    one_error_line(ctx("golden", "check", "none", "pack.json", cwd=tmp_path), NOT_FOUND, "document_unreadable")


def test_a_publication_asks_the_golden_cases(tmp_path: Path) -> None:
    store = Store(tmp_path)
    prepared(store.folder)
    (tmp_path / "golden").mkdir()
    write_json(tmp_path / "golden", "refund.json", SHOWN)
    write_json(tmp_path, "pack.json", version("5.0.0"))
    publish = ("publish", "ctxpack.support@5.0.0", "--golden", "golden", "--yes", "--key", "./pub.pem")
    line = one_error_line(ctx(*publish, cwd=tmp_path), REFUSED, "publish_golden_failed")
    assert "refund drifted at record" in line
    assert ctx("golden", "record", "golden", "pack.json", cwd=tmp_path).status == 0
    published = ctx(*publish, cwd=tmp_path)
    assert (published.status, "Golden cases: passed (1 as recorded)" in published.out) == (0, True)
    assert ctx("pin", "staging", "ctxpack.support@5.0.0", "--key", "./ops.pem", cwd=tmp_path).status == 0
    of_registry = ("ctxpack.support@5.0.0", "--environment", "staging")
    result = ctx("golden", "check", "golden", *of_registry, cwd=tmp_path)
    assert (result.status, result.out) == (0, "as recorded  refund\n1 case, 0 drifted\n"), result
    # Without a pack, the version that the requests name is meant.
    other = ctx("golden", "check", "golden", "--environment", "staging", cwd=tmp_path)
    assert (other.status, "ctxpack.support@1.0.0" in other.err) == (REFUSED, True), other
    document = json.loads((tmp_path / "golden" / "refund.json").read_text())
    write_json(
        tmp_path / "golden", "refund.json", put(document, {"/request/context_pack_refs/0": "ctxpack.support@5.0.0"})
    )
    assert ctx("golden", "record", "golden", "--environment", "staging", cwd=tmp_path).status == 0
    assert ctx("golden", "check", "golden", "--environment", "staging", cwd=tmp_path).status == 0
    result = ctx("show", "ctxpack.support@5.0.0", cwd=tmp_path)
    assert "golden cases: passed" in result.out
