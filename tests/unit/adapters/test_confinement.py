"""What foreign code cannot do in its process: change files, read outside, use the network, or leave a trace.

Everything is tried twice: as it is, and after the code has disabled the audit hook, when only the kernel confines it.
"""

import os
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextplane.adapters.tools.process import ProcessTools
from contextplane.ports.tools import ToolFailed
from tests.unit.adapters.sandbox_world import Try, World, run_tries

OUTSIDE = ["../secret", "/etc/passwd", "out", "up/secret", "deep/../../secret"]
STORES = [".ctx/config.json", "deep/kept/config.json"]
NEW = ["new", "deep/new", "../new", "/usr/lib/new", ".ctx/new", "deep/kept/new", "up/new"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("confines"))


@pytest.fixture(scope="module")
def tools(world: World) -> Iterator[ProcessTools]:
    with ProcessTools(world.options()) as tools:
        yield tools


@pytest.fixture(params=[False, True], ids=["hooked", "unhooked"])
def unhooked(request: pytest.FixtureRequest, tools: ProcessTools) -> bool:
    """Whether the code disables the audit hook first. Skipped where no kernel would confine it then."""
    tools.call("read_file", {"path": "a.txt"})
    if request.param and tools.confinement != "kernel":
        pytest.skip("this system has no wall")
    return bool(request.param)


def all_refused(tools: ProcessTools, *tries: Try, unhooked: bool) -> None:
    """Assert that every try fails with `PermissionError`."""
    outcomes = zip(tries, run_tries(tools, *tries, unhooked=unhooked), strict=True)
    assert [outcome for outcome in outcomes if outcome[1][0] != "PermissionError"] == []


def test_a_function_reads_no_file_outside_and_none_of_the_store(tools: ProcessTools, *, unhooked: bool) -> None:
    paths = [*OUTSIDE, *STORES, "/proc/self/environ", "/proc/self/mem", "/proc/self/root/etc/passwd"]
    all_refused(tools, *(("read", {"path": path}) for path in paths), unhooked=unhooked)
    elsewhere = [("deep", "../.ctx/config.json"), ("deep/er", "../../../secret"), ("deep", "kept/config.json")]
    if unhooked:  # the audit hook does not see the folder of a descriptor
        tries = (("read_elsewhere", {"folder": folder, "path": path}) for folder, path in elsewhere)
        all_refused(tools, *tries, unhooked=True)


def test_a_function_lists_no_folder_outside(tools: ProcessTools, *, unhooked: bool) -> None:
    # Landlock cannot allow listing a folder without its subfolders: without the hook the store's names are visible.
    paths = ["..", "/", "/etc", "up", *([] if unhooked else [".ctx", "deep/kept"])]
    all_refused(tools, *(("listed", {"path": path}) for path in paths), unhooked=unhooked)


