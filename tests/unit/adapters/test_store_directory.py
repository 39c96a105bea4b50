"""Where a store is, what its configuration may say, and how it is laid out however often the disk fails."""

import errno
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.disk import Disk, hold_lock
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.store_dir import (
    FORMAT,
    StoreConfig,
    StoreConfigInvalid,
    StoreDirectory,
    StoreEntryIsLink,
    StoreNotFound,
    StoreOfAnotherUser,
    StoreTooNew,
    discover_store,
)
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.repair import open_repaired
from contextplane.app.settings import Settings, from_environment
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectObstructed, StorageFailed, StorageFull, StorageReadOnly
from contextplane.testing.faults import Faults, FaultyDisk

STORE_ID = "store_0123456789abcdef"
GOOD = b'{"version": "0.1", "format": 1, "store_id": "store_0123456789abcdef"}'

# --- where it is ------------------------------------------------------------------------------------------------------


def test_the_nearest_store_above_is_found(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b" / "c"
    below.mkdir(parents=True)
    (tmp_path / ".ctx").mkdir()
    assert discover_store(str(below), None) == StoreDirectory(path=str(tmp_path / ".ctx"))
    (tmp_path / "a" / ".ctx").mkdir()
    assert discover_store(str(below), None) == StoreDirectory(path=str(tmp_path / "a" / ".ctx"))
    assert discover_store(str(tmp_path), None) == StoreDirectory(path=str(tmp_path / ".ctx"))


def test_a_file_of_that_name_is_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (below / ".ctx").write_bytes(b"")
    (tmp_path / ".ctx").mkdir()
    assert discover_store(str(below), None) == StoreDirectory(path=str(tmp_path / ".ctx"))


def test_where_there_is_none_the_error_names_what_was_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".ctx").write_bytes(b"")
    with pytest.raises(StoreNotFound) as refused:
        discover_store(str(tmp_path), None)
    assert f"{tmp_path / '.ctx'} is not a folder" in refused.value.message
    assert refused.value.hint


def test_a_link_to_a_store_is_a_store_and_a_dead_link_is_none(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".ctx").symlink_to(tmp_path / "elsewhere")
    assert discover_store(str(tmp_path), None) == StoreDirectory(path=str(tmp_path / ".ctx"))
    (tmp_path / "elsewhere").rmdir()
    with pytest.raises(StoreNotFound, match="not a folder"):
        discover_store(str(tmp_path), None)


def test_an_override_is_the_store_itself_and_nothing_else_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / ".ctx").mkdir()
    (tmp_path / "other").mkdir()
    assert discover_store(str(tmp_path), str(tmp_path / "other")) == StoreDirectory(path=str(tmp_path / "other"))
    (tmp_path / "file").write_bytes(b"")
    for wrong in ("none", "file"):
        with pytest.raises(StoreNotFound) as refused:
            discover_store(str(tmp_path), str(tmp_path / wrong))
        assert refused.value.at == str(tmp_path / wrong)


# --- whose it is, and what leads out of it ----------------------------------------------------------------------------

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


@as_root
def test_a_store_of_another_user_is_used_only_when_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".ctx"
    below = tmp_path / "a" / "b"
    path.mkdir()
    below.mkdir(parents=True)
    os.chown(path, NOBODY, NOBODY)
    for start in (tmp_path, below):
        with pytest.raises(StoreOfAnotherUser) as refused:
            discover_store(str(start), None)
        assert refused.value.at == str(path)
        assert f"CTX_DIR={path}" in (refused.value.hint or "")
    assert discover_store(str(below), str(path)).path == str(path)
    (below / ".ctx").mkdir()
    assert discover_store(str(below), None).path == str(below / ".ctx")


@as_root
def test_root_uses_stores_of_the_user_who_ran_sudo(tmp_path: Path) -> None:
    path = tmp_path / ".ctx"
    path.mkdir()
    assert discover_store(str(tmp_path), None, sudo_uid=NOBODY).path == str(path)
    os.chown(path, NOBODY, NOBODY)
    assert discover_store(str(tmp_path), None, sudo_uid=NOBODY).path == str(path)
    with pytest.raises(StoreOfAnotherUser):
        discover_store(str(tmp_path), None, sudo_uid=NOBODY - 1)


def test_only_root_can_be_another_user_by_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ctx").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StoreOfAnotherUser):
        discover_store(str(tmp_path), None, sudo_uid=os.getuid())


