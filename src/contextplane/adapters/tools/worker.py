"""The worker process: calls tools one after the other, and ends when its owner goes away.

`python -m contextplane.adapters.tools.worker ROOT HOSTS MODULES SECONDS`, hosts and modules with commas between. Its
owner ends it when a call overruns; SECONDS is when it ends by itself, should its owner be gone by then.
"""

import os
import signal
import sys

from contextplane.adapters.tools.files import file_tools
from contextplane.adapters.tools.functions import python_tool
from contextplane.adapters.tools.http import http_tool
from contextplane.adapters.tools.plugins import plugin_tool
from contextplane.adapters.tools.tool import Tool
from contextplane.adapters.tools.wire import HEAD, READY, Answer, Request, framed, length, read_request, wire_bytes
from contextplane.errors import ContextPlaneError
from contextplane.ports.sources import OutsideRoot
from contextplane.ports.tools import ToolRefused

__all__ = ["answered", "main", "tools_of"]


def tools_of(root: str, hosts: tuple[str, ...], modules: tuple[str, ...]) -> dict[str, Tool]:
    """The built-in tools with what they may reach."""
    return file_tools(root) | {"http_get": http_tool(hosts), "python": python_tool(root, modules)}


def answered(request: Request, tools: dict[str, Tool], root: str) -> Answer:
    """Call a tool; whatever happens in it is an answer."""
    try:
        tool = tools.get(request.tool)
        if tool is None:
            tool = tools[request.tool] = plugin_tool(request.tool, root)
        return Answer(ended="output", output=tool(request.parameters))
    except (ToolRefused, OutsideRoot) as error:
        return Answer(ended="refused", message=str(error))
    except ContextPlaneError as error:
        return Answer(ended="failed", message=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  code of others may raise anything
        return Answer(ended="failed", message=f"{type(error).__name__}: {error}")


def main(argv: list[str]) -> None:
    root, hosts, modules, seconds = argv
    incoming, outgoing = _own_pipes()
    os.chdir(root)
    tools = tools_of(root, tuple(filter(None, hosts.split(","))), tuple(filter(None, modules.split(","))))
    _write(outgoing, READY)
    while (head := _read(incoming, HEAD)) and (payload := _read(incoming, length(head))):
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        answer = wire_bytes(answered(read_request(payload), tools, root))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(outgoing, answer)


def _own_pipes() -> tuple[int, int]:
    """The pipes of our owner, out of reach of tools that print or read: those find nothing there."""
    pipes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return pipes


def _read(fd: int, size: int) -> bytes:
    """So many bytes, or none when the other side is gone."""
    data = bytearray()
    while len(data) < size:
        piece = os.read(fd, min(size - len(data), 1 << 20))
        if not piece:
            return b""
        data += piece
    return bytes(data)


def _write(fd: int, payload: bytes) -> None:
    view = memoryview(framed(payload))
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    main(sys.argv[1:])
