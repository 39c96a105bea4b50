"""Tools that run again: what each gives, what none of them reaches, and that every call ends."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.tools.process import Confines, ProcessTools
from contextplane.adapters.tools.tool import BUILT_IN, OUTPUT_MOST
from contextplane.adapters.tools.wire import Request, framed, wire_bytes
from contextplane.adapters.tools.worker import answered, tools_of
from contextplane.errors import ContextPlaneError
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown

SECRET = b"nobody may read this 881"
MODULE = """
import fcntl, os, subprocess
from os.path import join

def double(n): return {"twice": n * 2}
def text(): return "t\\u00ebxt"
def raw():
    print("noise")
    return b"\\x00\\xff"
def where(): return [os.getpid(), os.getcwd()]
def large(n): return b"x" * n
def odd(): return object()
def broken(): raise ValueError("no")
def leave(): raise SystemExit("bye")
def die(): os._exit(3)
def hang():
    while True:
        pass
def leave_a_child_behind():
    fd = os.open("lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    subprocess.Popen(["sleep", "600"], pass_fds=[fd])
    os.close(fd)
def _hidden(): return 1
"""


class Workspace:
    """A folder with everything in it that a tool could stumble over, and a secret beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        (self.root / "sub").mkdir(parents=True)
        (self.root / ".ctx").mkdir()
        (folder / "secret").write_bytes(SECRET)
        (self.root / "a.txt").write_bytes(b"alpha\nbeta 881\n")
        (self.root / "sub" / "b.txt").write_bytes(b"881 first\r\nsecond\n881")
        (self.root / "sub" / "binary").write_bytes(b"\0 881")
        (self.root / ".ctx" / "config.json").write_bytes(b"881")
        (self.root / "link_in").symlink_to("a.txt")
        (self.root / "link_out").symlink_to("../secret")
        (self.root / "link_folder").symlink_to("..")
        (self.root / "link_device").symlink_to("/dev/zero")
        os.mkfifo(self.root / "pipe")
        (self.root / "workmodule.py").write_text(MODULE)

    def confines(self, seconds: float = 60.0, *, allowing: bool = True) -> Confines:
        allowed = ("workmodule",) if allowing else ()
        return Confines(root=str(self.root), hosts=("127.0.0.1",), modules=allowed, seconds=seconds)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """One for all tests here: none of them changes what another one looks at."""
    return Workspace(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def tools(workspace: Workspace) -> Iterator[ProcessTools]:
    with ProcessTools(workspace.confines()) as tools:
        yield tools


def python(tools: ProcessTools, function: str, **arguments: object) -> bytes:
    return tools.call("python", {"function": f"workmodule:{function}", "arguments": arguments})


def worker_of(tools: ProcessTools) -> int:
    pid, _ = msgspec.json.decode(python(tools, "where"), type=tuple[int, str])
    return pid


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["path", "file_path"])
@pytest.mark.parametrize("path", ["a.txt", "./sub/../a.txt", "link_in"])
def test_a_file_of_the_workspace_is_read_by_either_name_of_the_parameter(
    tools: ProcessTools, name: str, path: str
) -> None:
    assert tools.call("read_file", {name: path}) == b"alpha\nbeta 881\n"


def test_an_absolute_path_into_the_workspace_is_read(tools: ProcessTools, workspace: Workspace) -> None:
    assert tools.call("read_file", {"path": str(workspace.root / "a.txt")}) == b"alpha\nbeta 881\n"


def test_files_are_listed_at_any_depth_in_order_without_links_pipes_and_the_store(tools: ProcessTools) -> None:
    assert tools.call("list_files", {"path": "sub"}) == b"b.txt\nbinary\n"
    assert tools.call("list_files", {}) == b"a.txt\nsub/b.txt\nsub/binary\nworkmodule.py\n"


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"path": "sub"}, b"sub/b.txt:1:881 first\nsub/b.txt:3:881\n"),
        ({"path": "a.txt"}, b"a.txt:2:beta 881\n"),
        ({}, b"a.txt:2:beta 881\nsub/b.txt:1:881 first\nsub/b.txt:3:881\n"),
    ],
)
def test_a_search_gives_path_line_and_text(tools: ProcessTools, parameters: dict[str, str], found: bytes) -> None:
    assert tools.call("search", {"pattern": "881", **parameters}) == found


