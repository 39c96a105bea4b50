"""Names in the registry: versions with any id, keys with the names that people gave them."""

import json
from pathlib import Path

import pytest

from contextplane.app.registry.keys import keyring_name
from contextplane.model.catalog import IndexedObject
from tests.support.cases import cases
from tests.surfaces.commands import ctx
from tests.surfaces.registries import at_office, key_file, pack_file
from tests.surfaces.sample import one_error_line
from tests.unit.registry.desk import ISSUER, NARROWER
from tests.unit.trust.world import key_of

SUPPORT = "ctxpack.support"


@pytest.fixture
def store(registry_store: Path) -> Path:
    return registry_store


@pytest.mark.parametrize("pack_id", ["kg:support", "pk_abcd2345", "acme:support", "abcd:support", "sha256:x", "run_x"])
def test_a_version_is_named_whatever_its_id_begins_with(store: Path, pack_id: str) -> None:
    file = pack_file(store, "other.json", "1.0.0", {"at": "/pack_meta/pack_id", "value": pack_id})
    ref = f"{pack_id}@1.0.0"
    assert ctx("lint", file, "--record", "--key", "./author.pem", cwd=store).status == 0
    assert ctx("show", ref, cwd=store).out.startswith(f"{ref}  context pack of {ISSUER}\n")
    assert ctx("log", ref, cwd=store).out.count("\n") == 2
    review = ("--role", "security", "--approve", "--reason", "sound", "--yes", "--key", "./sec.pem")
    assert ctx("review", ref, *review, cwd=store).status == 0
    drafts = ctx("packs", pack_id, "--drafts", "--quiet", cwd=store).out
    assert drafts == f"{json.loads(ctx('show', ref, '--json', cwd=store).raw)['digest']}\n"


@pytest.mark.parametrize(
    ("ref", "code", "way_out"),
    [
        ("pk_abcd2345@prod", "reference_invalid", "id@X.Y.Z"),
        ("kg:support@prod", "reference_not_an_execution_pack", "id@X.Y.Z"),
        ("pk_abcd2345@1.0.0:part", "reference_not_an_execution_pack", "a version has no parts"),
    ],
)
def test_neither_a_name_for_people_nor_a_part_follows_an_id_that_looks_like_something_else(
    store: Path, ref: str, code: str, way_out: str
) -> None:
    assert way_out in one_error_line(ctx("show", ref, cwd=store), 2, code)


@pytest.mark.parametrize("ref", [f"{SUPPORT}@1.0.0", f"{SUPPORT}@prod"])
def test_a_version_is_exported_by_itself_and_not_with_runs(store: Path, ref: str) -> None:
    assert ctx("export", ref, "3fa9", "-o", "out.json", cwd=store).status == 2
    assert not (store / "out.json").exists()
    assert ctx("export", ref, "-o", "out.json", cwd=store).status == 0
    digest = json.loads(ctx("show", ref, "--json", cwd=store).raw)["digest"]
    assert json.loads(ctx("cat", digest, cwd=store).raw)["pack_meta"]["pack_id"] == SUPPORT


def test_the_history_tells_what_the_keyring_calls_whoever_acted(store: Path) -> None:
    with at_office(store) as here:
        trusting = here.desk.keys.key_trust
        here.change_keys(trusting(key_of("ops").public_key, ISSUER, roles=("operator",), name="olga"))
    key_id = key_of("ops").public_key.key_id
    lines = ctx("log", f"{SUPPORT}@1.0.0", cwd=store).out.splitlines()
    assert lines[-1].split()[2:5] == [key_id[:16], "olga", "pinned"]
    assert len({line.index(what) for line, what in ((lines[-1], "pinned in"), (lines[0], "drafted"))}) == 1
    screen = ctx("show", f"{SUPPORT}@1.1.0", cwd=store).out
    assert f" by {key_id[:16]} olga\n" in screen
    events = json.loads(ctx("log", f"{SUPPORT}@1.0.0", "--json", cwd=store).raw)["events"]
    assert [(event["by"], event["name"]) for event in events if event["kind"] == "pinned"] == [(key_id, "olga")]
    assert {event["name"] for event in events if event["kind"] == "published"} == {None}


