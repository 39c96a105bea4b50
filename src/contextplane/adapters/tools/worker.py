"""The main loop of a worker process: it confines itself, then runs one tool call after the other.

It ends when its owner closes the pipe. The owner kills it when a call exceeds its time; if the owner was killed before,
the worker ends by itself after `seconds`.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeAlias

from contextplane.adapters.tools.sandbox import Workspace, confine
from contextplane.adapters.tools.wire import (
    HEADER_BYTES,
    Tool,
    ToolRequest,
    ToolResponse,
    decode_request,
    encode_message,
    frame,
    payload_length,
)
from contextplane.errors import ContextPlaneError
from contextplane.ports.tools import ToolRefused
from contextplane.ports.world import OutsideRoot

__all__ = ["ToolLookup", "run_tool", "serve"]

ToolLookup: TypeAlias = Callable[[str], Tool]


def run_tool(request: ToolRequest, lookup: ToolLookup) -> ToolResponse:
    """Call a tool and return its response; every error of the tool is a response as well."""
    try:
        return ToolResponse(ended="output", output=lookup(request.tool)(request.parameters))
    except (ToolRefused, OutsideRoot) as error:
        return ToolResponse(ended="refused", message=str(error))
    except ContextPlaneError as error:
        return ToolResponse(ended="failed", message=str(error))
    except PermissionError as error:
        return ToolResponse(ended="refused", message=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code may raise anything
        return ToolResponse(ended="failed", message=f"{type(error).__name__}: {error}")


def serve(
    argv: Sequence[str], make_lookup: Callable[[Workspace, tuple[str, ...], tuple[str, ...]], ToolLookup]
) -> None:
    """Run a worker whose arguments are ROOT STORE HOSTS MODULES SECONDS SCRATCH.

    HOSTS and MODULES are comma-separated. `make_lookup` returns the tools for a workspace, hosts and modules.
    """
    root, store, hosts, modules, seconds, scratch = argv
    incoming, outgoing = _take_over_pipes()
    os.chdir(root)
    workspace, allowed = Workspace(root, store), _split_commas(hosts)
    lookup = make_lookup(workspace, allowed, _split_commas(modules))
    _write(outgoing, confine(workspace, allowed, scratch=scratch, seconds=float(seconds)).encode())
    while (header := _read(incoming, HEADER_BYTES)) and (payload := _read(incoming, payload_length(header))):
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        response = encode_message(run_tool(decode_request(payload), lookup))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(outgoing, response)


def _split_commas(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _take_over_pipes() -> tuple[int, int]:
    """Move the owner's pipes away from stdin and stdout, which then lead to /dev/null for tools."""
    pipes = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return pipes


def _read(fd: int, size: int) -> bytes:
    """Read exactly `size` bytes; empty when the other side has closed the pipe."""
    data = bytearray()
    while len(data) < size:
        chunk = os.read(fd, min(size - len(data), 1 << 20))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def _write(fd: int, payload: bytes) -> None:
    unwritten = memoryview(frame(payload))
    while unwritten:
        unwritten = unwritten[os.write(fd, unwritten) :]