def test_a_pattern_is_text_and_no_expression(tools: ProcessTools) -> None:
    assert tools.call("search", {"pattern": "8.1"}) == b""


@pytest.mark.parametrize("tool", ["read_file", "list_files", "search"])
@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "/dev/zero", "/", "..", "../secret", "sub/../../secret", "link_out", "link_folder/secret"),
        *("link_folder", "link_device"),
    ],
)
def test_whatever_leads_out_of_the_workspace_is_refused(tools: ProcessTools, tool: str, path: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call(tool, {"path": path, "pattern": "881"})


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("read_file", {}),
        ("read_file", {"path": 1}),
        ("read_file", {"path": ""}),
        ("read_file", {"path": "a\0b"}),
        ("read_file", {"path": "missing"}),
        ("read_file", {"path": "sub"}),
        ("read_file", {"path": "pipe"}),
        ("list_files", {"path": "a.txt"}),
        ("list_files", {"path": "pipe"}),
        ("list_files", {"path": "a\0b"}),
        ("search", {}),
        ("search", {"pattern": ""}),
        ("search", {"pattern": "881", "path": "pipe"}),
        ("search", {"pattern": "881", "path": "missing"}),
    ],
)
def test_what_cannot_be_read_or_asked_is_a_failure_and_nothing_waits_for_it(
    tools: ProcessTools, tool: str, parameters: dict[str, object]
) -> None:
    with pytest.raises(ToolFailed):
        tools.call(tool, parameters)


def test_a_list_is_whole_or_a_failure(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # deeper than any path can name
        os.mkdir("x" * 250, dir_fd=folder)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    for tool in ("list_files", "search"):
        request = Request(tool=tool, parameters={"pattern": "881"})
        assert answered(request, tools_of(str(tmp_path), (), ()), str(tmp_path)).ended == "failed"


@given(
    path=st.text() | st.lists(st.sampled_from(["..", ".", "sub", "link_folder", "secret", "link_out"])).map("/".join)
)
def test_no_path_at_all_gives_bytes_from_outside(workspace: Workspace, path: str) -> None:
    own = tools_of(str(workspace.root), (), ())
    for tool in ("read_file", "list_files", "search"):
        parameters = {"path": path, "pattern": "nobody"}
        output = answered(Request(tool=tool, parameters=parameters), own, str(workspace.root)).output
        assert SECRET not in output
        assert b"secret" not in output


@pytest.mark.parametrize(("size", "fits"), [(OUTPUT_MOST, True), (OUTPUT_MOST + 1, False)])
def test_an_output_has_a_limit(tools: ProcessTools, tmp_path: Path, size: int, *, fits: bool) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", size)
    with ProcessTools(Confines(root=str(tmp_path))) as others:
        function: dict[str, object] = {"function": "workmodule:large", "arguments": {"n": size}}
        calls: list[tuple[ProcessTools, str, dict[str, object]]] = [
            (others, "read_file", {"path": "large"}),
            (tools, "python", function),
        ]
        for called, name, parameters in calls:
            if fits:
                assert len(called.call(name, parameters)) == size
            else:
                with pytest.raises(ToolFailed, match="larger than 16 MiB"):
                    called.call(name, parameters)


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments", "output"),
    [("double", {"n": 3}, b'{"twice":6}'), ("text", {}, "tëxt".encode()), ("raw", {}, b"\x00\xff")],
)
def test_what_a_function_returns_is_the_output_and_what_it_prints_is_not(
    tools: ProcessTools, function: str, arguments: dict[str, object], output: bytes
) -> None:
    assert python(tools, function, **arguments) == output


