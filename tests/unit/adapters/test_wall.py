"""The wall of the kernel, in a thread of its own: which files it leaves open, and which calls of the system."""

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.adapters.tools.landlock import wall_in
from contextplane.adapters.tools.sandbox import Workspace, libraries, reach_of
from contextplane.adapters.tools.seccomp import filter_in
from tests.unit.adapters.confining import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def in_a_thread(stand: Callable[[], bool], act: Callable[[], object]) -> object:
    """What comes of it behind a wall, which stands for one thread only."""
    came: list[object] = []

    def behind() -> None:
        if stand():
            try:
                came.append(act())
            except OSError as error:
                came.append(type(error))

    thread = threading.Thread(target=behind)
    thread.start()
    thread.join()
    if not came:
        pytest.skip("this system has no such wall")
    return came[0]


def walled(world: World, act: Callable[[], object], *, scratch: str = "", connecting: bool = False) -> object:
    reach = reach_of(world.workspace(), libraries(), scratch=scratch)
    return in_a_thread(lambda: wall_in(reach, connecting=connecting), act)


def filtered(act: Callable[[], object], *, connecting: bool = False) -> object:
    # The wall of files comes first: it is what promises that no new privileges are taken.
    reach = reach_of(Workspace("/"), (), scratch="")
    return in_a_thread(lambda: wall_in(reach, connecting=True) and filter_in(connecting=connecting), act)


def test_our_own_tools_read_the_workspace_as_it_is_now_and_write_nothing(world: World) -> None:
    assert walled(world, (world.root / "a.txt").read_text) == "alpha"
    assert walled(world, (world.root / "deep" / "er" / "c.txt").read_text) == "gamma"
    assert walled(world, world.outside.read_text) is PermissionError
    assert walled(world, (world.root / "out").read_text) is PermissionError
    assert walled(world, lambda: list(world.root.parent.iterdir())) is PermissionError
    assert walled(world, (world.root / "new").touch) is PermissionError
    assert walled(world, (world.root / "a.txt").unlink) is PermissionError


def test_to_code_of_others_the_store_is_closed_and_a_scratch_folder_is_open(world: World, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def inside(act: Callable[[], object]) -> object:
        return walled(world, act, scratch=str(scratch))

    assert inside((world.root / "a.txt").read_text) == "alpha"
    assert inside((world.root / "deep" / "b.txt").read_text) == "beta"
    assert inside((world.root / "deep" / "er" / "c.txt").read_text) == "gamma"
    assert inside((world.store / "config.json").read_text) is PermissionError
    assert inside((world.root / ".ctx" / "config.json").read_text) is PermissionError
    assert inside((world.root / "out").read_text) is PermissionError
    assert inside((world.root / "new").touch) is PermissionError
    assert inside((scratch / "new").touch) is None
    assert inside((scratch / "new").unlink) is None
    assert inside(lambda: os.mkfifo(scratch / "pipe")) is PermissionError


def test_a_workspace_without_a_store_in_it_is_open_as_a_whole(world: World) -> None:
    plain = Workspace(str(world.root / "deep" / "er"), str(world.store))
    assert list(plain.around_store(plain.root)) == [(plain.root, True)]
    assert list(plain.around_store(str(world.store))) == []


def test_behind_the_wall_no_program_is_started(world: World) -> None:
    assert walled(world, lambda: subprocess.run(["/bin/true"], check=False)) is PermissionError


def test_behind_the_wall_a_port_is_reached_only_when_that_is_allowed(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect() -> None:
            socket.create_connection(server.getsockname()).close()

        closed = walled(world, connect)
        if closed is None:
            pytest.skip("this kernel's wall knows no network")
        assert closed is PermissionError
        assert walled(world, connect, connecting=True) is None


def test_the_filter_lets_threads_begin_and_processes_not() -> None:
    def thread() -> str:
        done: list[str] = []
        inner = threading.Thread(target=done.append, args=("done",))
        inner.start()
        inner.join()
        return done[0]

    assert filtered(thread) == "done"
    assert filtered(os.fork) is PermissionError
    assert filtered(lambda: os.kill(os.getpid(), 0)) is None
    assert filtered(lambda: os.kill(os.getppid(), 0)) is PermissionError
    assert filtered(os.setsid) is PermissionError


def test_the_filter_knows_sockets_by_their_family(tmp_path: Path) -> None:
    def sockets() -> list[str]:
        found = []
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
            try:
                socket.socket(family).close()
                found.append("open")
            except PermissionError:
                found.append("closed")
        for one in socket.socketpair():
            one.close()
        return found

    assert filtered(sockets) == ["closed"] * 3
    assert filtered(sockets, connecting=True) == ["open", "open", "closed"]
    assert filtered(lambda: tmp_path.chmod(0o700)) is PermissionError


def test_calls_that_came_later_than_the_filter_are_not_there() -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def errno_of(number: int) -> int:
        libc.syscall(number, None, 0, 0, 0)
        return ctypes.get_errno()

    assert filtered(lambda: errno_of(9999)) == 38
    assert filtered(lambda: errno_of(435)) == 38  # clone3, whose flags no filter sees
    assert filtered(lambda: errno_of(425)) == 1  # io_uring_setup, which would make calls that no filter sees
