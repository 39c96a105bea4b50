"""A client of MCP servers over stdio that asks one thing: which tools there are.

It starts the server, initializes it, lists its tools and ends it. It calls no tool. A server that is silent, ends,
refuses or writes something else than JSON-RPC is an error with its own code; nothing that it wrote is repeated.
"""

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event, Timer
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

import msgspec

from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "McpServerEnded",
    "McpServerGarbled",
    "McpServerRefused",
    "McpServerSilent",
    "ServerOffer",
    "list_server_tools",
    "read_offer",
]

_PROTOCOL = "2025-06-18"
_LONGEST_LINE = 16 * 1024 * 1024
_MOST_PAGES = 100
_PIECE = 65536
_POLL_SECONDS = 0.2
_END_SECONDS = 2.0
_METHOD_NOT_FOUND = -32601


class McpServerEnded(ContextPlaneError):
    """An MCP server could not be started, or ended before it answered."""

    code: ClassVar[str] = "mcp_server_ended"
    family: ClassVar[Family] = "failed"


class McpServerSilent(ContextPlaneError):
    """An MCP server did not list its tools in time."""

    code: ClassVar[str] = "mcp_server_silent"
    family: ClassVar[Family] = "failed"


class McpServerGarbled(ContextPlaneError):
    """An MCP server wrote something to its standard output that is no JSON-RPC message."""

    code: ClassVar[str] = "mcp_server_garbled"
    family: ClassVar[Family] = "refused"


class McpServerRefused(ContextPlaneError):
    """An MCP server answered a request with an error."""

    code: ClassVar[str] = "mcp_server_refused"
    family: ClassVar[Family] = "refused"


class ServerOffer(NamedTuple):
    """What a server answered: to `initialize`, and its tools."""

    greeting: dict[str, Any]
    tools: tuple[dict[str, Any], ...]


def list_server_tools(
    name: str, command: Sequence[str], *, env: Mapping[str, str], seconds: float
) -> tuple[dict[str, Any], ...]:
    """Start a server, return the tools that it lists, and end it."""
    return read_offer(name, command, env=env, seconds=seconds).tools


def read_offer(
    name: str, command: Sequence[str], *, env: Mapping[str, str], seconds: float, cwd: str | None = None
) -> ServerOffer:
    """Start a server in a folder, return what it answers, and end it."""
    with _Server(name, command, env, seconds, cwd) as server:
        client = {"name": "contextplane", "version": "1"}
        parameters = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
        greeting = server.call("initialize", parameters)
        server.send({"method": "notifications/initialized"})
        tools: list[dict[str, Any]] = []
        cursor: object = None
        for _ in range(_MOST_PAGES):
            page = server.call("tools/list", {} if cursor is None else {"cursor": cursor})
            listed = page.get("tools")
            if not isinstance(listed, list) or not all(isinstance(tool, dict) for tool in listed):
                raise server.protocol_error("its list of tools is none")
            tools += listed
            cursor = page.get("nextCursor")
            if cursor is None:
                return ServerOffer(greeting, tuple(tools))
        raise server.protocol_error(f"its list of tools has more than {_MOST_PAGES} pages")


class _Server:
    """A running server. It is killed when the time is up, and nothing more is read."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], seconds: float, cwd: str | None
    ) -> None:
        self._name, self._seconds = name, seconds
        self._number = 0
        self._unread = bytearray()
        self._is_late = Event()
        try:
            self._process = subprocess.Popen(  # noqa: S603  the command of the user's own configuration
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "its command is none"
            raise McpServerEnded(f"cannot be started: {why}", at=name, hint="check its command") from error
        self._timer = Timer(seconds, self._stop)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018  both are pipes
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS if error is None else 0)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        self._process.stdout.close()

    def _stop(self) -> None:
        self._is_late.set()
        self._kill()

    def _kill(self) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return its result. Requests of the server are answered meanwhile."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if "method" in message:
                if "id" in message:
                    self._answer(message)
            elif message.get("id") == self._number:
                result = message.get("result")
                if isinstance(result, dict):
                    return result
                if "error" in message:
                    raise McpServerRefused(f"it refused {method}", at=self._name, hint="check that it offers tools")
                raise self.protocol_error(f"its answer to {method} is none")

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101  it is a pipe
        try:
            self._process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._end_error() from None

    def _answer(self, request: dict[str, Any]) -> None:
        error = {"code": _METHOD_NOT_FOUND, "message": "not supported"}
        answer = {"result": {}} if request["method"] == "ping" else {"error": error}
        self.send({"id": request["id"], **answer})

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        line = self._read_line(self._process.stdout.fileno())
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self.protocol_error("it wrote a line that is no JSON") from None
        if not isinstance(message, dict):
            raise self.protocol_error("it wrote a line that is no message")
        return message

    def _read_line(self, fd: int) -> bytes:
        """Read a line until the time is up: a process that the server left behind may hold the pipe open."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > _LONGEST_LINE:
                raise self.protocol_error("it wrote a line that has no end")
            while not select.select([fd], [], [], _POLL_SECONDS)[0]:
                if self._is_late.is_set():
                    raise self._end_error()
            data = os.read(fd, _PIECE)
            if not data:
                raise self._end_error()
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _end_error(self) -> ContextPlaneError:
        if self._is_late.is_set():
            return McpServerSilent(
                f"no answer within {self._seconds:g} seconds", at=self._name, hint="start it by hand to see why"
            )
        return McpServerEnded("it ended before it answered", at=self._name, hint="start it by hand to see why")

    def protocol_error(self, why: str) -> McpServerGarbled:
        return McpServerGarbled(why, at=self._name, hint="a server writes its log to standard error")
