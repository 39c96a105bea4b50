"""The worker processes of tools: every call ends, and so does everything it started."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from contextplane.adapters.tools.process import ProcessTools
from contextplane.adapters.tools.wire import (
    BUILTIN_VERSIONS,
    HEADER_BYTES,
    ToolRequest,
    decode_response,
    encode_message,
    frame,
    payload_length,
)
from contextplane.errors import ContextPlaneError
from contextplane.ports.tools import ToolFailed, ToolTimedOut, ToolUnknown
from tests.patience import PATIENCE
from tests.unit.adapters.tool_workspace import ToolWorkspace, python, worker_pid

CHECKOUT = Path(__file__).resolve().parents[3]


def test_a_call_that_overruns_is_ended_and_the_next_one_gets_a_new_process(place: ToolWorkspace) -> None:
    with ProcessTools(place.options(seconds=5.0)) as tools:
        with pytest.raises(ToolTimedOut):
            python(tools, "hang")
        assert python(tools, "text") == "tëxt".encode()


def test_one_of_our_own_tools_that_overruns_is_ended_as_well(place: ToolWorkspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ProcessTools(place.options(seconds=5.0)) as tools:
        with pytest.raises(ToolTimedOut):
            tools.call("http_get", {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"})
        assert tools.call("read_file", {"path": "a.txt"}) == b"alpha\nbeta 881\n"


def test_every_call_of_code_of_others_has_a_process_that_is_gone_when_it_ends(worker: ProcessTools) -> None:
    first, second = worker_pid(worker), worker_pid(worker)
    assert first != second
    for pid in (first, second):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_thousands_of_calls_of_our_own_tools_are_made_by_one_process(place: ToolWorkspace) -> None:
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = set(children.read_text().split()) if children.exists() else set()
    with ProcessTools(place.options()) as tools:
        assert {tools.call("read_file", {"path": "a.txt"}) for _ in range(2000)} == {b"alpha\nbeta 881\n"}
        if children.exists():
            assert len(set(children.read_text().split()) - before) == 1


def test_our_own_tools_see_what_comes_into_the_workspace_later(place: ToolWorkspace, worker: ProcessTools) -> None:
    assert worker.call("read_file", {"path": "a.txt"})
    (place.root / "later.txt").write_bytes(b"later")
    assert worker.call("read_file", {"path": "later.txt"}) == b"later"
    (place.root / "later.txt").unlink()


MODULES = ("builtin", "function_worker", "plugin_worker")


def run_directly(
    module: str, root: Path, *requests: ToolRequest, seconds: float = PATIENCE
) -> subprocess.CompletedProcess[bytes]:
    """Run a worker without its owner. Its scratch folder is the root, where coverage writes its files."""
    arguments = [str(root), "", "", "workmodule", str(seconds), str(root)]
    return subprocess.run(
        [sys.executable, "-P", "-m", f"contextplane.adapters.tools.{module}", *arguments],
        input=b"".join(frame(encode_message(request)) for request in requests),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )


def payloads(output: bytes) -> list[bytes]:
    split = []
    while output:
        size = payload_length(output[:HEADER_BYTES])
        split.append(output[HEADER_BYTES : HEADER_BYTES + size])
        output = output[HEADER_BYTES + size :]
    return split


def test_a_process_whose_owner_is_gone_ends_by_itself(place: ToolWorkspace) -> None:
    hang = ToolRequest(tool="python", parameters={"function": "workmodule:hang"})
    assert run_directly("function_worker", place.root, hang, seconds=0.2).returncode == -signal.SIGALRM


def test_code_of_others_that_ignores_signals_ends_all_the_same_when_it_has_worked_long_enough(
    worker: ProcessTools,
) -> None:
    assert 60 < int(python(worker, "work_limit")) <= 65 * (os.cpu_count() or 1)


@pytest.mark.parametrize("module", MODULES)
def test_a_process_that_has_nothing_more_to_do_says_who_holds_it_and_ends_by_itself(module: str) -> None:
    done = run_directly(module, CHECKOUT)
    assert done.returncode == 0
    assert payloads(done.stdout)[0] in {b"kernel", b"python"}


def test_a_process_answers_in_the_order_of_its_requests() -> None:
    read = ToolRequest(tool="read_file", parameters={"path": "pyproject.toml"})
    listed = ToolRequest(tool="list_files", parameters={"path": "docs/adr/nowhere"})
    done = run_directly("builtin", CHECKOUT, read, listed, read)
    responses = [decode_response(payload) for payload in payloads(done.stdout)[1:]]
    assert [response.ended for response in responses] == ["output", "failed", "output"]
    assert responses[0].output == Path(CHECKOUT, "pyproject.toml").read_bytes()


def test_a_tool_that_is_not_here_is_unknown_and_those_that_are_have_versions(worker: ProcessTools) -> None:
    assert set(worker.names()) >= set(BUILTIN_VERSIONS)
    assert [worker.version(name) for name in BUILTIN_VERSIONS] == list(BUILTIN_VERSIONS.values())
    for ask in (worker.version, lambda name: worker.call(name, {})):
        with pytest.raises(ToolUnknown):
            ask("bash")


def test_parameters_of_any_depth_and_size_end_in_an_answer(worker: ProcessTools) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for parameters in ({"path": "a.txt", "more": deep}, {"path": 10**400}):
        with pytest.raises(ContextPlaneError):
            worker.call("read_file", parameters)
    assert worker.call("read_file", {"path": "a.txt", "more": "x" * (8 << 20)}) == b"alpha\nbeta 881\n"


def test_a_function_that_ends_the_process_is_a_failure_of_that_call_alone(worker: ProcessTools) -> None:
    with pytest.raises(ToolFailed, match="ended unexpectedly"):
        python(worker, "die")
    assert python(worker, "text") == "tëxt".encode()