def test_a_function_changes_nothing_at_all_outside_its_scratch_folder(
    tools: ProcessTools, world: World, *, unhooked: bool
) -> None:
    before = world.snapshot()
    there = [*OUTSIDE, *STORES, "a.txt", "deep/er/c.txt", "up/in"]
    changing = ("write", "remove", "cut", "change_mode", "change_times")
    tries: list[Try] = [(function, {"path": path}) for function in changing for path in there]
    tries += [(function, {"path": path}) for function in ("write", "make") for path in NEW]
    tries += [("link", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("rename", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("symlink", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("rename", {"old": "../secret", "new": "taken"}), ("remove_tree", {"path": "deep"})]
    all_refused(tools, *tries, unhooked=unhooked)
    assert world.snapshot() == before


def test_a_function_makes_no_pipe_and_no_device_nor_writes_by_a_folder_that_is_open(
    tools: ProcessTools, world: World, *, unhooked: bool
) -> None:
    before = world.snapshot()
    tries: list[Try] = []
    tries += [(function, {"path": path}) for function in ("make_pipe", "make_node") for path in NEW]
    tries += [("write_elsewhere", {"folder": ".", "path": path}) for path in (".ctx/new", "new", "../new")]
    tries += [("write_elsewhere", {"folder": "deep", "path": path}) for path in ("kept/config.json", "../.ctx/new")]
    tries += [("change_mode_when_open", {"path": "a.txt"})]
    if tools.confinement == "kernel":
        all_refused(tools, *tries, unhooked=unhooked)
        assert world.snapshot() == before


def test_a_function_begins_no_process_and_signals_none(tools: ProcessTools, *, unhooked: bool) -> None:
    hooked = ("fork", "run", "system", "spawn", "native")
    kernel = ("fork", "run", "spawn", "leave_session", "fork_without_asking")
    for function in kernel if unhooked else hooked:
        all_refused(tools, (function, {}), unhooked=unhooked)
    all_refused(tools, ("kill", {"pid": os.getpid()}), ("kill", {"pid": 0}), unhooked=unhooked)


def test_the_network_is_closed(tools: ProcessTools, tmp_path: Path, *, unhooked: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        port, path = server.getsockname()[1], str(tmp_path / "s")
        local.bind(path)
        local.listen()
        tries: list[Try] = [(function, {"port": port}) for function in ("connect", "connect_at_once", "send")]
        tries += [("local", {"path": path}), ("send_through_a_pair", {"path": path}), ("serve", {})]
        all_refused(tools, *tries, unhooked=unhooked)
    if not unhooked:
        looking = (("look_up", {"name": "localhost"}), ("look_up_otherwise", {"name": "localhost"}))
        all_refused(tools, *looking, unhooked=False)


def test_an_allowed_host_is_reached_by_its_name_and_no_other_is(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ProcessTools(world.options("127.0.0.1")) as tools:
        port = server.getsockname()[1]
        results = run_tries(tools, ("connect", {"port": port}), ("connect_at_once", {"port": port}))
        assert results == [("done", "None")] * 2
        all_refused(tools, ("look_up", {"name": "localhost"}), ("serve", {}), ("local", {"path": "s"}), unhooked=False)


def test_with_a_host_that_is_allowed_no_local_socket_is_and_nobody_is_served(tools: ProcessTools, world: World) -> None:
    tools.call("read_file", {"path": "a.txt"})
    if tools.confinement == "kernel":
        with ProcessTools(world.options("127.0.0.1")) as connecting:
            all_refused(connecting, ("local", {"path": "s"}), ("serve", {}), unhooked=True)


@pytest.mark.parametrize("function", ["memory", "large_file"])
def test_memory_and_files_have_a_limit(tools: ProcessTools, function: str) -> None:
    with pytest.raises(ToolFailed):
        tools.call("python", {"function": f"hostile:{function}"})


def test_ordinary_code_works(tools: ProcessTools, world: World) -> None:
    (world.root / "new.txt").write_text("it came later")
    with sqlite3.connect(world.root / "new.db") as database:
        database.execute("CREATE TABLE t (n)")
    database.close()
    paths = ("a.txt", "deep/b.txt", "deep/er/c.txt", "new.txt")
    files = run_tries(tools, *(("read", {"path": path}) for path in paths))
    assert files == [("done", text) for text in ("alpha", "beta", "gamma", "it came later")]
    assert tools.call("python", {"function": "hostile:ordinary"}) == b'["soon","thread","written"]'
    assert tools.call("python", {"function": "hostile:probe"}) == b"a default"
    others = run_tries(
        tools, ("listed", {"path": "deep"}), ("query", {"path": ":memory:"}), ("read", {"path": os.__file__})
    )
    assert [others[0], others[1], others[2][0]] == [("done", "['b.txt', 'er', 'kept']"), ("done", "(881,)"), "done"]
    if tools.confinement == "kernel":
        assert run_tries(tools, ("query", {"path": "new.db"})) == [("done", "(881,)")]
    for name in ("new.txt", "new.db"):
        (world.root / name).unlink()


def test_what_a_function_writes_into_its_scratch_folder_is_gone_with_it(tools: ProcessTools, world: World) -> None:
    (_, first), (_, again) = (run_tries(tools, ("scratch", {}))[0] for _ in range(2))
    assert first != again
    assert {Path(folder).parent for folder in (first, again)} == {Path(tempfile.gettempdir())}
    assert not Path(first).exists()
    assert not Path(again).exists()
    assert world.root not in Path(first).parents


def test_a_function_forges_no_answer_but_its_own(tools: ProcessTools) -> None:
    forge = {"function": "hostile:forge", "arguments": {"output": "forged"}}
    for _ in range(2):
        assert tools.call("python", forge) in {b"forged", b"its own"}
        assert tools.call("read_file", {"path": "a.txt"}) == b"alpha"
        assert tools.call("python", {"function": "hostile:probe"}) == b"a default"


def test_the_environment_is_what_it_was_given_and_the_scratch_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "881")
    with ProcessTools(world.options()) as tools:
        ((_, environment),) = run_tries(tools, ("environment", {}))
    assert "881" not in environment
    assert "'HOME': " in environment
    assert "'TMPDIR': " in environment
    assert "PATH" not in environment
