"""Landlock and seccomp, each in a thread: which files and which system calls stay allowed."""

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.adapters.tools.landlock import restrict
from contextplane.adapters.tools.sandbox import Workspace, library_paths, path_access
from contextplane.adapters.tools.seccomp import install_filter
from tests.unit.adapters.sandbox_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def in_a_thread(restrict_thread: Callable[[], bool], act: Callable[[], object]) -> object:
    """Run `act` in a restricted thread; return its result or the type of its error."""
    results: list[object] = []

    def run() -> None:
        if restrict_thread():
            try:
                results.append(act())
            except OSError as error:
                results.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if not results:
        pytest.skip("this system has no such wall")
    return results[0]


def restricted(world: World, act: Callable[[], object], *, scratch: str = "", allow_connect: bool = False) -> object:
    paths = path_access(world.workspace(), library_paths(), scratch=scratch)
    return in_a_thread(lambda: restrict(paths, allow_connect=allow_connect), act)


def filtered(act: Callable[[], object], *, allow_connect: bool = False) -> object:
    # Landlock comes first: it sets no_new_privs, which seccomp needs.
    paths = path_access(Workspace("/"), (), scratch="")
    return in_a_thread(lambda: restrict(paths, allow_connect=True) and install_filter(allow_connect=allow_connect), act)


def test_our_own_tools_read_the_workspace_as_it_is_now_and_write_nothing(world: World) -> None:
    assert restricted(world, (world.root / "a.txt").read_text) == "alpha"
    assert restricted(world, (world.root / "deep" / "er" / "c.txt").read_text) == "gamma"
    assert restricted(world, world.outside.read_text) is PermissionError
    assert restricted(world, (world.root / "out").read_text) is PermissionError
    assert restricted(world, lambda: list(world.root.parent.iterdir())) is PermissionError
    assert restricted(world, (world.root / "new").touch) is PermissionError
    assert restricted(world, (world.root / "a.txt").unlink) is PermissionError


def test_to_code_of_others_the_store_is_closed_and_a_scratch_folder_is_open(world: World, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def restricted_foreign(act: Callable[[], object]) -> object:
        return restricted(world, act, scratch=str(scratch))

    assert restricted_foreign((world.root / "a.txt").read_text) == "alpha"
    assert restricted_foreign((world.root / "deep" / "b.txt").read_text) == "beta"
    assert restricted_foreign((world.root / "deep" / "er" / "c.txt").read_text) == "gamma"
    assert restricted_foreign((world.store / "config.json").read_text) is PermissionError
    assert restricted_foreign((world.root / ".ctx" / "config.json").read_text) is PermissionError
    assert restricted_foreign((world.root / "out").read_text) is PermissionError
    assert restricted_foreign((world.root / "new").touch) is PermissionError
    assert restricted_foreign((scratch / "new").touch) is None
    assert restricted_foreign((scratch / "new").unlink) is None
    assert restricted_foreign(lambda: os.mkfifo(scratch / "pipe")) is PermissionError


def test_a_workspace_without_a_store_in_it_is_open_as_a_whole(world: World) -> None:
    plain = Workspace(str(world.root / "deep" / "er"), str(world.store))
    assert list(plain.parts_without_store(plain.root)) == [(plain.root, True)]
    assert list(plain.parts_without_store(str(world.store))) == []


def test_behind_the_wall_no_program_is_started(world: World) -> None:
    assert restricted(world, lambda: subprocess.run(["/bin/true"], check=False)) is PermissionError


def test_behind_the_wall_a_port_is_reached_only_when_that_is_allowed(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def connect() -> None:
            socket.create_connection(server.getsockname()).close()

        closed = restricted(world, connect)
        if closed is None:
            pytest.skip("this kernel's wall knows no network")
        assert closed is PermissionError
        assert restricted(world, connect, allow_connect=True) is None


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
        states = []
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
            try:
                socket.socket(family).close()
                states.append("open")
            except PermissionError:
                states.append("closed")
        for end in socket.socketpair():
            end.close()
        return states

    assert filtered(sockets) == ["closed"] * 3
    assert filtered(sockets, allow_connect=True) == ["open", "open", "closed"]
    assert filtered(lambda: tmp_path.chmod(0o700)) is PermissionError


def test_calls_that_came_later_than_the_filter_are_not_there() -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def errno_of(number: int) -> int:
        libc.syscall(number, None, 0, 0, 0)
        return ctypes.get_errno()

    assert filtered(lambda: errno_of(9999)) == 38
    assert filtered(lambda: errno_of(435)) == 38  # clone3, whose flags no filter sees
    assert filtered(lambda: errno_of(425)) == 1  # io_uring_setup, which would make calls that no filter sees