@as_root
@pytest.mark.parametrize("foreign", ["link", "folder"])
def test_of_a_linked_store_both_the_link_and_the_folder_are_ours(tmp_path: Path, foreign: str) -> None:
    link, folder = tmp_path / ".ctx", tmp_path / "elsewhere"
    folder.mkdir()
    link.symlink_to(folder)
    assert discover_store(str(tmp_path), None).path == str(link)
    os.chown(link if foreign == "link" else folder, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(StoreOfAnotherUser):
        discover_store(str(tmp_path), None)


def test_the_user_of_sudo_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in (("1000", 1000), ("", None), ("0", None), ("-1", None), ("alice", None)):
        monkeypatch.setenv("SUDO_UID", text)
        assert from_environment().sudo_uid == expected


PARTS = [
    "objects",
    "objects/.staging",
    "objects/.lock",
    "packs",
    "refs",
    "drafts",
    "keys",
    "catalog.db",
    "catalog.db-wal",
    "catalog.db-shm",
    "catalog.db-journal",
    "catalog.lock",
    "catalog.making",
]


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_a_link_is_refused_before_anything_is_written(tmp_path: Path, part: str, *, dead: bool) -> None:
    folder, outside = tmp_path / "project", tmp_path / "outside"
    folder.mkdir()
    settings = Settings(cwd=str(folder))
    init(settings)
    path = folder / ".ctx" / part
    if not path.exists():
        path.write_bytes(b"")
    path.rename(outside)
    path.symlink_to(tmp_path / "nowhere" if dead else outside)
    before = everything_in(tmp_path)
    for use in (lambda: init(settings), lambda: open_platform(settings).__enter__(), lambda: repair(settings)):
        with pytest.raises(StoreEntryIsLink) as refused:
            use()
        assert refused.value.at == str(path)
        assert refused.value.hint
    assert everything_in(tmp_path) == before


def repair(settings: Settings) -> None:
    with open_repaired(settings):
        pass


def test_other_links_in_the_folder_are_of_no_interest(tmp_path: Path) -> None:
    (tmp_path / "README").write_bytes(b"")
    init(Settings(cwd=str(tmp_path)))
    (tmp_path / ".ctx" / "notes").symlink_to(tmp_path / "README")
    assert discover_store(str(tmp_path), None).path == str(tmp_path / ".ctx")


def test_objects_are_neither_written_nor_removed_behind_a_link(tmp_path: Path) -> None:
    data = b"x" * 5000  # large enough to be looked up first
    digest = Digest.of(data)
    root, outside = tmp_path / "objects", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    shard = root / digest.hex[:2]
    shard.symlink_to(outside)
    with pytest.raises(ObjectObstructed) as refused:
        FileObjects(str(root)).put(data)
    assert refused.value.at == str(shard)
    assert not list(outside.iterdir())
    (outside / digest.hex[2:]).write_bytes(data)
    os.utime(outside / digest.hex[2:], (1, 1))
    with pytest.raises(ObjectObstructed):
        FileObjects(str(root)).put(data)
    with FileObjects(str(root)).collector() as collector, pytest.raises(ObjectObstructed):
        collector.collect(digest, older_than=datetime.max.replace(tzinfo=UTC))
    assert (outside / digest.hex[2:]).stat().st_mtime == 1
    assert FileObjects(str(root)).get(digest) == data


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_lock_does_not_follow_a_link(tmp_path: Path, *, exclusive: bool) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "outside")
    with pytest.raises(ObjectObstructed), hold_lock(str(tmp_path / "lock"), exclusive=exclusive, timeout=0):
        pass
    (tmp_path / ".lock").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageFailed):
        FileObjects(str(tmp_path)).put(b"")
    assert not (tmp_path / "outside").exists()


# --- what its configuration may say -----------------------------------------------------------------------------------


def directory_with(folder: Path, config: bytes) -> StoreDirectory:
    (folder / "config.json").write_bytes(config)
    return StoreDirectory(path=str(folder))


@pytest.mark.parametrize(
    ("config", "meaning"),
    [
        (GOOD, StoreConfig(version="0.1", format=1, store_id=STORE_ID)),
        (b'{\n  "version": "0.1"\n}', StoreConfig(version="0.1")),
        (b'{"version": "0.1", "format": 0}', StoreConfig(version="0.1")),
        (b'{"version": "0.1", "format": 1}', StoreConfig(version="0.1", format=1)),
        (b" \n" + GOOD + b"\n\n", StoreConfig(version="0.1", format=1, store_id=STORE_ID)),
    ],
)
def test_a_configuration_is_read(tmp_path: Path, config: bytes, meaning: StoreConfig) -> None:
    assert directory_with(tmp_path, config).config() == meaning