def test_a_quiet_history_is_one_event_a_line_by_its_place(store: Path) -> None:
    ref = f"{SUPPORT}@1.0.0"
    events = json.loads(ctx("log", ref, "--json", cwd=store).raw)["events"]
    quiet = ctx("log", ref, "--quiet", cwd=store)
    assert (quiet.status, quiet.err) == (0, "")
    assert quiet.out.splitlines() == [f"{event['stream']}@{event['seq']}" for event in events]
    assert f"registry/version/{ref}@1" in quiet.out.splitlines()
    assert ctx("show", ref, "--quiet", cwd=store).out == f"{ref}\n"


@cases(
    ("which", "name"),
    [
        ("bob", "bob"),
        ("./bob.pub", "bob"),
        ("/keys/Bob.Smith.pem", "Bob.Smith"),
        ("./bob smith.pub", ""),
        ("./.pub", ""),
        ("./deadbeef01234567.pub", ""),  # like an id, perhaps another's
    ],
)
def test_a_key_is_called_as_it_is_here_or_as_its_file_is(which: str, name: str) -> None:
    assert keyring_name(which) == name


def test_whoever_revokes_a_key_signs_the_registry_anew_and_is_told_so(store: Path) -> None:
    ops = key_of("ops").public_key.key_id
    before = json.loads(ctx("verify", "--registry", "--json", cwd=store).raw)
    result = ctx("keys", "revoke", ops, "--reason", "lost", "--key", "./root.pem", cwd=store)
    assert (result.status, result.err) == (0, "")
    assert "The registry is signed again: this key can no longer backdate an act." in result.out
    after = json.loads(ctx("verify", "--registry", "--json", cwd=store).raw)
    assert (after["answer"], after["entries"]) == ("verified", before["entries"] + 1)
    assert after["checkpoints"] == before["checkpoints"] + 1


def test_who_revokes_his_own_key_is_told_that_another_must_sign_the_registry(store: Path) -> None:
    with at_office(store) as here:
        here.trust("second", "owner")
    second, file = key_of("second").public_key.key_id, key_file(store, "second")
    result = ctx("keys", "revoke", second, "--reason", "lost", "--key", file, "--json", cwd=store)
    assert (result.status, json.loads(result.raw)["registry_signed"]) == (0, False)
    message = one_error_line(ctx("packs", cwd=store), 11, "checkpoint_before_revocation")
    assert "ctx verify --registry --sign" in message
    modified = ctx("verify", "--registry", cwd=store)
    assert modified.status == 11
    assert "Everything else is in order" in modified.out
    assert "restore a copy, and do not sign it" in modified.out
    assert ctx("verify", "--registry", "--sign", "--key", "./pub.pem", cwd=store).status == 0
    assert ctx("packs", cwd=store).status == 0


def test_what_is_refused_leaves_nothing_behind(store: Path) -> None:
    file = pack_file(store, "taken.json", "1.0.0", NARROWER)
    one_error_line(ctx("lint", file, "--record", "--key", "./author.pem", cwd=store), 14, "version_taken")
    assert "0 orphaned" in ctx("fsck", cwd=store).out


def test_what_came_to_nothing_is_orphaned_and_is_said_to_do_no_harm(store: Path) -> None:
    with at_office(store) as here, here.desk.platform.catalog.write() as tx:
        data = b"of a process that was killed"
        digest = here.desk.platform.objects.put(data)
        tx.objects.record(IndexedObject(digest=digest, kind="blob", size=len(data), traced=True))
    checked = ctx("fsck", cwd=store)
    assert checked.status == 0
    assert "1 orphaned" in checked.out
    assert "Orphaned objects do no harm: 'ctx gc' removes" in checked.out
    assert ctx("gc", "--grace", "0s", cwd=store).status == 0
    clean = ctx("fsck", cwd=store).out
    assert "0 orphaned" in clean
    assert "harm" not in clean
