"""Registered packs as files: who made an entry, and what is healed."""

import errno
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextplane.adapters.files.disk import write_atomically
from contextplane.adapters.files.pack_entries import MAX_ENTRY_BYTES, FileExecutionEntries
from contextplane.model.execution.manifest import registry_entry
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest
from contextplane.ports.objects import StorageFailed
from contextplane.testing.faults import Faults, FaultyDisk

RAW = b'{"hash":"","steps":[],"version":"1.0"}'
PACK = Digest.of(RAW)
COPY = RAW.replace(b'"hash":""', f'"hash":"{PACK}"'.encode())


class Now:
    def now(self) -> datetime:
        return datetime(2026, 5, 9, tzinfo=UTC)


@pytest.fixture
def entries(tmp_path: Path) -> FileExecutionEntries:
    for folder in ("packs", "staging"):
        (tmp_path / folder).mkdir()
    return FileExecutionEntries(str(tmp_path / "packs"), str(tmp_path / "staging"), Now())


def test_of_many_who_add_a_pack_at_once_one_hears_that_it_is_new(entries: FileExecutionEntries, tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    results: list[bool] = []

    def add() -> None:
        barrier.wait()
        results.append(entries.add(PACK, COPY))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 7 + [True]
    assert entries.read(PACK) == COPY
    assert list((tmp_path / "staging").iterdir()) == []


@pytest.mark.parametrize("new", [True, False])
def test_a_small_file_whose_bytes_cannot_be_synced_never_gets_its_name(tmp_path: Path, *, new: bool) -> None:
    faults = Faults().at("sync", 1, OSError(errno.EIO, "broken"))
    target, disk = str(tmp_path / "config.json"), FaultyDisk(faults)
    with pytest.raises(OSError, match="broken"):
        write_atomically(target, b"{}", staging=str(tmp_path), disk=disk, new=new)
    assert list(tmp_path.iterdir()) == []
    write_atomically(target, b"{}", staging=str(tmp_path), disk=disk, new=new)
    assert (tmp_path / "config.json").read_bytes() == b"{}"
    assert (faults.calls("sync"), faults.calls("sync_folder")) == (2, 1)


@pytest.mark.parametrize("there", [COPY, str(PACK).encode(), RAW[:10], b""])
def test_what_is_there_is_not_new_and_is_sound_afterwards(
    entries: FileExecutionEntries, tmp_path: Path, there: bytes
) -> None:
    (tmp_path / "packs" / PACK.hex).write_bytes(there)
    assert entries.add(PACK, COPY) is False
    assert entries.read(PACK) in {COPY, str(PACK).encode()}


@pytest.mark.parametrize("less", [0, 10])
def test_the_entry_of_a_manifest_as_large_as_one_may_be_is_read_back_and_kept(
    entries: FileExecutionEntries, tmp_path: Path, less: int
) -> None:
    room = MAX_MANIFEST_BYTES - len(RAW) - len(b'"":"",') - less
    raw = RAW.replace(b"{", b'{"":"' + b"x" * room + b'",', 1)
    pack = Digest.of(raw)
    assert len(raw) == MAX_MANIFEST_BYTES - less
    assert entries.add(pack, registry_entry(raw, pack))
    assert entries.read(pack) == registry_entry(raw, pack)
    before = (tmp_path / "packs" / pack.hex).stat().st_ino
    assert not entries.add(pack, registry_entry(raw, pack))
    assert (tmp_path / "packs" / pack.hex).stat().st_ino == before  # it was not written anew


def test_an_entry_larger_than_any_copy_of_a_manifest_is_not_read(entries: FileExecutionEntries, tmp_path: Path) -> None:
    with (tmp_path / "packs" / PACK.hex).open("wb") as file:
        file.truncate(MAX_ENTRY_BYTES + 1)
    with pytest.raises(StorageFailed, match="larger than any manifest"):
        entries.read(PACK)
