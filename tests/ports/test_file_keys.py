"""Keys in files: whole or absent, never replaced, and never accessible to other users."""

import errno
from pathlib import Path

import pytest

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.files.key_files import (
    FileKeys,
    KeyExists,
    KeyExposed,
    KeyNameInvalid,
    KeyNotFound,
    read_key_file,
    store_key_file,
)
from contextplane.errors import ContextPlaneError
from contextplane.ports.objects import StorageFull
from contextplane.testing.faults import Faults, FaultyDisk


def test_a_key_is_kept_and_read_again_and_what_is_remembered_is_the_last_thing_said(tmp_path: Path) -> None:
    keys = FileKeys(str(tmp_path / "keys"))
    assert (keys.names(), keys.recall("keyring")) == ([], None)
    keys.store_key("bob", b"private", b"public")
    keys.store_key("alice", b"other", b"public")
    assert keys.names() == ["alice", "bob"]
    assert keys.read("bob") == b"privatepublic"
    assert Path(keys.public_path("bob")).read_bytes() == b"public"
    for data in (b"one", b"two"):
        keys.remember("keyring", data)
        assert keys.recall("keyring") == data
    assert keys.recall("registry") is None


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    keys = FileKeys(str(tmp_path / "keys"))
    keys.store_key("alice", b"first", b"public")
    with pytest.raises(KeyExists):
        keys.store_key("alice", b"second", b"other")
    assert keys.read("alice") == b"firstpublic"
    assert Path(keys.public_path("alice")).read_bytes() == b"public"


@pytest.mark.parametrize("name", ["", "A", "a/b", "../a", ".a", "a.b", "ä", "a" * 65, "a\n"])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    keys = FileKeys(str(tmp_path / "keys"))
    for use in (keys.read, keys.public_path):
        with pytest.raises(KeyNameInvalid):
            use(name)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(KeyNotFound):
        FileKeys(str(tmp_path / "keys")).read("alice")
    with pytest.raises(KeyNotFound):
        read_key_file(str(tmp_path / "none"))


def test_a_folder_that_others_can_reach_gets_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o755)
    with pytest.raises(KeyExposed):
        FileKeys(str(folder)).store_key("alice", b"private", b"public")
    assert not list(folder.iterdir())
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(KeyExposed):
        FileKeys(str(tmp_path / "link")).names()


def count_calls(folder: Path) -> int:
    faults = Faults()
    FileKeys(str(folder), FaultyDisk(faults)).store_key("alice", b"private", b"public")
    return faults.calls()


def test_a_full_disk_leaves_a_whole_key_or_none(tmp_path: Path) -> None:
    number = count_calls(tmp_path / "counted")
    assert number > 5
    for nth in range(1, number + 1):
        folder = tmp_path / str(nth)
        full = OSError(errno.ENOSPC, "no room", str(folder))
        with pytest.raises(StorageFull):
            FileKeys(str(folder), FaultyDisk(Faults().at("*", nth, full))).store_key("alice", b"private", b"public")
        keys = FileKeys(str(folder))
        for name in keys.names():
            assert keys.read(name) == b"privatepublic"
        files = list(folder.iterdir()) if folder.exists() else []
        assert not [path for path in files if path.stat().st_mode & 0o077]
        assert not [path for path in files if path.name.startswith(".")]


def test_a_key_that_stands_alone_is_private_and_replaces_no_file(tmp_path: Path) -> None:
    path = tmp_path / "bob.key"
    public = Path(store_key_file(str(path), b"private", b"public"))
    assert (path.read_bytes(), public.read_bytes()) == (b"privatepublic", b"public")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key_file(str(path)) == b"privatepublic"
    path.unlink()
    for target in (public, tmp_path / "other.key"):  # the public half is there, then the private one
        target.write_bytes(b"before")
        with pytest.raises(KeyExists) as refused:
            store_key_file(str(target).removesuffix(".pub"), b"private", b"public")
        assert refused.value.at == str(target)
        assert target.read_bytes() == b"before"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(KeyExists):
        store_key_file(str(tmp_path / "dangling"), b"private", b"public")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bob.key.pub", "dangling", "other.key"]


class RacingDisk(Disk):
    """A disk on which another program makes a file just before ours gets its name."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def sync(self, fd: int) -> None:
        self.target.write_bytes(b"theirs")
        super().sync(fd)


@pytest.mark.parametrize("name", ["k", "k.pub"])
def test_a_file_that_another_program_makes_meanwhile_is_kept(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyExists) as refused:
        store_key_file(str(tmp_path / "k"), b"private", b"public", RacingDisk(tmp_path / name))
    assert refused.value.at == str(tmp_path / name)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"theirs")]


def test_a_full_disk_leaves_no_file_of_a_standalone_key(tmp_path: Path) -> None:
    faults = Faults()
    store_key_file(str(tmp_path / "counted"), b"private", b"public", FaultyDisk(faults))
    number = faults.calls()
    assert number > 5
    for nth in range(1, number + 1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        disk = FaultyDisk(Faults().at("*", nth, OSError(errno.ENOSPC, "no room", str(folder))))
        with pytest.raises(StorageFull):
            store_key_file(str(folder / "k"), b"private", b"public", disk)
        assert not list(folder.iterdir())


def test_no_error_shows_what_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    failing = FaultyDisk(Faults().at("sync", 1, OSError(errno.EIO, "broken", "somewhere")))
    with pytest.raises(ContextPlaneError) as failed:
        FileKeys(str(folder), failing).store_key("alice", b"hush", b"public")
    assert "hush" not in str(failed.value)
