"""`ctx export|import` of a published version, `ctx push|pull`, and what the receiving store does with it."""

import json
import re
from pathlib import Path

import pytest

from contextplane.adapters.system import SystemClock
from contextplane.app.settings import Settings
from contextplane.model.keys import OWNER
from contextplane.registry.bundle import RegistryBundle
from tests.postgres import shared_url
from tests.surfaces.commands import Result, ctx
from tests.surfaces.registries import at_office, key_file, prepared
from tests.unit.compiler.case_files import SHOWN
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import ISSUER, ROLES, desk_in
from tests.unit.trust.world import key_of

PAGE = (Path(__file__).parents[2] / "docs" / "mirrors.md").read_text(encoding="utf-8")

PACK = "ctxpack.support@1.1.0"
FOUNDER = key_of("root").public_key.key_id


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source", tmp_path / "target"
    for folder in (source, target):
        folder.mkdir()
        assert ctx("init", cwd=folder).status == 0
    prepared(source)
    return source, target


def ok(*args: str, cwd: Path) -> Result:
    result = ctx(*args, cwd=cwd)
    assert result.status == 0, result.err
    return result


def code_of(*args: str, cwd: Path) -> str:
    result = ctx(*args, "--json", cwd=cwd)
    assert result.status != 0
    return str(json.loads(result.err.splitlines()[-1])["error"]["code"])


def test_a_version_goes_through_a_file_and_is_listed_shown_verified_and_kept(stores: tuple[Path, Path]) -> None:
    source, target = stores
    assert "new runs get it in prod" in ok("export", PACK, "-o", "pack.json", cwd=source).out
    assert "already exists" in ok("export", PACK, "-o", "pack.json", cwd=source).out
    file = str(source / "pack.json")
    refused = ctx("import", file, cwd=target)
    assert (refused.status, FOUNDER in refused.err, "trust_root_missing" in refused.err) == (11, True, True)
    assert "mirrored" in ok("import", file, "--trust-root", FOUNDER, cwd=target).out
    assert "already mirrored" in ok("import", file, cwd=target).out
    assert "mirrored from contextplane.registry/" in ok("packs", cwd=target).out
    (listed,) = json.loads(ok("packs", "--json", cwd=target).raw)["mirrored"]
    assert (listed["ref"], listed["pinned_in"], listed["problem"]) == (PACK, ["prod"], None)
    assert "mirrored    from contextplane.registry/" in ok("show", PACK, cwd=target).out
    assert json.loads(ok("show", PACK, "--json", cwd=target).raw)["digest"] == listed["digest"]
    assert "verified" in ok("verify", PACK, cwd=target).out
    ok("gc", "--grace", "0s", cwd=target)
    ok("fsck", cwd=target)
    assert "verified" in ok("verify", PACK, cwd=target).out


def test_acts_on_a_mirrored_version_are_refused(stores: tuple[Path, Path]) -> None:
    source, target = stores
    ok("pull", str(source), PACK, "--trust-root", FOUNDER, cwd=target)
    key = key_file(target, "root")
    with at_office(target) as here:
        here.trust("root", "owner")
    for act in (
        ("pin", "prod", PACK),
        ("revoke", PACK, "--reason", "x", "--yes"),
        ("deprecate", PACK, "--reason", "x"),
        ("review", PACK, "--role", "security", "--approve", "--reason", "x", "--yes"),
    ):
        assert code_of(*act, "--key", key, cwd=target) == "version_is_mirrored", act


def test_push_and_pull_between_folders(stores: tuple[Path, Path]) -> None:
    source, target = stores
    assert code_of("push", str(target), PACK, cwd=source) == "trust_root_missing"
    assert "mirrored" in ok("push", str(target), "ctxpack.support@prod", "--trust-root", FOUNDER, cwd=source).out
    assert "already mirrored" in ok("pull", str(source / ".ctx"), PACK, cwd=target).out
    assert code_of("pull", str(source), "ctxpack.support@9.9.9", cwd=target) == "version_not_found"


def test_a_version_goes_through_a_pipe_and_so_do_packs(stores: tuple[Path, Path]) -> None:
    source, target = stores
    written = ok("export", PACK, "-o", "-", cwd=source)
    assert "to standard output" in written.err
    ok("export", PACK, "-o", "pack.json", cwd=source)
    assert written.raw == (source / "pack.json").read_bytes()
    taken = ctx("import", "-", "--trust-root", FOUNDER, cwd=target, input=written.raw)
    assert (taken.status, "mirrored" in taken.out) == (0, True), taken.err
    assert "already mirrored" in ctx("import", "-", cwd=target, input=written.raw).out
    cut = ctx("import", "-", "--json", cwd=target, input=written.raw[:-1])
    assert (cut.status, json.loads(cut.err)["error"]["code"]) == (10, "bundle_invalid")
    for data in (b"", b"{", b'{"checkpoint"'):
        refused = ctx("import", "-", "--json", cwd=target, input=data)
        assert json.loads(refused.err)["error"]["code"] == "archive_invalid"


