"""What code of others cannot do in its process: change anything, look outside, reach the network, or leave a trace.

Everything is tried as it comes, and once more after the code has torn down the fence, when only the kernel holds it.
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
from tests.unit.adapters.confining import Try, World, tried

OUTSIDE = ["../secret", "/etc/passwd", "out", "up/secret", "deep/../../secret"]
STORES = [".ctx/config.json", "deep/kept/config.json"]
NEW = ["new", "deep/new", "../new", "/usr/lib/new", ".ctx/new", "deep/kept/new", "up/new"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("confines"))


@pytest.fixture(scope="module")
def tools(world: World) -> Iterator[ProcessTools]:
    with ProcessTools(world.confines()) as tools:
        yield tools


@pytest.fixture(params=[False, True], ids=["fenced", "unfenced"])
def unfenced(request: pytest.FixtureRequest, tools: ProcessTools) -> bool:
    """Whether the code tears down the fence first. Where no kernel would hold it then, that is not tried."""
    tools.call("read_file", {"path": "a.txt"})
    if request.param and tools.confinement != "kernel":
        pytest.skip("this system has no wall")
    return bool(request.param)


def all_refused(tools: ProcessTools, *tries: Try, unfenced: bool) -> None:
    """Every one of these fails, and says that it was not allowed."""
    ended = zip(tries, tried(tools, *tries, unfenced=unfenced), strict=True)
    assert [one for one in ended if one[1][0] != "PermissionError"] == []


def test_a_function_reads_no_file_outside_and_none_of_the_store(tools: ProcessTools, *, unfenced: bool) -> None:
    paths = [*OUTSIDE, *STORES, "/proc/self/environ", "/proc/self/mem", "/proc/self/root/etc/passwd"]
    all_refused(tools, *(("read", {"path": path}) for path in paths), unfenced=unfenced)
    elsewhere = [("deep", "../.ctx/config.json"), ("deep/er", "../../../secret"), ("deep", "kept/config.json")]
    if unfenced:  # the folder of a descriptor is what the fence cannot see
        tries = (("read_elsewhere", {"folder": folder, "path": path}) for folder, path in elsewhere)
        all_refused(tools, *tries, unfenced=True)


def test_a_function_lists_no_folder_outside(tools: ProcessTools, *, unfenced: bool) -> None:
    # The kernel knows no listing of a folder without those in it: to code without a fence the store's names are open.
    paths = ["..", "/", "/etc", "up", *([] if unfenced else [".ctx", "deep/kept"])]
    all_refused(tools, *(("listed", {"path": path}) for path in paths), unfenced=unfenced)


def test_a_function_changes_nothing_at_all_outside_its_scratch_folder(
    tools: ProcessTools, world: World, *, unfenced: bool
) -> None:
    before = world.as_it_is()
    there = [*OUTSIDE, *STORES, "a.txt", "deep/er/c.txt", "up/in"]
    changing = ("write", "remove", "cut", "change_mode", "change_times")
    tries: list[Try] = [(function, {"path": path}) for function in changing for path in there]
    tries += [(function, {"path": path}) for function in ("write", "make") for path in NEW]
    tries += [("link", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("rename", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("symlink", {"old": "a.txt", "new": new}) for new in NEW]
    tries += [("rename", {"old": "../secret", "new": "taken"}), ("remove_tree", {"path": "deep"})]
    all_refused(tools, *tries, unfenced=unfenced)
    assert world.as_it_is() == before


def test_a_function_makes_no_pipe_and_no_device_nor_writes_by_a_folder_that_is_open(
    tools: ProcessTools, world: World, *, unfenced: bool
) -> None:
    before = world.as_it_is()
    tries: list[Try] = []
    tries += [(function, {"path": path}) for function in ("make_pipe", "make_node") for path in NEW]
    tries += [("write_elsewhere", {"folder": ".", "path": path}) for path in (".ctx/new", "new", "../new")]
    tries += [("write_elsewhere", {"folder": "deep", "path": path}) for path in ("kept/config.json", "../.ctx/new")]
    tries += [("change_mode_when_open", {"path": "a.txt"})]
    if tools.confinement == "kernel":
        all_refused(tools, *tries, unfenced=unfenced)
        assert world.as_it_is() == before


def test_a_function_begins_no_process_and_signals_none(tools: ProcessTools, *, unfenced: bool) -> None:
    fenced = ("fork", "run", "system", "spawn", "native")
    kernel = ("fork", "run", "spawn", "leave_session", "fork_without_asking")
    for function in kernel if unfenced else fenced:
        all_refused(tools, (function, {}), unfenced=unfenced)
    all_refused(tools, ("kill", {"pid": os.getpid()}), ("kill", {"pid": 0}), unfenced=unfenced)


def test_the_network_is_closed(tools: ProcessTools, tmp_path: Path, *, unfenced: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        port, path = server.getsockname()[1], str(tmp_path / "s")
        local.bind(path)
        local.listen()
        tries: list[Try] = [(function, {"port": port}) for function in ("connect", "connect_at_once", "send")]
        tries += [("local", {"path": path}), ("send_through_a_pair", {"path": path}), ("serve", {})]
        all_refused(tools, *tries, unfenced=unfenced)
    if not unfenced:
        looking = (("look_up", {"name": "localhost"}), ("look_up_otherwise", {"name": "localhost"}))
        all_refused(tools, *looking, unfenced=False)


def test_an_allowed_host_is_reached_by_its_name_and_no_other_is(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ProcessTools(world.confines("127.0.0.1")) as tools:
        port = server.getsockname()[1]
        asked = tried(tools, ("connect", {"port": port}), ("connect_at_once", {"port": port}))
        assert asked == [("done", "None")] * 2
        all_refused(tools, ("look_up", {"name": "localhost"}), ("serve", {}), ("local", {"path": "s"}), unfenced=False)


def test_with_a_host_that_is_allowed_no_local_socket_is_and_nobody_is_served(tools: ProcessTools, world: World) -> None:
    tools.call("read_file", {"path": "a.txt"})
    if tools.confinement == "kernel":
        with ProcessTools(world.confines("127.0.0.1")) as connecting:
            all_refused(connecting, ("local", {"path": "s"}), ("serve", {}), unfenced=True)


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
    files = tried(tools, *(("read", {"path": path}) for path in paths))
    assert files == [("done", text) for text in ("alpha", "beta", "gamma", "it came later")]
    assert tools.call("python", {"function": "hostile:ordinary"}) == b'["soon","thread","written"]'
    assert tools.call("python", {"function": "hostile:probe"}) == b"a default"
    rest = tried(tools, ("listed", {"path": "deep"}), ("query", {"path": ":memory:"}), ("read", {"path": os.__file__}))
    assert [rest[0], rest[1], rest[2][0]] == [("done", "['b.txt', 'er', 'kept']"), ("done", "(881,)"), "done"]
    if tools.confinement == "kernel":
        assert tried(tools, ("query", {"path": "new.db"})) == [("done", "(881,)")]
    for name in ("new.txt", "new.db"):
        (world.root / name).unlink()


def test_what_a_function_writes_into_its_scratch_folder_is_gone_with_it(tools: ProcessTools, world: World) -> None:
    (_, first), (_, again) = (tried(tools, ("scratch", {}))[0] for _ in range(2))
    assert first != again
    assert {Path(one).parent for one in (first, again)} == {Path(tempfile.gettempdir())}
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
    with ProcessTools(world.confines()) as tools:
        ((_, told),) = tried(tools, ("environment", {}))
    assert "881" not in told
    assert "'HOME': " in told
    assert "'TMPDIR': " in told
    assert "PATH" not in told
