"""Serves our stdio server over HTTP, for suites that only speak HTTP: one process for each session.

Only what stdio has is under test. The rules of HTTP itself, such as its headers, are those of this bridge.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Lock, Thread
from typing import Any

from tests.agents.programs import World
from tests.surfaces.commands import COMMAND

__all__ = ["serve_over_http"]

_SESSION = "mcp-session-id"
_SECONDS = 20.0


@dataclass
class _Server:
    """A running `ctx mcp`. Answers are handed to the request with their id."""

    process: subprocess.Popen[bytes]
    lock: Lock = field(default_factory=Lock)
    arrived: Event = field(default_factory=Event)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.append(json.loads(line))
            self.arrived.set()

    def ask(self, data: bytes, request: dict[str, Any]) -> dict[str, Any] | None:
        """Send a message; return its answer if it is a request."""
        assert self.process.stdin is not None
        with self.lock:
            self.arrived.clear()
            self.process.stdin.write(data.replace(b"\n", b" ") + b"\n")
            self.process.stdin.flush()
            while "id" in request and self.arrived.wait(_SECONDS):
                self.arrived.clear()
                for answer in self.answers:
                    if answer.get("id") == request["id"]:
                        self.answers.remove(answer)
                        return answer
            return None


@dataclass
class _Sessions:
    world: World
    servers: dict[str, _Server] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def start(self) -> str:
        process = subprocess.Popen(
            [COMMAND, "mcp"],
            cwd=self.world.project,
            env=self.world.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        name = f"session-{next(self.numbers)}"
        self.servers[name] = _Server(process)
        Thread(target=self.servers[name].listen, daemon=True).start()
        return name

    def end(self, name: str) -> None:
        process = self.servers.pop(name).process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(_SECONDS)
        process.stdout.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: _Sessions

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        pass

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = json.loads(data)
        name = self.headers.get(_SESSION)
        if name is not None and name not in self.sessions.servers:
            return self._send(404)
        is_stateless = name is None and request.get("method") != "initialize"
        session = name or self.sessions.start()
        answer = self.sessions.servers[session].ask(data, request)
        if is_stateless:
            self.sessions.end(session)
        if answer is None:
            return self._send(202)
        return self._send(200, json.dumps(answer).encode(), None if is_stateless else session)

    def do_GET(self) -> None:
        self._send(405)

    def do_DELETE(self) -> None:
        name = self.headers.get(_SESSION)
        if name not in self.sessions.servers:
            return self._send(404)
        self.sessions.end(name)
        return self._send(200)

    def _send(self, status: int, data: bytes = b"", session: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if session is not None:
            self.send_header(_SESSION, session)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serve_over_http(world: World) -> Iterator[str]:
    """Serve `ctx mcp` of a world on a free port, and yield its address."""
    sessions = _Sessions(world)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"sessions": sessions}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for name in list(sessions.servers):
            sessions.end(name)