def test_a_mirrored_version_has_its_history(stores: tuple[Path, Path]) -> None:
    source, target = stores
    with at_office(source) as here:
        trusting = here.desk.keys.key_trust
        here.change_keys(trusting(key_of("pub").public_key, ISSUER, roles=ROLES["pub"], name="paula"))
    ok("pull", str(source), PACK, "--trust-root", FOUNDER, cwd=target)
    there = json.loads(ok("log", PACK, "--json", cwd=source).raw)
    here_too = json.loads(ok("log", PACK, "--json", cwd=target).raw)
    assert here_too.pop("mirrored_from").startswith("contextplane.registry/")
    assert here_too == there
    shown = ok("log", PACK, cwd=target).out
    assert " paula " in shown
    assert "mirrored from contextplane.registry/" in shown.splitlines()[-1]
    assert ok("log", PACK, "--quiet", cwd=target).out == ok("log", PACK, "--quiet", cwd=source).out
    assert code_of("log", "ctxpack.support@9.9.9", cwd=target) == "version_not_found"


def test_a_mirrored_version_goes_on_to_a_third_store_as_it_came(stores: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = stores
    third = tmp_path / "third"
    third.mkdir()
    ok("init", cwd=third)
    ok("export", PACK, "-o", "first.json", cwd=source)
    ok("import", str(source / "first.json"), "--trust-root", FOUNDER, cwd=target)
    again = ok("export", PACK, "-o", "second.json", cwd=target)
    assert "its log has" in again.out
    assert (target / "second.json").read_bytes() == (source / "first.json").read_bytes()
    assert code_of("export", PACK, "--environment", "dev", "-o", "x", cwd=target) == "mirror_incomplete"
    assert code_of("export", PACK, "--since", "3", "-o", "x", cwd=target) == "mirror_incomplete"
    assert code_of("pull", str(target), PACK, cwd=third) == "trust_root_missing"
    ok("pull", str(target), PACK, "--trust-root", FOUNDER, cwd=third)
    assert "verified" in ok("verify", PACK, cwd=third).out
    assert code_of("push", str(source), PACK, cwd=third) == "bundle_invalid"
    (kept,) = (path for path in (target / ".ctx" / "objects").glob("??/*") if path.stat().st_size > 10_000)
    kept.chmod(0o644)
    kept.write_bytes(kept.read_bytes().replace(b'"since":0', b'"since":1'))
    assert code_of("export", PACK, "-o", "third.json", cwd=target) == "object_corrupt"


@pytest.mark.parametrize("shared", ["both in one database", "one in a file"])
def test_push_and_pull_with_a_store_in_postgresql(tmp_path: Path, shared: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    database = {"CTX_DATABASE_URL": shared_url()}
    here = database if shared == "both in one database" else {}
    other = {} if here else {"CTX_OTHER_DATABASE_URL": shared_url()}
    for folder, env in ((source, here), (target, database)):
        folder.mkdir()
        assert ctx("init", cwd=folder, env=env).status == 0
    with desk_in(Settings(cwd=str(source), database_url=here.get("CTX_DATABASE_URL")), SystemClock()) as office:
        office.trust("root", OWNER)
        trusting = office.desk.keys.key_trust
        office.change_keys(*(trusting(key_of(name).public_key, ISSUER, roles=roles) for name, roles in ROLES.items()))
        office.pin("prod", office.release())
    first = "ctxpack.support@1.0.0"
    if not here:
        refused = ctx("push", str(target), first, "--trust-root", FOUNDER, cwd=source)
        assert (refused.status, "CTX_OTHER_DATABASE_URL" in refused.err) == (14, True)
    pushed = ctx("push", str(target), first, "--trust-root", FOUNDER, cwd=source, env={**here, **other})
    assert (pushed.status, "mirrored" in pushed.out) == (0, True), pushed.err
    assert "mirrored from" in ctx("packs", cwd=target, env=database).out
    back = {**database, "CTX_OTHER_DATABASE_URL": ""}
    pulled = ctx("pull", str(source), first, cwd=target, env=back)
    assert (pulled.status, "already mirrored" in pulled.out) == (0, True), pulled.err


def test_options_that_do_not_belong_together(stores: tuple[Path, Path]) -> None:
    source, _ = stores
    assert ctx("export", PACK, "ctxpack.support@1.0.0", "-o", "x", cwd=source).status == 2
    assert ctx("export", "3fa9", "-o", "x", "--since", "3", cwd=source).status == 2
    assert ctx("export", PACK, "-o", "x", "--since", "-3", cwd=source).status == 2
    assert ctx("export", PACK, "-o", ".ctx/x", cwd=source).status != 0
    (source / "other.json").write_text("{}")
    assert code_of("export", PACK, "-o", "other.json", cwd=source) == "archive_target_exists"


def test_the_command_compiles_a_mirrored_version_to_the_same_hash(stores: tuple[Path, Path]) -> None:
    source, target = stores
    ok("pull", str(source), PACK, "--trust-root", FOUNDER, cwd=target)
    request = put(SHOWN, {"/request/context_pack_refs": [PACK]})
    answers = []
    for folder in stores:
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        named = ok("compile", PACK, "--environment", "prod", "--request", "request.json", "--json", cwd=folder)
        pinned = ok(
            "compile", "ctxpack.support", "--environment", "prod", "--request", "request.json", "--json", cwd=folder
        )
        answers += [json.loads(named.raw), json.loads(pinned.raw)]
    assert answers.count(answers[0]) == len(answers)


def test_the_page_has_every_member_of_a_bundle_and_every_code(tmp_path: Path) -> None:
    table = PAGE.partition("## The file")[2]
    assert {*re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)} == {*RegistryBundle.__struct_fields__}
    codes = re.findall(r"\(`([a-z]+_[a-z_]+)`\)", PAGE)
    assert len(codes) > 8
    assert [code for code in codes if ctx("explain", code, cwd=tmp_path).status != 0] == []
