"""The MCP server at the level of bytes: both framings, garbage, cut or too large messages, the end."""

import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane import __version__
from tests.patience import PATIENCE
from tests.surfaces.agents import DOCUMENT, SERVER, environment, says, serving, talk
from tests.surfaces.commands import COMMAND

HELLO = says("initialize", {"protocolVersion": "2025-11-25"}, ident="hello")
PING = says("ping", ident="ping")
LIST = says("tools/call", {"name": "input", "arguments": {"action": "list"}}, ident="list")


def answers(data: bytes, cwd: Path) -> list[dict[str, Any]]:
    """All answers to these bytes, one per line. The server must end with status 0."""
    result = talk(data, cwd=cwd)
    assert result.status == 0, result
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in result.raw.splitlines()]


def idents(data: bytes, cwd: Path) -> list[object]:
    return [answer["id"] for answer in answers(data, cwd)]


def headed(line: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(line), line)


def bodies(raw: bytes) -> list[dict[str, Any]]:
    """The bodies of answers that have headers."""
    messages = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        name, _, length = head.partition(b": ")
        assert name == b"Content-Length"
        messages.append(msgspec.json.decode(raw[: int(length)], type=dict[str, Any]))
        raw = raw[int(length) :]
    return messages


# --- two framings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(SERVER,), (COMMAND, "mcp"), (COMMAND, "mcp", "--quiet")], ids=" ".join)
def test_lines_are_answered_with_lines_by_either_name(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = talk(HELLO + LIST, cwd=tmp_path, command=command)
    assert (result.status, result.err) == (0, "")
    hello, listed = (msgspec.json.decode(line) for line in result.raw.splitlines())
    assert hello["result"]["serverInfo"] == {"name": "context-pack", "version": __version__}
    assert listed["result"]["structuredContent"] == {"action": "list", "payload": {"count": 0, "packs": [], "total": 0}}
    assert list(tmp_path.iterdir()) == []  # nothing is made before the first write


def test_headers_are_answered_with_headers_and_the_first_message_decides(tmp_path: Path) -> None:
    result = talk(headed(HELLO) + PING + headed(LIST), cwd=tmp_path)
    assert [body["id"] for body in bodies(result.raw)] == ["hello", "ping", "list"]
    assert idents(HELLO + headed(PING) + LIST, tmp_path) == ["hello", "ping", "list"]


def test_other_headers_may_come_first(tmp_path: Path) -> None:
    result = talk(b"X-Foo: 1\r\n" + headed(HELLO) + b"Accept: any\r\n" + headed(PING), cwd=tmp_path)
    assert [body["id"] for body in bodies(result.raw)] == ["hello", "ping"]
    assert result.err == ""


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    assert idents(HELLO + PING.rstrip(), tmp_path) == ["hello", "ping"]


def test_text_beyond_ascii_comes_back_unchanged(tmp_path: Path) -> None:
    assert idents(HELLO + says("ping", ident="\u00e9\u2028\U0001f600"), tmp_path) == ["hello", "\u00e9\u2028\U0001f600"]


# --- what is no message -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello world",
        b"key: value",
        b'{"id":1,"method":',
        b"{\xff}",
        b"\0\0\0",
        b"[[[[",
        b'{"id":2,"method":"ping","params":' + b"[" * 5000,
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b"Content-Length: nine\r\n",
        b"Content-Length: 5",
        b"Content-Type: text/plain\r\n",
        b"POST / HTTP/1.1",
    ],
)
def test_garbage_is_answered_with_an_error_and_the_next_line_is_read(tmp_path: Path, garbage: bytes) -> None:
    first, error, last = answers(HELLO + garbage + b"\n" + PING, tmp_path)
    assert (first["id"], last["id"]) == ("hello", "ping")
    assert (error["id"], error["error"]["code"]) == (None, -32700)


def test_a_batch_is_refused_politely(tmp_path: Path) -> None:
    _, error, last = answers(HELLO + b"[" + PING.strip() + b"]\n" + PING, tmp_path)
    assert (error["id"], error["error"]["code"], last["id"]) == (None, -32600, "ping")
    assert "batches are not supported" in error["error"]["message"]


