"""`ctx verify --registry`: its output, its status, and proofs that a third party can check."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.model.keys import OWNER
from contextplane.testing import standalone_verifier
from tests.support.cases import cases
from tests.surfaces.commands import Result, ctx
from tests.surfaces.registries import at_office, key_file
from tests.surfaces.sample import one_error_line
from tests.unit.registry.desk import ROLES
from tests.unit.registry.tampering import Stolen, copied

PACK = "ctxpack.support@1.0.0"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with one version, which is pinned."""
    folder = tmp_path_factory.mktemp("registry")
    init(Settings(cwd=str(folder)))
    with at_office(folder) as here:
        here.trust("root", OWNER)
        for name, roles in ROLES.items():
            here.trust(name, *roles)
        here.pin("prod", here.release())
    for name in ("ops", "mallory"):
        key_file(folder, name)
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "store"))


def thief(store: Path) -> Stolen:
    return Stolen(store / ".ctx" / "catalog.db")


def verify(store: Path, *args: str) -> Result:
    return ctx("verify", "--registry", *args, cwd=store)


def answer(store: Path, *args: str) -> dict[str, Any]:
    report: dict[str, Any] = msgspec.json.decode(verify(store, *args, "--json").raw)
    return report


def test_a_sound_registry_is_verified_in_a_few_lines(store: Path) -> None:
    result = verify(store)
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Registry", "Checked", "Checkpoint", "Integrity"]
    assert "19 entries, 5 subjects, 16 checkpoints" in lines[1]
    assert lines[3].endswith("verified")
    report = answer(store)
    assert (report["answer"], report["entries"], report["troubles"], report["signed"]) == ("verified", 19, [], False)


def test_whatever_is_wrong_is_told_with_its_place_and_ends_with_11(store: Path) -> None:
    thief(store).cut("registry/pins/prod/ctxpack.support")
    thief(store).put("registry/log", 2, b"{}")
    result = verify(store)
    assert result.status == 11
    assert "registry_stream_cut  registry/pins/prod/ctxpack.support@1" in result.out
    assert "log_rewritten  registry/log@2" in result.out
    report = answer(store)
    assert report["answer"] == "modified"
    quiet = ctx("verify", "--registry", "--quiet", cwd=store).out.splitlines()
    assert [line.split()[0] for line in quiet] == [trouble["code"] for trouble in report["troubles"]]
    assert {"code": "log_rewritten", "at": "registry/log@2"}.items() <= report["troubles"][0].items()


def test_a_registry_that_was_rolled_back_behind_what_was_seen_ends_with_11(store: Path, tmp_path: Path) -> None:
    copied(store / ".ctx" / "catalog.db", tmp_path / "old.db")
    assert verify(store, "--sign", "--key", "./ops.pem").status == 0
    for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (store / ".ctx" / name).unlink(missing_ok=True)
    copied(tmp_path / "old.db", store / ".ctx" / "catalog.db")
    result = verify(store)
    assert result.status == 11
    assert "log_rolled_back" in result.out
    acts = (["packs"], ["pin", "staging", PACK, "--key", "./ops.pem"])
    lines = {one_error_line(ctx(*act, cwd=store), 11, "log_rolled_back") for act in acts}
    (memory,) = {line.partition("on purpose, remove ")[2].rstrip(")\n") for line in lines}
    Path(memory).unlink()
    assert ctx("packs", cwd=store).status == 0


def test_a_fresh_checkpoint_is_signed_after_a_clean_verification_and_only_then(store: Path) -> None:
    before = answer(store)["checkpoint"]["time"]
    signed = answer(store, "--sign", "--key", "./ops.pem")
    assert (signed["signed"], signed["checkpoint"]["time"] > before) == (True, True)
    assert answer(store)["checkpoints"] == 17
    one_error_line(verify(store, "--sign", "--key", "./mallory.pem"), 11, "registry_signer_untrusted")
    thief(store).cut("registry/pins/prod/ctxpack.support")
    report = answer(store, "--sign", "--key", "./ops.pem")
    assert (report["answer"], report["signed"], report["checkpoints"]) == ("modified", False, 17)


