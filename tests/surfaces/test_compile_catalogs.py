"""`--catalog` with compile, why, golden and check, as with lint; and the catalogs of a published pack."""

import json
from pathlib import Path

import pytest

from contextplane.model.keys import OWNER
from tests.surfaces.commands import Result, ctx
from tests.surfaces.registries import KEYS, at_office, key_file
from tests.surfaces.sample import Store, one_error_line
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import CATALOG, ISSUER, ROLES
from tests.unit.trust.world import key_of

REFUSED, USAGE = 10, 2
BINDING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding"
SHARED = "decision-catalog.support@2.1.0"
PACK = "ctxpack.support@1.0.0"
NAMING = {"/request/context_pack_refs": [PACK, SHARED]}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A pack that uses a catalog, the catalog, a request that names both, and it as a golden case."""
    pack_file(tmp_path, {BINDING: "support.refund.review"})
    write_json(tmp_path, "shared.json", CATALOG)
    write_json(tmp_path, "request.json", put(SHOWN, NAMING))
    (tmp_path / "golden").mkdir()
    write_json(tmp_path / "golden", "refund.json", put(SHOWN, NAMING))
    return tmp_path


def output_of(result: Result) -> str:
    assert (result.status, result.err) == (0, ""), result
    return result.out


def test_a_pack_in_a_file_is_compiled_asked_and_checked_with_its_catalogs(files: Path) -> None:
    compile_ = ("compile", "pack.json", "--request", "request.json")
    one_error_line(ctx(*compile_, cwd=files), REFUSED, "compile_pack_not_sound")
    catalog = ("--catalog", "shared.json")
    context = json.loads(output_of(ctx(*compile_, *catalog, "--json", cwd=files)))
    assert [entry["ref"] for entry in context["context_ledger"]["lineage"]] == [PACK, SHARED]
    why = (
        "why",
        "pack.json",
        "adp_payments.issue_refund",
        "--request",
        "request.json",
        "--set",
        'safety_mode="read_only"',
    )
    assert 'safety_mode="destructive"' in output_of(ctx(*why, *catalog, cwd=files))
    output_of(ctx("golden", "record", "golden", "pack.json", *catalog, cwd=files))
    assert "0 drifted" in output_of(ctx("golden", "check", "golden", "pack.json", *catalog, cwd=files))
    alone = json.loads(ctx("check", "pack.json", "--golden", "golden", "--json", cwd=files).out)
    with_catalog = json.loads(ctx("check", "pack.json", "--golden", "golden", *catalog, "--json", cwd=files).out)
    verdicts = [{line["step"]: line["verdict"] for line in report["lines"]} for report in (alone, with_catalog)]
    assert [verdict["references"] for verdict in verdicts] == ["failed", "passed"]
    assert [verdict["golden"] for verdict in verdicts] == ["unknown", "passed"]


@pytest.mark.parametrize("verb", ["compile", "golden"])
def test_the_catalogs_of_a_published_version_are_not_chosen(files: Path, verb: str) -> None:
    args = ("check", "golden", PACK) if verb == "golden" else (PACK, "--request", "request.json")
    result = ctx(verb, *args, "--environment", "prod", "--catalog", "shared.json", cwd=files)
    one_error_line(result, USAGE, "usage")


def test_a_published_pack_keeps_its_catalogs_and_is_compiled_with_them(files: Path) -> None:
    store = Store(files)
    for name in KEYS:
        key_file(files, name)
    with at_office(store.folder) as here:
        here.trust("root", OWNER)
        trusting = here.desk.keys.key_trust
        here.change_keys(*(trusting(key_of(name).public_key, ISSUER, roles=roles) for name, roles in ROLES.items()))
        here.release(CATALOG)
    output_of(ctx("golden", "record", "golden", "pack.json", "--catalog", SHARED, cwd=files))
    record = ctx("lint", "pack.json", "--record", "--catalog", SHARED, "--key", "./author.pem", cwd=files)
    assert record.status == 0, record
    with at_office(store.folder) as here:
        here.review_all(PACK)
        here.sign(PACK)
    publish = ("publish", PACK, "--golden", "golden", "--yes", "--key", "./pub.pem")
    assert "Golden cases: passed (1 as recorded)" in output_of(ctx(*publish, cwd=files))
    again = json.loads(output_of(ctx(*publish, "--json", cwd=files)))
    assert (again["changed"], again["golden"]) == (False, "passed")
    with at_office(store.folder) as here:
        here.pin("prod", PACK)
        here.pin("prod", SHARED)
        digest = str(here.desk.artifact(here.desk.candidate_digest(PACK)).digest)
    assert f"catalogs    {SHARED}  sha256:" in output_of(ctx("show", PACK, cwd=files))
    answer = json.loads(output_of(ctx("show", PACK, "--json", cwd=files)))
    assert [catalog["ref"] for catalog in answer["catalogs"]] == [SHARED]
    of_registry = ("--request", "request.json", "--environment", "prod", "--json")
    context = json.loads(output_of(ctx("compile", PACK, *of_registry, cwd=files)))
    assert [entry["ref"] for entry in context["context_ledger"]["lineage"]] == [PACK, SHARED]
    assert context["context_ledger"]["lineage"][0]["digest"] == digest
    write_json(files / "golden", "alone.json", SHOWN)
    recorded = output_of(ctx("golden", "record", "golden", PACK, "--environment", "prod", cwd=files))
    assert recorded == "alone: recorded\nrefund: as it was recorded\n"
    file = json.loads(
        output_of(ctx("compile", "pack.json", "--request", "request.json", "--catalog", SHARED, "--json", cwd=files))
    )
    assert file["context_ledger"]["compiled_context_hash"] == context["context_ledger"]["compiled_context_hash"]