@pytest.mark.parametrize(
    "config",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b'"0.1"',
        b"garbage",
        b"\xff\xfe",
        b'{"version": "\xff"}',
        b'{"version": "0.1"',
        b'{"version": 1}',
        b'{"version": null}',
        b'{"version": "0.2"}',
        b'{"version": ""}',
        b'{"version": "0.1", "store_id": 5}',
        b'{"version": "0.1", "format": "1"}',
        b'{"version": "0.1", "format": 1.5}',
        b'{"version": "0.1", "surprise": 1}',
        b'{"version": "0.1"} and more',
        b"\0" * 100,
        b"[" * 60_000,
        b'{"version": "0.1", "x": "' + b"y" * 100_000 + b'"}',
        b" " * (1 << 20) + GOOD,
    ],
    ids=range(22),
)
def test_a_configuration_that_is_none_is_refused_with_its_place(tmp_path: Path, config: bytes) -> None:
    with pytest.raises(StoreConfigInvalid) as refused:
        directory_with(tmp_path, config).config()
    assert refused.value.at == str(tmp_path / "config.json")
    assert refused.value.hint
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    "config",
    [
        b'{"version": "0.1", "format": 2, "store_id": "x"}',
        b'{"version": "7", "format": 999, "fields": ["that", "we", "do", "not", "know"]}',
        b'{"format": 2}',
    ],
)
def test_a_newer_format_is_refused_as_newer_whatever_else_it_says(tmp_path: Path, config: bytes) -> None:
    with pytest.raises(StoreTooNew, match=f"knows {FORMAT}"):
        directory_with(tmp_path, config).config()


@pytest.mark.parametrize("make", ["none", "folder", "dead-link", "loop"])
def test_no_configuration_file_is_an_invalid_one(tmp_path: Path, make: str) -> None:
    path = tmp_path / "config.json"
    if make == "folder":
        path.mkdir()
    elif make == "dead-link":
        path.symlink_to(tmp_path / "nowhere")
    elif make == "loop":
        path.symlink_to(path)
    with pytest.raises(StoreConfigInvalid):
        StoreDirectory(path=str(tmp_path)).config()


@given(
    st.binary(max_size=80)
    | st.sampled_from([GOOD]).flatmap(lambda good: st.integers(0, len(good)).map(lambda n: good[:n]))
)
def test_no_bytes_at_all_make_reading_it_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, config: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        directory_with(folder, config).config()
    except ContextPlaneError as error:
        assert error.family == "refused"  # noqa: PT017  nothing may be raised at all, or else this


# --- how it is laid out -----------------------------------------------------------------------------------------------


def lay_out(path: Path, disk: Disk) -> None:
    directory = StoreDirectory(path=str(path))
    directory.lay_out(disk)
    directory.write_config(STORE_ID, disk)


def test_a_new_store_has_the_folders_and_the_modes_of_the_reference_and_a_closed_one_for_keys(tmp_path: Path) -> None:
    lay_out(tmp_path / ".ctx", Disk())
    umask = os.umask(0o022)
    os.umask(umask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / ".ctx").iterdir() if path.is_dir()}
    assert modes == {
        **dict.fromkeys(("objects", "packs", "refs", "drafts"), 0o777 & ~umask),
        "keys": 0o700 & ~umask,
    }
    config = msgspec.json.decode((tmp_path / ".ctx" / "config.json").read_bytes())
    assert config == {"version": "0.1", "format": FORMAT, "store_id": STORE_ID}


def test_laying_out_again_changes_nothing_that_is_there(tmp_path: Path) -> None:
    lay_out(tmp_path / ".ctx", Disk())
    (tmp_path / ".ctx" / "packs" / "kept").write_bytes(b"kept")
    (tmp_path / ".ctx" / "keys").chmod(0o500)
    lay_out(tmp_path / ".ctx", Disk())
    assert (tmp_path / ".ctx" / "packs" / "kept").read_bytes() == b"kept"
    assert stat.S_IMODE((tmp_path / ".ctx" / "keys").stat().st_mode) == 0o500


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EROFS, StorageReadOnly),
        (errno.EACCES, StorageReadOnly),
        (errno.EIO, StorageFailed),
    ],
)
def test_whatever_fails_the_configuration_is_whole_or_absent_and_the_next_try_succeeds(
    tmp_path: Path, number: int, error: type[ContextPlaneError]
) -> None:
    counting = Faults()
    lay_out(tmp_path / "sound", FaultyDisk(counting))
    assert counting.calls() > 10
    for nth in range(1, counting.calls() + 1):
        path = tmp_path / str(nth)
        with pytest.raises(error):
            lay_out(path, FaultyDisk(Faults().at("*", nth, OSError(number, os.strerror(number)))))
        if (path / "config.json").exists():
            assert StoreDirectory(path=str(path)).config().store_id == STORE_ID
        assert not list(path.glob(".*"))
        lay_out(path, Disk())
        assert StoreDirectory(path=str(path)).config().store_id == STORE_ID


def test_a_file_where_a_folder_belongs_is_told_and_kept(tmp_path: Path) -> None:
    (tmp_path / ".ctx").mkdir()
    (tmp_path / ".ctx" / "objects").write_bytes(b"mine")
    with pytest.raises(StorageFailed) as failed:
        lay_out(tmp_path / ".ctx", Disk())
    assert failed.value.at == str(tmp_path / ".ctx" / "objects")
    assert (tmp_path / ".ctx" / "objects").read_bytes() == b"mine"
