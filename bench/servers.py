"""The MCP servers to measure in turns: our installed one, and another one that `MCP_OTHER` names.

`MCP_OTHER` is a command with its arguments. Each server has its own roots, with the same packs in them.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.install import install_wheel
from bench.measure import scratch

__all__ = ["Client", "Server", "servers"]

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """A client of a running server, for one request at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout

    def request(self, method: str, params: object) -> dict[str, Any]:
        self._in.write(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + b"\n")
        self._in.flush()
        reply = msgspec.json.decode(self._out.readline(), type=dict[str, Any])
        assert "result" in reply, reply
        return dict(reply["result"])

    def hello(self) -> None:
        self.request("initialize", _HELLO)

    def call(self, tool: str, **arguments: object) -> str:
        """Call a tool, which must succeed; return its text."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = str(result["content"][0]["text"])
        assert not result.get("isError"), text
        return text

    def payload(self, action: str, **arguments: object) -> dict[str, Any]:
        return dict(msgspec.json.decode(self.call("input", action=action, **arguments))["payload"])

    def prepare_call(self, tool: str, **arguments: object) -> Callable[[], object]:
        return lambda: self.call(tool, **arguments)

    def leave(self) -> None:
        self._in.close()
        self._process.wait()
        self._out.close()


class Server:
    """The command of a server, with its own folders as root and source root."""

    def __init__(self, name: str, command: list[str], folder: str) -> None:
        self.name = name
        self._command = command
        self._folder = folder

    def root(self) -> str:
        return tempfile.mkdtemp(dir=self._folder)

    def start(self, root: str) -> Client:
        env: Mapping[str, str] = os.environ | {"CONTEXT_PACK_ROOT": root, "CONTEXT_PACK_SOURCE_ROOT": self._folder}  # noqa: TID251
        return Client(
            subprocess.Popen(
                self._command,
                cwd=root,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        )

    @contextmanager
    def running(self, root: str) -> Iterator[Client]:
        client = self.start(root)
        try:
            client.hello()
            yield client
        finally:
            client.leave()


@contextmanager
def servers() -> Iterator[tuple[Path, Path, list[Server], ExitStack]]:
    """Yield a folder on the disk of the checkout, our Python, the servers, and a stack for cleanup."""
    with scratch() as folder, ExitStack() as stack:
        bin_ = install_wheel(Path(folder))
        servers = [Server("ours", [str(bin_ / "mcp-context-pack")], folder)]
        if other := os.environ.get("MCP_OTHER"):  # noqa: TID251  said above
            servers.append(Server("MCP_OTHER", shlex.split(other), folder))
        yield Path(folder), bin_ / "python", servers, stack