def test_a_batch_is_answered_with_one_line_in_the_version_that_has_batches(tmp_path: Path) -> None:
    hello = says("initialize", {"protocolVersion": "2025-03-26"}, ident="hello")
    batch = b"[%b,%b]\n" % (PING.strip(), LIST.strip())
    result = talk(hello + batch, cwd=tmp_path)
    _, line = result.raw.splitlines()
    assert [answer["id"] for answer in msgspec.json.decode(line)] == ["ping", "list"]


def test_a_message_over_ten_mebibytes_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    large = says("ping", {"x": "y" * (10 << 20)})
    _, error, last = answers(HELLO + large + PING, tmp_path)
    assert (error["id"], error["error"]["code"], last["id"]) == (None, -32700, "ping")
    result = talk(headed(HELLO) + headed(large) + headed(PING), cwd=tmp_path)
    assert [body["id"] for body in bodies(result.raw)] == ["hello", None, "ping"]


@pytest.mark.parametrize("cut", [b'{"id":1,"meth', b"Content-Length: 50\r\n\r\n{", b"Content-Length: 5\r\n", b"["])
def test_a_message_that_is_cut_off_is_an_error_and_then_an_orderly_end(tmp_path: Path, cut: bytes) -> None:
    _, error = answers(HELLO + cut, tmp_path)
    assert (error["id"], error["error"]["code"]) == (None, -32700)


