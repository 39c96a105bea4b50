"""What a client remembers of a store: whole or absent, private, never lost, and no obstacle to reading."""

import errno
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.adapters.files import client_state
from contextplane.adapters.files.client_state import ClientState, ClientStateInvalid, StoreMemory
from contextplane.adapters.files.disk import hold_lock
from contextplane.app.settings import Settings, from_environment
from contextplane.ports.objects import StorageFailed
from contextplane.testing.faults import Faults, FaultyDisk

FULL = StoreMemory(
    path="",
    origin="contextplane.registry/store_0",
    note="a\nb\n",
    keyring_seq=3,
    keyring_head="ab",
    trust_root=("cd",),
    judged=("ef", "01"),
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "project" / ".ctx"
    path.mkdir(parents=True)
    return path


def state_of(tmp_path: Path, store: Path) -> ClientState:
    return ClientState(str(tmp_path / "state" / "contextplane" / "stores"), str(store))


def test_what_is_saved_is_loaded_and_forgotten(tmp_path: Path, store: Path) -> None:
    state = state_of(tmp_path, store)
    empty = StoreMemory(path=str(store))
    assert state.load() == empty
    state.forget()
    assert state.save(FULL)
    assert state_of(tmp_path, store).load() == replace(FULL, path=str(store))
    state.forget()
    assert state.load() == empty


def test_each_place_has_its_own_memory_and_a_link_above_it_leads_to_the_same(tmp_path: Path, store: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.mkdir()
    link.symlink_to(store.parent)
    assert state_of(tmp_path, store).save(FULL)
    assert state_of(tmp_path, other).load() == StoreMemory(path=str(other))
    assert state_of(tmp_path, link / store.name).load().note == FULL.note


def test_a_link_that_is_put_in_the_place_of_a_store_leads_to_no_other_memory(tmp_path: Path, store: Path) -> None:
    assert state_of(tmp_path, store).save(FULL)
    store.rename(tmp_path / "moved")
    store.symlink_to(tmp_path / "moved")
    assert state_of(tmp_path, store).load().note == FULL.note


def test_a_path_that_is_not_text_is_remembered_too(tmp_path: Path) -> None:
    state = ClientState(str(tmp_path / "state"), os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert state.save(FULL)
    assert state.load().note == FULL.note


def test_only_this_user_can_access_it(tmp_path: Path, store: Path) -> None:
    state_of(tmp_path, store).save(FULL)
    paths = [tmp_path / "state", *(tmp_path / "state").rglob("*")]
    assert len(paths) == 5  # three folders, the lock and the file
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"path":1}', b'{"path":"/other"}', b"\xff", b"[" * 100_000, b'{"path":"","x":1}']
)
def test_what_cannot_be_parsed_is_refused_with_its_place_and_the_way_out(
    tmp_path: Path, store: Path, content: bytes
) -> None:
    state = state_of(tmp_path, store)
    state.save(FULL)
    Path(state.path).write_bytes(content)
    for use in (state.load, lambda: state.update(lambda memory: memory)):
        with pytest.raises(ClientStateInvalid) as refused:
            use()
        assert refused.value.at == state.path
        assert "remove it" in (refused.value.hint or "")
    assert Path(state.path).read_bytes() == content
    state.forget()
    assert state.save(FULL)


def test_what_is_too_large_is_neither_written_nor_read(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(tmp_path, store)
    state.save(FULL)
    size = Path(state.path).stat().st_size
    monkeypatch.setattr(client_state, "_MAX_BYTES", size)
    assert state.load().note == FULL.note
    assert not state.save(replace(FULL, note=FULL.note + "c"))
    assert state.load().note == FULL.note
    monkeypatch.setattr(client_state, "_MAX_BYTES", size - 1)
    with pytest.raises(ClientStateInvalid):
        state.load()


def test_a_link_is_refused_and_not_followed(tmp_path: Path, store: Path) -> None:
    state = state_of(tmp_path, store)
    state.save(FULL)
    path = Path(state.path)
    path.symlink_to(path.rename(tmp_path / "elsewhere"))
    with pytest.raises(ClientStateInvalid, match="link"):
        state.load()


def test_a_file_or_folder_that_others_can_read_is_refused(tmp_path: Path, store: Path) -> None:
    state = state_of(tmp_path, store)
    state.save(FULL)
    Path(state.path).chmod(0o640)
    with pytest.raises(ClientStateInvalid, match="others can reach it"):
        state.load()
    Path(state.path).chmod(0o600)
    folder = Path(state.path).parent
    folder.chmod(0o750)
    for use in (state.load, lambda: state.save(FULL)):
        with pytest.raises(ClientStateInvalid, match="others can reach it") as refused:
            use()
        assert refused.value.at == str(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_or_folder_of_another_user_is_refused(tmp_path: Path, store: Path) -> None:
    state = state_of(tmp_path, store)
    state.save(FULL)
    for path in (Path(state.path), Path(state.path).parent):
        os.chown(path, 65534, 65534)
        with pytest.raises(ClientStateInvalid, match="belongs to another user"):
            state.load()
        os.chown(path, 0, 0)
    assert state.load().note == FULL.note


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, store: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "stores").symlink_to(tmp_path / "real")
    state = ClientState(str(tmp_path / "stores"), str(store))
    for use in (state.load, lambda: state.save(FULL)):
        with pytest.raises(ClientStateInvalid, match="not a folder"):
            use()
    assert not list((tmp_path / "real").iterdir())


@pytest.mark.parametrize("folder", [None, "/dev/null/state", "/proc/none/state"])
def test_without_a_place_to_write_to_nothing_is_remembered_and_nothing_fails(store: Path, folder: str | None) -> None:
    state = ClientState(folder, str(store))
    assert state.load() == StoreMemory(path=str(store))
    assert not state.save(FULL)
    assert not state.update(lambda memory: replace(memory, note="c"))
    state.forget()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_full_or_read_only_disk_leaves_what_was_there(tmp_path: Path, store: Path, code: int) -> None:
    faults = Faults()
    folder = str(tmp_path / "counted" / "stores")
    assert ClientState(folder, str(store), FaultyDisk(faults)).save(FULL)
    assert faults.calls() > 5
    for nth in range(1, faults.calls() + 1):
        folder = str(tmp_path / str(nth) / "stores")
        ClientState(folder, str(store)).save(FULL)
        failing = FaultyDisk(Faults().at("*", nth, OSError(code, "no", folder)))
        saved = ClientState(folder, str(store), failing).save(replace(FULL, note="c"))
        note = ClientState(folder, str(store)).load().note
        assert note == "c" if saved else note in {FULL.note, "c"}
        assert not [path for path in Path(folder).iterdir() if path.name.startswith(".")]


def test_a_broken_disk_is_an_error(tmp_path: Path, store: Path) -> None:
    failing = FaultyDisk(Faults().at("sync", 1, OSError(errno.EIO, "broken", "somewhere")))
    state = ClientState(str(tmp_path / "stores"), str(store), failing)
    with pytest.raises(StorageFailed):
        state.save(FULL)
    assert state.load() == StoreMemory(path=str(store))


def test_an_update_sees_what_is_there_and_writes_only_a_change(tmp_path: Path, store: Path) -> None:
    state = state_of(tmp_path, store)
    assert state.update(lambda memory: replace(memory, note="c"))
    before = Path(state.path).stat().st_ino
    assert state.update(lambda memory: replace(memory, note=memory.note))
    assert Path(state.path).stat().st_ino == before
    assert state.update(lambda memory: replace(memory, note=memory.note + "d"))
    assert state.load().note == "cd"


def test_a_lock_that_is_not_released_stops_no_reading(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_state, "_LOCK_SECONDS", 0.0)
    state = state_of(tmp_path, store)
    state.save(FULL)
    with hold_lock(str(Path(state.path).parent / "lock"), exclusive=False, timeout=0):
        assert not state.update(lambda memory: replace(memory, note="c"))
        assert state.load().note == FULL.note
    assert state.update(lambda memory: replace(memory, note="c"))


def count_up(folder: str, store: str, times: int) -> None:
    for _ in range(times):
        assert ClientState(folder, store).update(lambda memory: replace(memory, keyring_seq=memory.keyring_seq + 1))


def test_no_update_of_several_processes_is_lost(tmp_path: Path, store: Path) -> None:
    folder = str(tmp_path / "stores")
    start = multiprocessing.get_context("spawn")
    processes = [start.Process(target=count_up, args=(folder, str(store), 20)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert ClientState(folder, str(store)).load().keyring_seq == 60


def test_the_folder_is_that_of_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/alice")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert from_environment().state_dir == "/state/contextplane/stores"
    assert Settings(cwd="/").state_dir == "/state/contextplane/stores"
    for text in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", text)
        assert from_environment().state_dir == "/people/alice/.local/state/contextplane/stores"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert from_environment().state_dir == "/people/alice/.local/state/contextplane/stores"
    monkeypatch.setenv("HOME", "relative")
    assert from_environment().state_dir is None
    assert Settings(cwd="/", state_dir=None).state_dir is None


def test_no_test_uses_the_state_of_the_person_who_runs_it() -> None:
    folder = from_environment().state_dir
    assert folder is not None
    assert not Path(folder).is_relative_to(Path.home() / ".local" / "state")
