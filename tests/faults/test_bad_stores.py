"""Stores that are not there, not ours, not whole or not writable: each ends in a status and a line that says so."""

import os
import re
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, TimeoutExpired, run

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest
from contextplane.ports.objects import StorageFull
from tests.faults.children import ROOT, start
from tests.faults.stores import (
    BLOB,
    READING,
    REPORT,
    assert_refused,
    json_of,
    object_path,
    small_files,
    tree,
    with_one_pack,
)
from tests.patience import PATIENCE
from tests.surfaces.commands import ctx, ctx_as_nobody, is_root

# --- no store, or not one for us --------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_where_there_is_no_store_the_way_out_is_told(tmp_path: Path, args: tuple[str, ...]) -> None:
    assert "ctx init" in assert_refused(ctx(*args, cwd=tmp_path), 13, "store_not_found")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["nowhere", "a file", "below a file"])
def test_a_variable_that_leads_nowhere_is_told_by_its_name(store: Path, where: str) -> None:
    path = store.parent / {"nowhere": "none", "a file": "file", "below a file": "file/.ctx"}[where]
    (store.parent / "file").write_bytes(b"mine")
    line = assert_refused(ctx("status", cwd=store.parent, env={"CTX_DIR": str(path)}), 13, "store_not_found")
    assert "CTX_DIR" in line
    assert str(path) in line


@pytest.mark.parametrize("args", [*READING, ("init",), ("fsck", "--rebuild")], ids=" ".join)
def test_a_store_of_a_newer_format_is_refused_and_not_touched(store: Path, args: tuple[str, ...]) -> None:
    (store / "config.json").write_text('{"version": "0.1", "format": 2, "new": []}', encoding="ascii")
    before = tree(store)
    assert "upgrade" in assert_refused(ctx(*args, cwd=store.parent), 10, "store_format_newer")
    assert tree(store) == before


@pytest.mark.parametrize("args", [*READING, ("init",), ("fsck", "--rebuild")], ids=" ".join)
def test_a_catalog_of_a_newer_schema_is_refused_and_not_touched(store: Path, args: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(store / "catalog.db")) as db:
        db.execute("PRAGMA user_version = 999")
    before = tree(store)
    assert "upgrade" in assert_refused(ctx(*args, cwd=store.parent), 10, "catalog_schema_newer")
    assert tree(store) == before


def test_a_file_named_like_a_store_is_no_store_and_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".ctx").write_bytes(b"mine")
    assert_refused(ctx("init", cwd=tmp_path), 14, "store_exists")
    assert str(tmp_path / ".ctx") in assert_refused(ctx("status", cwd=tmp_path), 13, "store_not_found")
    assert (tmp_path / ".ctx").read_bytes() == b"mine"


def test_a_file_named_like_a_store_does_not_hide_the_store_above(store: Path) -> None:
    below = store.parent / "below"
    below.mkdir()
    (below / ".ctx").write_bytes(b"mine")
    assert json_of(ctx("status", "--json", cwd=below))["path"] == str(store)


