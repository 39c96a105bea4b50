"""The entry of a pack is a copy of its manifest. Registering the pack again heals a damaged entry."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.surfaces.commands import ctx
from tests.surfaces.runs import LOG, packed


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    assert ctx("init", cwd=folder).status == 0
    return folder


def junk(entry: Path) -> None:
    entry.write_bytes(b"junk\n")


def emptied(entry: Path) -> None:
    entry.write_bytes(b"")


def of_another_run(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes().replace(b"model-x", b"model-y"))


def a_link(entry: Path) -> None:
    elsewhere = entry.parents[2] / "elsewhere"
    entry.rename(elsewhere)
    entry.symlink_to(elsewhere)


def a_pipe(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)


HARMS = [junk, emptied, of_another_run, a_link, a_pipe]
named = pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)


def damaged(store: Path, harm: Callable[[Path], None]) -> tuple[str, bytes]:
    """A pack whose entry was damaged, and the original entry."""
    pack = packed(store)
    entry = store / ".ctx" / "packs" / pack
    right = entry.read_bytes()
    assert ctx("export", pack, "-o", "../run.tar", cwd=store).status == 0
    harm(entry)
    assert ctx("verify", pack, cwd=store).status != 0
    return pack, right


def healed(store: Path, pack: str, right: bytes) -> None:
    entry = store / ".ctx" / "packs" / pack
    assert not entry.is_symlink()
    assert entry.read_bytes() == right
    assert ctx("verify", pack, cwd=store).status == 0
    assert ctx("fsck", cwd=store).status == 0


@named
def test_packing_the_same_run_again_heals_its_entry(store: Path, harm: Callable[[Path], None]) -> None:
    pack, right = damaged(store, harm)
    result = ctx("pack", "-", cwd=store, input=json.dumps(LOG).encode())
    assert (result.status, "nothing changed" in result.err) == (0, False)
    healed(store, pack, right)


def test_importing_it_again_heals_its_entry(store: Path) -> None:
    pack, right = damaged(store, junk)
    result = ctx("import", "../run.tar", cwd=store)
    assert (result.status, "complete" in result.out) == (0, True)
    healed(store, pack, right)


@named
def test_a_rebuild_heals_its_entry_and_says_so(store: Path, harm: Callable[[Path], None]) -> None:
    pack, right = damaged(store, harm)
    result = ctx("fsck", "--rebuild", "--json", cwd=store)
    assert (result.status, json.loads(result.out)["rebuilt"]["entries"]) == (0, 1)
    healed(store, pack, right)
    assert json.loads(ctx("fsck", "--rebuild", "--json", cwd=store).out)["rebuilt"]["entries"] == 0


def test_while_the_manifest_cannot_be_read_its_entry_stays_as_it_is(store: Path) -> None:
    pack, _ = damaged(store, of_another_run)
    entry = store / ".ctx" / "packs" / pack
    left = entry.read_bytes()
    (store / ".ctx" / "objects" / pack[:2] / pack[2:]).unlink()
    assert ctx("fsck", "--rebuild", cwd=store).status == 1
    assert entry.read_bytes() == left


def test_a_folder_in_the_place_of_an_entry_is_told_and_kept(store: Path) -> None:
    pack = packed(store)
    entry = store / ".ctx" / "packs" / pack
    entry.unlink()
    entry.mkdir()
    result = ctx("pack", "-", cwd=store, input=json.dumps(LOG).encode())
    assert (result.status, result.err.split(":")[1].strip()) == (1, "storage_failed")
    assert ctx("fsck", "--rebuild", cwd=store).status == 1
    assert entry.is_dir()


def test_an_entry_in_the_form_of_others_is_left_as_it_is(store: Path) -> None:
    pack = packed(store)
    entry = store / ".ctx" / "packs" / pack
    for form in (f"sha256:{pack}\n".encode(), json.dumps(json.loads(entry.read_bytes()), indent=2).encode()):
        entry.write_bytes(form)
        packed(store)
        assert ctx("fsck", "--rebuild", cwd=store).status == 0
        assert entry.read_bytes() == form