@pytest.mark.parametrize(
    "function",
    ["os:system", "workmodule:os", "workmodule:join", "workmodule:_hidden", "workmodule:missing", "workmodule", ":x"],
)
def test_only_public_functions_that_an_allowed_module_defines_are_called(tools: ProcessTools, function: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call("python", {"function": function})


def test_no_module_is_allowed_or_imported_unless_it_is_named(workspace: Workspace) -> None:
    with ProcessTools(workspace.confines(allowing=False)) as tools, pytest.raises(ToolRefused):
        python(tools, "text")


@pytest.mark.parametrize("function", ["odd", "broken", "leave", "die", "double"])
def test_whatever_happens_in_a_function_is_a_failure_of_that_call_alone(tools: ProcessTools, function: str) -> None:
    with pytest.raises(ToolFailed):
        python(tools, function)
    assert python(tools, "text") == "tëxt".encode()


def test_arguments_are_an_object(tools: ProcessTools) -> None:
    with pytest.raises(ToolFailed, match="arguments"):
        tools.call("python", {"function": "workmodule:double", "arguments": [1]})


# --- the network ------------------------------------------------------------------------------------------------------


class Site(BaseHTTPRequestHandler):
    """A page, a way to it on this host, ways to others, and nothing else."""

    def do_GET(self) -> None:
        port = self.server.server_port if isinstance(self.server, ThreadingHTTPServer) else 0
        away = {"/near": "/page", "/away": f"http://localhost:{port}/page", "/file": "file:///etc/passwd"}
        if self.path in away:
            self.send_response(302)
            self.send_header("Location", away[self.path])
            self.end_headers()
            return
        body = {"/page": b"hello", "/large": b"x" * (OUTPUT_MOST + 1)}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its form
        """Nothing is told."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["page", "near"])
def test_a_page_of_an_allowed_host_is_fetched_also_behind_its_own_redirection(
    tools: ProcessTools, port: int, path: str
) -> None:
    assert tools.call("http_get", {"url": f"http://127.0.0.1:{port}/{path}"}) == b"hello"


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost:{}/page", "http://127.0.0.1:{}/away", "file:///etc/passwd"),
        *("ftp://127.0.0.1/x", "http://127.0.0.1:{}@localhost/", "http://localhost\\@127.0.0.1:{}/page", "//x", "x"),
    ],
)
def test_every_other_host_and_scheme_is_refused(tools: ProcessTools, port: int, url: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call("http_get", {"url": url.format(port)})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{}/none", "http://127.0.0.1:{}/large", "http://127.0.0.1:{}/file", "http://127.0.0.1:x/"]
)
def test_an_answer_that_is_no_success_or_too_large_is_a_failure(tools: ProcessTools, port: int, url: str) -> None:
    with pytest.raises(ToolFailed):
        tools.call("http_get", {"url": url.format(port)})


# --- the process ------------------------------------------------------------------------------------------------------


def test_a_call_that_overruns_is_ended_and_the_next_one_gets_a_new_process(workspace: Workspace) -> None:
    with ProcessTools(workspace.confines(seconds=1.0)) as tools:
        first = worker_of(tools)
        with pytest.raises(ToolTimedOut):
            python(tools, "hang")
        assert worker_of(tools) != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)


def test_thousands_of_calls_are_made_by_one_process(tools: ProcessTools) -> None:
    first = worker_of(tools)
    assert {tools.call("read_file", {"path": "a.txt"}) for _ in range(2000)} == {b"alpha\nbeta 881\n"}
    assert worker_of(tools) == first


def test_what_a_tool_left_running_ends_with_the_tools(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with ProcessTools(workspace.confines()) as tools:
        python(tools, "leave_a_child_behind")
    waiting = f"import fcntl; fcntl.flock(open({str(workspace.root / 'lock')!r}), fcntl.LOCK_EX)"
    assert subprocess.run([sys.executable, "-c", waiting], check=False, timeout=20).returncode == 0


def test_a_worker_whose_owner_is_gone_ends_by_itself(workspace: Workspace) -> None:
    command = [sys.executable, "-P", "-m", "contextplane.adapters.tools.worker"]
    given = framed(wire_bytes(Request(tool="python", parameters={"function": "workmodule:hang"})))
    done = subprocess.run(
        [*command, str(workspace.root), "", "workmodule", "0.2"],
        input=given,
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == -signal.SIGALRM


def test_a_tool_that_is_not_here_is_unknown_and_those_that_are_have_versions(tools: ProcessTools) -> None:
    assert set(tools.names()) >= set(BUILT_IN)
    assert [tools.version(name) for name in BUILT_IN] == list(BUILT_IN.values())
    for ask in (tools.version, lambda name: tools.call(name, {})):
        with pytest.raises(ToolUnknown):
            ask("bash")


def test_parameters_of_any_depth_and_size_end_in_an_answer(tools: ProcessTools) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for parameters in ({"path": "a.txt", "more": deep}, {"path": 10**400}):
        with pytest.raises(ContextPlaneError):
            tools.call("read_file", parameters)
    assert tools.call("read_file", {"path": "a.txt", "more": "x" * (8 << 20)}) == b"alpha\nbeta 881\n"