CONFIGS = {
    "empty": b"",
    "garbage": b"\x00\x01garbage",
    "huge": b'{"version": "0.1", "x": "' + b"y" * (5 << 20) + b'"}',
    "not-utf8": b'{"version": "0.1", "store_id": "\xff"}',
    "unknown-field": b'{"version": "0.1", "surprise": true}',
    "wrong-version": b'{"version": "0.9"}',
    "wrong-type": b'{"version": 0.1}',
    "list": b"[]",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("config", CONFIGS)
def test_a_store_whose_configuration_cannot_be_trusted_is_refused(store: Path, config: str) -> None:
    (store / "config.json").write_bytes(CONFIGS[config])
    before = tree(store)
    for args in (("status",), ("init",), ("fsck", "--rebuild")):
        assert "config.json" in assert_refused(ctx(*args, cwd=store.parent), 10, "store_config_invalid")
    assert tree(store) == before


@pytest.mark.parametrize("kind", ["folder", "pipe", "dead-link"])
def test_a_configuration_that_is_no_file_is_refused(store: Path, kind: str) -> None:
    path = store / "config.json"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    assert_refused(ctx("status", cwd=store.parent), 10, "store_config_invalid")
    assert_refused(ctx("init", cwd=store.parent), 10, "store_config_invalid")


def test_a_store_without_its_configuration_is_completed_by_init_as_the_same_store(store: Path) -> None:
    before = json_of(ctx("status", "--json", cwd=store.parent))
    (store / "config.json").unlink()
    assert "ctx init" in assert_refused(ctx("status", cwd=store.parent), 10, "store_config_invalid")
    done = json_of(ctx("init", "--json", cwd=store.parent))
    assert (done["what"], done["store_id"]) == ("completed", before["store_id"])
    assert json_of(ctx("status", "--json", cwd=store.parent)) == before


@pytest.mark.parametrize("name", ["objects", "packs"])
def test_a_file_in_the_place_of_a_folder_is_told_and_kept(store: Path, name: str) -> None:
    shutil.move(store / name, store.parent / name)
    (store / name).write_bytes(b"mine")
    result = ctx("fsck", cwd=store.parent)
    assert result.status == 1
    assert "Traceback" not in result.err
    assert (store / name).read_bytes() == b"mine"


# --- a store that cannot be written -----------------------------------------------------------------------------------


def make_read_only(store: Path) -> None:
    for path in [store.parent, store, *store.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.fixture
def closed_store(public: Path) -> Iterator[Path]:
    """A store in which we may read everything and write nothing."""
    store = with_one_pack(public)
    make_read_only(store)
    yield store
    for path in [public, store, *store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_store_that_cannot_be_written_can_be_read(closed_store: Path) -> None:
    folder = closed_store.parent
    status = ctx_as_nobody("status", "--json", cwd=folder)
    assert (status.status, json_of(status)["execution_packs"]) == (0, 1)
    assert ctx_as_nobody("cat", str(BLOB), cwd=folder).raw == REPORT
    check = ctx_as_nobody("fsck", cwd=folder)
    assert (check.status, check.err) == (0, "")
    assert ctx_as_nobody("gc", "--dry-run", cwd=folder).status == 0
    assert json_of(ctx_as_nobody("init", "--json", cwd=folder))["what"] == "present"


def test_writing_to_a_store_that_cannot_be_written_fails_with_a_code(closed_store: Path) -> None:
    folder = closed_store.parent
    assert_refused(ctx_as_nobody("gc", "--grace", "0s", cwd=folder), 1, "catalog_read_only", "storage_read_only")
    assert_refused(ctx_as_nobody("fsck", "--rebuild", cwd=folder), 1, "catalog_read_only", "storage_read_only")


def test_a_store_cannot_be_made_where_nothing_can_be_written(public: Path) -> None:
    public.chmod(0o555)
    assert_refused(ctx_as_nobody("init", cwd=public), 1, "storage_read_only")
    assert list(public.iterdir()) == []
    public.chmod(0o755)


@pytest.mark.parametrize("late", ["a mark", "a pack"])
def test_a_store_that_cannot_be_written_can_be_read_also_when_its_index_lags_behind(public: Path, late: str) -> None:
    settings = Settings(cwd=str(public))
    init(settings, ".")
    store = public / ".ctx"
    with open_platform(settings) as platform:
        platform.objects.put(REPORT)
    if late == "a pack":
        (store / "packs" / BLOB.hex).write_bytes(str(BLOB).encode())
    os.utime(store / "packs", (1000, 1000))
    make_read_only(store)
    try:
        assert ctx_as_nobody("cat", str(BLOB), cwd=public).raw == REPORT
        status = ctx_as_nobody("status", "--json", cwd=public)
        assert (status.status, status.err) == (0, "")
        check = ctx_as_nobody("fsck", "--json", cwd=public)
        assert check.err == ""
        assert json_of(check)["objects"] == 1
    finally:
        for path in [public, store, *store.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_read_only_store_whose_last_writer_was_killed_is_read_or_refused_with_a_code(public: Path) -> None:
    (public / "first").mkdir()
    store = with_one_pack(public / "first")
    aside = public / "aside"
    with open_platform(Settings(cwd=str(store.parent))) as platform:
        with platform.catalog.write() as tx:
            tx.streams.append("run/1", 0, [Event(kind="began", body=b"{}")])
        shutil.copytree(store, aside / ".ctx")  # as a kill leaves it: with a log that holds the newest pages
    assert (aside / ".ctx" / "catalog.db-wal").stat().st_size > 0
    os.utime(aside / ".ctx" / "packs", (1000, 1000))
    make_read_only(aside / ".ctx")
    try:
        status = ctx_as_nobody("status", "--json", cwd=aside)
        if status.status == 0:
            assert json_of(status)["execution_packs"] == 1
        else:
            assert_refused(ctx_as_nobody("status", cwd=aside), 1, "catalog_read_only", "catalog_failed")
    finally:
        for path in [aside, *aside.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_folder_of_objects_that_cannot_be_read_is_told_and_not_an_accident(public: Path) -> None:
    store = with_one_pack(public)
    if is_root():
        for path in [store, *store.rglob("*")]:
            os.chown(path, 65534, 65534)
    object_path(store).parent.chmod(0o000)
    try:
        check = ctx_as_nobody("fsck", cwd=public)
        assert check.status == 1
        assert "Traceback" not in check.err
        assert_refused(ctx_as_nobody("cat", str(BLOB), cwd=public), 1, "storage_failed")
    finally:
        object_path(store).parent.chmod(0o755)


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [100, 4096, 20_000, 50_000])
def test_a_store_that_found_no_room_is_completed_once_there_is_some(tmp_path: Path, limit: int) -> None:
    line = assert_refused(small_files(limit, "init", cwd=tmp_path), 1, "storage_full")
    assert "rollback" not in line
    assert json_of(ctx("init", "--json", cwd=tmp_path))["what"] in {"created", "completed"}
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_an_object_that_finds_no_room_is_refused_and_the_others_stay(folder: Path) -> None:
    objects = FileObjects(str(folder))
    first = objects.put(b"first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        for write in (lambda: objects.put(b"x" * 200_000), lambda: objects.put_stream([b"x" * 60_000] * 4)):
            with pytest.raises(StorageFull):
                write()
        assert objects.get(objects.put(b"small")) == b"small"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert objects.get(first) == b"first"
    assert not list(objects.strays())
    assert objects.get(objects.put(b"x" * 200_000)) == b"x" * 200_000


def test_on_a_disk_that_is_really_full_everything_acknowledged_stays(tmp_path: Path, folder: Path) -> None:
    # In a mount namespace of its own, so that the disk goes away with the child; its files are copied before.
    mounted = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"', str(tmp_path)]
    if shutil.which("unshare") is None or run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk needs a right that we do not have here")
    fill = ["sh", "-c", 'mkdir "$1" && "$0" -m tests.faults.children fill_up "$1" && cp -r "$1" "$2"', sys.executable]
    copied = folder / "copied"
    done = run([*mounted, *fill, str(tmp_path / "objects"), str(copied)], cwd=ROOT, stdout=PIPE, check=True)
    *names, last = done.stdout.decode().split()
    assert last == "storage_full"
    assert len(names) > 10
    objects = FileObjects(str(copied))
    assert sorted(name.hex for name in objects.names()) == sorted(names)
    assert {objects.check(Digest(name)).state for name in names} == {"whole"}
    assert not list(objects.strays())


# --- damaged objects --------------------------------------------------------------------------------------------------


def truncate(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(REPORT[:-1])


def flip_bit(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(bytes([REPORT[0] ^ 1]) + REPORT[1:])


def extend(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(REPORT + b"\n")


def replace_with_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_with_link(path: Path) -> None:
    path.unlink()
    (path.parents[3] / "elsewhere").write_bytes(REPORT)
    path.symlink_to(path.parents[3] / "elsewhere")


def replace_with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


HARMS: list[tuple[Callable[[Path], None], int, str]] = [
    (truncate, 11, "object_corrupt"),
    (flip_bit, 11, "object_corrupt"),
    (extend, 11, "object_corrupt"),
    (replace_with_folder, 1, "object_obstructed"),
    (replace_with_link, 1, "object_obstructed"),
    (replace_with_pipe, 1, "object_obstructed"),
]


@pytest.mark.parametrize(("harm", "status", "code"), HARMS, ids=[harm[0].__name__ for harm in HARMS])
def test_a_damaged_object_is_not_handed_out_and_is_named_corrupt(
    store: Path, harm: Callable[[Path], None], status: int, code: str
) -> None:
    harm(object_path(store))
    result = ctx("cat", str(BLOB), cwd=store.parent)
    assert_refused(result, status, code)
    assert result.raw == b""
    check = ctx("fsck", "--json", cwd=store.parent)
    assert check.status == 1
    report = json_of(check)
    assert report["sound"] is False
    assert isinstance(report["findings"], list)
    (finding,) = report["findings"]
    assert (finding["state"], finding["what"]) == ("corrupt", str(BLOB))
    assert finding["needed_by"]
    human = ctx("fsck", cwd=store.parent)
    assert human.status == 1
    assert f"corrupt   {BLOB}" in human.out
    assert "needed by sha256:" in human.out


@pytest.mark.parametrize(
    "harm", [truncate, flip_bit, extend, replace_with_link, replace_with_pipe], ids=lambda harm: harm.__name__
)
def test_putting_the_right_bytes_heals_what_stands_in_their_place(store: Path, harm: Callable[[Path], None]) -> None:
    harm(object_path(store))
    with start("put_over", store / "objects", REPORT.decode()) as child:
        try:
            out, err = child.communicate(timeout=PATIENCE)
        except TimeoutExpired:
            child.kill()
            pytest.fail("the put waits for ever")
    assert (err.decode(), out.decode().strip()) == ("", REPORT.decode().strip())
    assert ctx("fsck", cwd=store.parent).status == 0
    assert object_path(store).is_file()
    assert not object_path(store).is_symlink()


def test_an_object_that_cannot_be_read_is_told_apart_from_a_damaged_one(public: Path) -> None:
    store = with_one_pack(public)
    object_path(store).chmod(0o000)
    os.utime(store / "packs", (1000, 1000))
    if is_root():
        for path in [store, *store.rglob("*")]:
            os.chown(path, 65534, 65534)
    assert "Permission" in assert_refused(ctx_as_nobody("cat", str(BLOB), cwd=public), 1, "storage_failed")
    check = ctx_as_nobody("fsck", cwd=public)
    assert check.status == 1
    assert re.search(
        rf"^unreadable {BLOB}  ctx://[0-9a-f]{{12}}:outputs/report.md is unreadable: Perm", check.out, re.MULTILINE
    )
    assert check.out.splitlines()[-3].endswith(" 0 foreign, 1 unreadable")
    assert "Not all of the store could be checked." in check.out


def test_a_missing_blob_is_missing(store: Path) -> None:
    object_path(store).unlink()
    assert_refused(ctx("cat", str(BLOB), cwd=store.parent), 13, "object_not_found")
    check = ctx("fsck", cwd=store.parent)
    assert check.status == 1
    assert f"missing   {BLOB}" in check.out
    assert "1 missing, 0 corrupt" in check.out


def test_junk_is_reported_as_foreign_and_left_alone(store: Path) -> None:
    junk = [store / "packs" / "notes.txt", store / "objects" / "notes.txt", object_path(store).with_name("notes.txt")]
    junk += [store / "objects" / ".staging" / "77-0123456789abcdef", store / "notes.txt"]
    (store / "objects" / ".staging").mkdir(exist_ok=True)
    for path in junk:
        path.write_bytes(b"junk")
    check = ctx("fsck", cwd=store.parent)
    assert check.status == 0
    for path in junk[:-1]:
        assert f"foreign   {path.relative_to(store)}" in check.out
    assert "The store is intact." in check.out
    assert ctx("gc", "--grace", "52w", cwd=store.parent).status == 0
    assert [path.read_bytes() for path in junk] == [b"junk"] * len(junk)
