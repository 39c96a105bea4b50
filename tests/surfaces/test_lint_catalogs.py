"""`ctx lint --catalog`: a pack is linted with the decision catalogs that its rules are bound to."""

import json
from pathlib import Path

from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.model.keys import OWNER
from tests.surfaces.commands import ctx
from tests.surfaces.context_packs import answer, lint
from tests.surfaces.registries import at_office, key_file
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.desk import CATALOG, ISSUER, ROLES
from tests.unit.trust.world import key_of

REFUSED, NOT_FOUND, USAGE = 10, 13, 2
BINDING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding"
BOUND = with_changes([{"at": BINDING, "value": "support.refund.review"}])
SHARED = "decision-catalog.support@2.1.0"


def catalog(folder: Path, **changes: object) -> str:
    (folder / "shared.json").write_text(json.dumps({**CATALOG, **changes}), encoding="utf-8")
    return "shared.json"


def test_a_rule_may_be_bound_to_a_decision_of_a_catalog_in_a_file(tmp_path: Path) -> None:
    alone = lint(tmp_path, BOUND)
    assert alone.status == REFUSED
    assert "decision_binding_unknown" in alone.out
    assert lint(tmp_path, BOUND, "--catalog", catalog(tmp_path)).status == 0
    report, _ = answer("lint", "pack.json", "--catalog", "shared.json", cwd=tmp_path, status=0)
    assert (report["passed"], report["catalogs"]) == (True, [SHARED])


def test_what_is_no_catalog_or_contradicts_the_pack_is_refused_with_its_name(tmp_path: Path) -> None:
    other = lint(tmp_path, EXAMPLE, "--catalog", "pack.json")
    assert (other.status, "ctxpack.support@1.0.0: it is no decision catalog" in other.err) == (REFUSED, True)
    own = {**EXAMPLE["decision_layer"]["decision_specs"][0], "owner_role": "somebody"}
    against = lint(tmp_path, EXAMPLE, "--catalog", catalog(tmp_path, decision_specs=[own], task_templates=[]))
    assert (against.status, "say different things" in against.err) == (REFUSED, True)
    spoiled = lint(tmp_path, EXAMPLE, "--catalog", catalog(tmp_path, catalog_version=7))
    assert (spoiled.status, "shared.json: /catalog_version" in spoiled.err) == (REFUSED, True)


def test_a_pack_of_the_wrong_form_is_told_its_own_findings(tmp_path: Path) -> None:
    result = lint(tmp_path, {"pack_meta": {}}, "--catalog", catalog(tmp_path))
    assert (result.status, "schema/" in result.out) == (REFUSED, True)


def test_a_pack_is_recorded_and_published_with_a_catalog_of_the_registry(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)))
    (tmp_path / "pack.json").write_text(json.dumps(BOUND), encoding="utf-8")
    for name in ROLES:
        key_file(tmp_path, name)
    with at_office(tmp_path) as here:
        here.trust("root", OWNER)
        trusting = here.desk.keys.key_trust
        here.change_keys(*(trusting(key_of(name).public_key, ISSUER, roles=roles) for name, roles in ROLES.items()))
        here.release(CATALOG)
    assert lint(tmp_path, BOUND, "--catalog", SHARED).status == 0
    assert lint(tmp_path, BOUND, "--catalog", "decision-catalog.other@1.0.0").status == NOT_FOUND
    record = ("lint", "pack.json", "--record", "--key", "./author.pem")
    unpublished = ctx(*record, "--catalog", catalog(tmp_path), cwd=tmp_path)
    assert (unpublished.status, "publish it, then name its version" in unpublished.err) == (USAGE, True)
    result = ctx(*record, "--catalog", SHARED, cwd=tmp_path)
    assert result.status == 0, result.err
    with at_office(tmp_path) as here:
        here.review_all("ctxpack.support@1.0.0")
        here.sign("ctxpack.support@1.0.0")
    published = ctx("publish", "pack.json", "--yes", "--key", "./pub.pem", cwd=tmp_path)
    assert published.status == 0, published.err