@settings(max_examples=15)
@given(
    st.lists(
        st.binary(max_size=80).filter(lambda line: b"\n" not in line and b"content-" not in line.lower()), max_size=8
    )
)
def test_whatever_stands_between_two_requests_both_are_answered(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    answer_ids = idents(HELLO + b"\n".join(lines) + b"\n" + PING, tmp_path_factory.getbasetemp())
    assert (answer_ids[0], answer_ids[-1]) == ("hello", "ping")


# --- a person at a terminal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(SERVER,), (COMMAND, "mcp")], ids=" ".join)
def test_on_a_terminal_it_says_at_once_what_it_is_and_how_to_connect_it(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    ours, theirs = pty.openpty()
    env = environment({"CONTEXT_PACK_INITIALIZE_TIMEOUT_MS": "1"})
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=theirs, stdout=pipe, stderr=pipe) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stdout is not None
        lines = [process.stderr.readline().decode() for _ in range(5)]
        assert "MCP server" in lines[0]
        assert any("ctx mcp install CLIENT" in line for line in lines)
        assert any("ctx mcp check" in line for line in lines)
        os.write(ours, PING)  # it serves all the same, and waits as long as the person likes
        assert msgspec.json.decode(process.stdout.readline())["id"] == "ping"
        os.write(ours, b"\x04")
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    assert list(tmp_path.iterdir()) == []


# --- what the protocol asks for ---------------------------------------------------------------------------------------


def test_nothing_is_refused_before_the_handshake(tmp_path: Path) -> None:
    assert [answer["result"]["structuredContent"]["action"] for answer in answers(LIST, tmp_path)] == ["list"]


@pytest.mark.parametrize(
    ("params", "number"),
    [
        ({"name": "input", "arguments": []}, -32602),
        ({"name": "input", "arguments": "list"}, -32602),
        ({"name": "nope"}, -32602),
        ({}, -32602),
        ({"name": 7}, -32602),
    ],
)
def test_a_call_of_the_wrong_shape_is_a_protocol_error(tmp_path: Path, params: object, number: int) -> None:
    [answer] = answers(says("tools/call", params), tmp_path)
    assert answer["error"]["code"] == number


def test_a_call_without_arguments_has_none(tmp_path: Path) -> None:
    for params, start in (
        ({"name": "input"}, '{"action":"list"'),
        ({"name": "output", "arguments": None}, "No context packs"),
    ):
        [answer] = answers(says("tools/call", params), tmp_path)
        assert answer["result"]["content"][0]["text"].startswith(start)


def test_a_notification_is_carried_out_and_not_answered(tmp_path: Path) -> None:
    write = says("tools/call", {"name": "input", "arguments": {"action": "write", "document": DOCUMENT}}, ident=None)
    cancelled = says("notifications/cancelled", {"requestId": "list"}, ident=None)
    [listed] = answers(write + cancelled + LIST, tmp_path)
    assert listed["result"]["structuredContent"]["payload"]["count"] == 1


def cancel(ident: object) -> bytes:
    return says("notifications/cancelled", {"requestId": ident, "reason": "no longer needed"}, ident=None)


def write(ident: object) -> bytes:
    arguments = {"action": "write", "document": DOCUMENT}
    return says("tools/call", {"name": "input", "arguments": arguments}, ident=ident)


@pytest.mark.parametrize("ident", ["w", 7, 0])
def test_a_request_that_is_cancelled_before_its_turn_is_neither_carried_out_nor_answered(
    tmp_path: Path, ident: object
) -> None:
    hello, listed = answers(HELLO + write(ident) + cancel(ident) + LIST, tmp_path)
    assert (hello["id"], listed["id"]) == ("hello", "list")
    assert listed["result"]["structuredContent"]["payload"]["count"] == 0


def test_only_the_request_with_exactly_that_id_is_cancelled_and_never_a_handshake(tmp_path: Path) -> None:
    others: tuple[object, ...] = ("1", 1.0, True, None, [1])
    data = HELLO + cancel("hello") + write(1) + b"".join(map(cancel, others))
    data += says("notifications/cancelled", None, ident=None) + b'{"method":"notifications/cancelled","params":{"a":1'
    data += b"}}\n" + PING
    assert idents(data, tmp_path) == ["hello", 1, "ping"]


def test_a_request_that_is_cancelled_while_it_runs_is_not_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        agent.asks("initialize", {"protocolVersion": "2025-11-25"})
        pack = agent.does("write", document=DOCUMENT)
        [catalog] = tmp_path.rglob("catalog.db")
        with closing(sqlite3.connect(catalog, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            agent.send(says("tools/call", {"name": "input", "arguments": {"action": "delete", "id": pack["id"]}}))
            agent.send(cancel(1))
            other.execute("ROLLBACK")
        answer = agent.asks("ping")
        assert answer["result"] == {}


def test_after_a_shutdown_nothing_is_done(tmp_path: Path) -> None:
    write = says("tools/call", {"name": "input", "arguments": {"action": "write", "document": DOCUMENT}}, ident=None)
    down, refused, gone = answers(says("shutdown") + write + LIST + says("exit", ident="x") + PING, tmp_path)
    assert (down["result"], refused["error"]["code"], gone["id"]) == (None, -32000, "x")
    assert list(tmp_path.iterdir()) == []


# --- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", PING, b"junk\n"], ids=["nothing", "something", "junk"])
def test_a_client_that_never_introduces_itself_ends_the_process_though_its_end_is_open(
    tmp_path: Path, sent: bytes
) -> None:
    env = environment({"CONTEXT_PACK_INITIALIZE_TIMEOUT_MS": "150"})
    with subprocess.Popen(
        [SERVER], cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(sent)
        process.stdin.flush()
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read().endswith(b"no initialize request came in time\n")


def test_a_client_that_introduced_itself_may_take_its_time(tmp_path: Path) -> None:
    env = environment({"CONTEXT_PACK_INITIALIZE_TIMEOUT_MS": "400"})
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb", buffering=0) as requests:
        requests.write(says("initialize", {"protocolVersion": "2025-11-25"}))  # it is there before the time runs
        with subprocess.Popen([SERVER], cwd=tmp_path, env=env, stdin=theirs, stdout=subprocess.PIPE) as process:
            os.close(theirs)
            assert process.stdout is not None
            assert msgspec.json.decode(process.stdout.readline())["id"] == 1
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.6)
            requests.write(says("ping", ident=2))
            assert msgspec.json.decode(process.stdout.readline())["result"] == {}
            requests.close()
            assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_an_orderly_end(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as agent:
        agent.asks("initialize", {})
        agent.process.send_signal(number)
        assert agent.process.wait(PATIENCE) == 0


def test_a_client_that_reads_no_more_is_left_in_peace(tmp_path: Path) -> None:
    with subprocess.Popen(
        [SERVER], cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(HELLO)
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_an_output_that_cannot_be_written_is_logged_and_no_success(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [SERVER],
            cwd=tmp_path,
            env=environment(),
            input=HELLO,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )
    assert result.returncode == 1
    assert result.stderr == b"mcp-context-pack: error: the output cannot be written: No space left on device\n"


def test_a_client_that_does_not_read_yet_gets_all_of_it_later(tmp_path: Path) -> None:
    many = 300
    with serving(tmp_path) as agent:
        for n in range(many):
            agent.send(says("tools/list", ident=n))  # much more than a pipe holds
        assert [agent.receive()["id"] for _ in range(many)] == list(range(many))


def test_a_signal_ends_it_though_the_client_does_not_read(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        for n in range(50):
            agent.send(says("tools/list", ident=n))  # much more than a pipe holds
        assert agent.receive()["id"] == 0
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(PATIENCE) == 0


def test_streams_that_do_not_block_are_waited_for(tmp_path: Path) -> None:
    (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    os.set_blocking(theirs_in, False)
    os.set_blocking(theirs_out, False)
    many = 40
    with subprocess.Popen([SERVER], cwd=tmp_path, env=environment(), stdin=theirs_in, stdout=theirs_out) as process:
        os.close(theirs_in)
        os.close(theirs_out)
        with os.fdopen(ours_out, "rb") as answers_, os.fdopen(ours_in, "wb", buffering=0) as requests:
            for n in range(many):
                requests.write(says("tools/list", ident=n))
            answer_ids = [msgspec.json.decode(answers_.readline())["id"] for _ in range(many)]
        assert process.wait(PATIENCE) == 0
    assert answer_ids == list(range(many))


def test_closed_standard_streams_are_an_end_like_any_other(tmp_path: Path) -> None:
    for closed in ("<&-", ">&-", "2>&-"):
        result = subprocess.run(
            ["sh", "-c", f'exec "$0" {closed}', SERVER],
            cwd=tmp_path,
            env=environment(),
            input=HELLO if closed != "<&-" else None,
            stdin=subprocess.DEVNULL if closed == "<&-" else None,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        assert (result.returncode, result.stderr) == (0, b""), closed


# --- what it says of itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "lines"),
    [("off", 0), ("error", 0), ("warn", 1), ("mcp_context_pack=warn", 1), ("", 1), ("other=off", 1), ("nonsense", 1)],
)
def test_the_log_goes_to_standard_error_as_its_level_says(tmp_path: Path, level: str, lines: int) -> None:
    result = talk(HELLO + b"Content-Length: x\n\n", cwd=tmp_path, env={"CONTEXT_PACK_LOG": level})
    assert result.err.count("\n") == lines


def test_the_log_never_holds_what_was_said(tmp_path: Path) -> None:
    secret = {**DOCUMENT, "title": "swordfish"}
    write = says("tools/call", {"name": "input", "arguments": {"action": "write", "document": secret}})
    result = talk(HELLO + b"swordfish\n" + write, cwd=tmp_path, env={"CONTEXT_PACK_LOG": "mcp_context_pack=debug"})
    assert result.err.count("a message of") == 3
    assert "swordfish" not in result.err


def test_the_script_tells_its_version_and_its_settings(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, bytes, bytes]:
        result = subprocess.run([SERVER, *args], cwd=tmp_path, env=environment(), capture_output=True, check=False)
        return result.returncode, result.stdout, result.stderr

    assert run("--version") == (0, f"mcp-context-pack {__version__}\n".encode(), b"")
    status, out, err = run("--help")
    assert (status, err) == (0, b"")
    assert b"CONTEXT_PACK_SOURCE_ROOT" in out
    assert run("--nope") == (2, b"", out)


def imported(data: bytes, cwd: Path) -> set[str]:
    """The modules that the server loaded to answer this."""
    code = "import sys; from contextplane.mcp.main import run; run(); print(*sys.modules, file=sys.stderr)"
    env = {key: value for key, value in environment().items() if not key.startswith("COV")}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=cwd, env=env, input=data, capture_output=True, check=True)
    return set(result.stderr.decode().split())


def test_until_the_first_call_nothing_of_the_store_is_imported(tmp_path: Path) -> None:
    modules = imported(HELLO + PING, tmp_path)
    assert modules & {"sqlite3", "hashlib", "argparse", "json", "logging", "asyncio", "threading", "pathlib"} == set()
    assert not {name for name in modules if name.startswith(("contextplane.adapters", "contextplane.handoff"))}


def test_a_list_imports_no_object_store_and_nothing_that_writes(tmp_path: Path) -> None:
    modules = imported(HELLO + LIST, tmp_path)
    assert "contextplane.app.handoff.session" in modules
    unwanted = {"hashlib", "threading", "contextplane.handoff.writer", "contextplane.handoff.source"}
    assert modules & (unwanted | {"contextplane.adapters.files.objects"}) == set()
    assert list(tmp_path.iterdir()) == []
