"""Processes that act on one store at once: who was slower takes turns, and no process is locked out."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contextplane.adapters.files.disk import hold_turn
from contextplane.app import platform as platform_module
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import Settings
from contextplane.ports.catalog import StreamConflict
from contextplane.store.staged_changes import retry_conflicts
from tests.unit.trust.world import key_of


class Desk:
    """Acts, in a turn or not: `tries` tells."""

    def __init__(self, conflicts: int) -> None:
        self.platform = self
        self.conflicts = conflicts
        self.tries: list[bool] = []
        self.has_turn = False

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        self.has_turn = True
        yield
        self.has_turn = False

    @retry_conflicts
    def act(self) -> int:
        self.tries.append(self.has_turn)
        if len(self.tries) <= self.conflicts:
            raise StreamConflict("another was faster")
        return len(self.tries)


@pytest.mark.parametrize(("conflicts", "turns"), [(0, []), (1, [True]), (3, [True] * 3)])
def test_a_turn_is_taken_from_the_second_try_on(conflicts: int, turns: list[bool]) -> None:
    desk = Desk(conflicts)
    assert desk.act() == conflicts + 1
    assert desk.tries == [False, *turns]


def test_the_last_conflict_is_told() -> None:
    desk = Desk(1000)
    with pytest.raises(StreamConflict):
        desk.act()
    assert len(desk.tries) == 33


def is_locked(folder: str) -> bool:
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Platform]:
    settings = Settings(cwd=str(tmp_path))
    init(settings)
    with open_platform(settings) as platform:
        yield platform


def test_a_turn_is_ours_within_the_block_and_in_blocks_within_it(opened: Platform) -> None:
    folder = opened.home.path
    for _ in range(2):
        with opened.take_turn():
            assert is_locked(folder)
            with opened.take_turn():
                assert is_locked(folder)
            assert is_locked(folder)
        assert not is_locked(folder)


def test_a_turn_that_does_not_come_in_time_is_not_waited_for(opened: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_module, "_TURN_SECONDS", 0.0)
    with hold_turn(opened.home.path, timeout=0), opened.take_turn():
        assert is_locked(opened.home.path)
    assert not is_locked(opened.home.path)


def test_no_other_process_waits_while_a_device_is_asked_to_sign(opened: Platform) -> None:
    KeyStore(opened, lambda: None, external_signer=lambda: key_of("root"))
    with opened.take_turn():
        assert not is_locked(opened.home.path)
    KeyStore(opened, lambda: None)
    with opened.take_turn():
        assert is_locked(opened.home.path)


@pytest.mark.parametrize("place", ["missing", "a file", "closed"])
def test_where_nothing_can_be_locked_there_are_no_turns(tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "closed").mkdir(mode=0)
    entered = False
    with hold_turn(str(tmp_path / place), timeout=0):
        entered = True
    assert entered