def check(*args: str, cwd: Path) -> tuple[int, str]:
    """Run the standalone verifier, which uses only the standard library."""
    program = [sys.executable, "-I", "-S", standalone_verifier.__file__, *args]
    result = subprocess.run(program, cwd=cwd, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout.strip()


def test_proofs_are_written_to_files_that_a_second_program_checks_without_a_store(store: Path, tmp_path: Path) -> None:
    held = answer(store, "--inclusion", PACK, "-o", str(tmp_path / "held"))
    assert set(msgspec.json.decode((tmp_path / "held.entry").read_bytes())) == {"event", "previous", "seq", "stream"}
    assert check("inclusion", "held", "held.entry", held["vkey"], cwd=tmp_path) == (0, "proved")
    grown = answer(store, "--consistency", "4", "-o", str(tmp_path / "grown"))
    assert check("consistency", "grown", grown["old_root"], grown["vkey"], cwd=tmp_path) == (0, "proved")
    (tmp_path / "held.entry").write_bytes(b"{}")
    assert check("inclusion", "held", "held.entry", held["vkey"], cwd=tmp_path) == (1, "not proved")


def test_a_proof_says_how_it_is_checked_and_never_replaces_a_file(store: Path) -> None:
    result = verify(store, "--inclusion", PACK, "-o", "proof")
    assert result.status == 0
    assert (
        "python -m contextplane.testing.standalone_verifier inclusion proof proof.entry contextplane.registry/"
        in result.out
    )
    one_error_line(verify(store, "--inclusion", PACK, "-o", "proof"), 14, "proof_not_written")


@cases(
    ("args", "status", "code"),
    [
        (["--registry", "PACK"], 2, "usage"),
        (["--registry", "--file"], 2, "usage"),
        ([], 2, "usage"),
        (["PACK", "--sign"], 2, "usage"),
        (["PACK", "-o", "x"], 2, "usage"),
        (["--registry", "--sign", "--inclusion", PACK, "-o", "x"], 2, "usage"),
        (["--registry", "--inclusion", PACK], 2, "usage"),
        (["PACK", "--since", "x"], 2, "usage"),
        (["--registry", "--since", "x", "--sign"], 2, "usage"),
        (["--registry", "--since", "x", "--inclusion", PACK, "-o", "x"], 2, "usage"),
        (["--registry", "--since", "nothing"], 13, "document_unreadable"),
        (["--registry", "--consistency", "x", "-o", "x"], 2, "usage"),
        (["--registry", "--inclusion", "ctxpack.support", "-o", "x"], 10, "pack_ref_unpinned"),
        (["--registry", "--inclusion", "ctxpack.support@9.9.9", "-o", "x"], 13, "version_not_found"),
        (["--registry", "--consistency", "99", "-o", "x"], 13, "outside_tree"),
    ],
)
def test_what_does_not_go_together_or_is_not_there_is_refused(
    template: Path, args: list[str], status: int, code: str
) -> None:
    one_error_line(ctx("verify", *args, cwd=template), status, code)
    assert not (template / "x").exists()


def test_an_auditor_keeps_a_checkpoint_and_verifies_what_came_since(store: Path) -> None:
    kept = verify(store, "-o", "kept.note")
    assert (kept.status, kept.out.splitlines()[-1]) == (0, "Kept:       kept.note")
    assert answer(store)["checkpoint"]["note"] == (store / "kept.note").read_text()
    assert answer(store, "--since", "kept.note")["entries"] == 0
    with at_office(store) as here:
        here.pin("staging", PACK)
    result = verify(store, "--since", "kept.note", "-o", "next.note")
    assert result.status == 0
    assert "Checked:    1 entry, 1 subject, 1 checkpoint" in result.out
    assert "Not checked: its first 19 entries" in result.out
    report = answer(store, "--since", "kept.note")
    assert (report["answer"], report["since"], report["entries"]) == ("verified", 19, 1)
    assert answer(store, "--since", "next.note")["since"] == 20
    one_error_line(verify(store, "-o", "kept.note"), 14, "proof_not_written")
    before = answer(store)["checkpoint"]
    one_error_line(verify(store, "-o", "kept.note", "--sign", "--key", "ops"), 14, "proof_not_written")
    assert answer(store)["checkpoint"] == before
    (store / "other.note").write_text("no note", encoding="utf-8")
    assert " other.note: " in one_error_line(verify(store, "--since", "other.note"), 11, "checkpoint_invalid")


def test_damage_since_a_kept_checkpoint_is_reported_and_nothing_is_kept(store: Path) -> None:
    assert verify(store, "-o", "kept.note").status == 0
    with at_office(store) as here:
        here.pin("staging", PACK)
    thief(store).cut("registry/pins/staging/ctxpack.support")
    result = verify(store, "--since", "kept.note", "-o", "next.note")
    assert result.status == 11
    assert "registry_stream_cut  registry/pins/staging/ctxpack.support@1" in result.out
    assert not (store / "next.note").exists()
    (store / "kept.note").write_text((store / "kept.note").read_text().replace("19", "18", 1))
    one_error_line(verify(store, "--since", "kept.note"), 11, "note_unsigned")


def test_the_store_tells_of_its_registry_in_a_line(store: Path) -> None:
    assert "registry  19 events, last signed 20" in ctx("status", cwd=store).out
    assert ctx("fsck", cwd=store).status == 0
    thief(store).cut("registry/log")
    damaged = ctx("fsck", cwd=store)
    assert damaged.status == 1
    assert "corrupt   registry/log  log_truncated: 18 entries, and 19 are signed" in damaged.out


def test_one_version_is_verified_by_its_name(store: Path) -> None:
    result = ctx("verify", PACK, cwd=store)
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[0] == f"Version:    {PACK}  context_pack"
    assert result.out.splitlines()[-1] == "Integrity:  verified"
    report = msgspec.json.decode(ctx("verify", PACK, "--json", cwd=store).raw)
    assert (report["answer"], report["ref"], report["marks"]) == ("verified", PACK, [])


def test_a_version_whose_bytes_were_changed_is_not_verified(store: Path) -> None:
    digest = msgspec.json.decode(ctx("verify", PACK, "--json", cwd=store).raw)["digest"].removeprefix("sha256:")
    file = store / ".ctx" / "objects" / digest[:2] / digest[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b"destructive", b"read_only  "))
    one_error_line(ctx("verify", PACK, cwd=store), 11, "object_corrupt")


def test_a_version_that_was_never_published_is_not_found(store: Path) -> None:
    one_error_line(ctx("verify", "ctxpack.support@9.0.0", cwd=store), 13, "version_not_found")
