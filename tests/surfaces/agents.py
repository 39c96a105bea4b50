"""An MCP client for tests: talks to a server process over its standard input and output."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.patience import PATIENCE
from tests.surfaces.commands import Result, child_environment

__all__ = ["DOCUMENT", "SERVER", "Agent", "environment", "says", "serving", "sources", "talk"]

SERVER = str(Path(sys.executable).with_name("mcp-context-pack"))
_UNWANTED_PREFIXES = ("CONTEXT_PACK_", "CTX_")

DOCUMENT: dict[str, Any] = {
    "title": "Login bug",
    "brief": "Why the login fails",
    "sections": [
        {"key": "scope", "title": "Scope", "description": "Only the token check."},
        {
            "key": "findings",
            "title": "Findings",
            "refs": [{"key": "check", "path": "src/auth.py", "line_start": 2, "line_end": 3, "why": "expiry ignored"}],
        },
        {"key": "qa", "title": "QA", "description": "verdict: pass"},
    ],
}


def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without the variables that configure the server, plus `env`."""
    variables = {key: value for key, value in child_environment().items() if not key.startswith(_UNWANTED_PREFIXES)}
    return variables | dict(env or {})


def says(method: str, params: object = None, *, ident: object = 1) -> bytes:
    """One JSON-RPC request as a line. `ident` None makes it a notification."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    message |= {} if ident is None else {"id": ident}
    return msgspec.json.encode(message | ({} if params is None else {"params": params})) + b"\n"


def talk(data: bytes, *, cwd: Path, env: Mapping[str, str] | None = None, command: Sequence[str] = (SERVER,)) -> Result:
    """Run the server on all of `data` at once and return how it ended."""
    result = subprocess.run(
        command, cwd=cwd, env=environment(env), input=data, capture_output=True, check=False, timeout=PATIENCE
    )
    return Result(status=result.returncode, raw=result.stdout, err=result.stderr.decode(errors="backslashreplace"))


class Agent:
    """A client that waits for each answer."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._ident = 0

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Read the next answer, which is one line."""
        assert self.process.stdout is not None
        return msgspec.json.decode(self.process.stdout.readline(), type=dict[str, Any])

    def asks(self, method: str, params: object = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        self._ident += 1
        self.send(says(method, params, ident=self._ident))
        answer = self.receive()
        assert answer["id"] == self._ident
        return answer

    def calls(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """The result of a tool call."""
        result = self.asks("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert isinstance(result, dict)
        assert [block["type"] for block in result["content"]] == ["text"]
        return result

    def does(self, action: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """The payload of a successful `input` call."""
        result = self.calls("input", action=action, **arguments)
        assert "isError" not in result, result["content"]
        answer = msgspec.json.decode(result["content"][0]["text"], type=dict[str, Any])
        assert answer == result["structuredContent"]
        assert answer["action"] == action
        return dict(answer["payload"])

    def reads(self, **arguments: Any) -> str:  # noqa: ANN401
        """The text of a successful `output` call."""
        result = self.calls("output", **arguments)
        assert "isError" not in result, result["content"]
        assert ("structuredContent" in result) is (arguments.get("structured") is True)
        return str(result["content"][0]["text"])

    def fails(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """The error of a refused call. An `invalid_data` error always has details."""
        result = self.calls(tool, **arguments)
        assert result["isError"] is True, result
        error = msgspec.json.decode(result["content"][0]["text"], type=dict[str, Any])
        is_structured = tool == "input" or arguments.get("structured") is True
        assert result.get("structuredContent") == (error if is_structured else None)
        assert error["error"] is True
        assert {"kind", "code", "message", "request_id"} <= set(error)
        if error["code"] == "invalid_data":
            assert error["kind"] == "validation"
            assert error["details"]
            assert error["message"].startswith("invalid data: ")
        return error


@contextmanager
def serving(cwd: Path, env: Mapping[str, str] | None = None, *, stderr: int = subprocess.DEVNULL) -> Iterator[Agent]:
    """A server for as long as the block lasts. It ends by itself when its input is closed."""
    process = subprocess.Popen(
        [SERVER], cwd=cwd, env=environment(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
    )
    try:
        yield Agent(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def sources(folder: Path) -> Path:
    """Write the code that DOCUMENT refers to; return the folder."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src" / "auth.py").write_text("import time\n\ndef check(token):\n    return True\n", encoding="utf-8")
    return folder
