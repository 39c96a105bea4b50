"""What every process that calls tools does: confine itself, then answer calls one after the other.

It ends when its owner goes away. Its owner ends it when a call overruns; should the owner be gone by then, it ends by
itself after `seconds`.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeAlias

from contextplane.adapters.tools.sandbox import Workspace, confine
from contextplane.adapters.tools.wire import HEAD, Answer, Request, Tool, framed, length, read_request, wire_bytes
from contextplane.errors import ContextPlaneError
from contextplane.ports.tools import ToolRefused
from contextplane.ports.world import OutsideRoot

__all__ = ["Find", "answered", "serve"]

Find: TypeAlias = Callable[[str], Tool]


def answered(request: Request, find: Find) -> Answer:
    """Call a tool; whatever happens in it is an answer."""
    try:
        return Answer(ended="output", output=find(request.tool)(request.parameters))
    except (ToolRefused, OutsideRoot) as error:
        return Answer(ended="refused", message=str(error))
    except ContextPlaneError as error:
        return Answer(ended="failed", message=str(error))
    except PermissionError as error:
        return Answer(ended="refused", message=str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001  code of others may raise anything
        return Answer(ended="failed", message=f"{type(error).__name__}: {error}")


def serve(argv: Sequence[str], tools: Callable[[Workspace, tuple[str, ...], tuple[str, ...]], Find]) -> None:
    """ROOT STORE HOSTS MODULES SECONDS SCRATCH, hosts and modules with commas between: `tools` makes them of these."""
    root, store, hosts, modules, seconds, scratch = argv
    incoming, outgoing = _own_pipes()
    os.chdir(root)
    workspace, allowed = Workspace(root, store), _listed(hosts)
    find = tools(workspace, allowed, _listed(modules))
    _write(outgoing, confine(workspace, allowed, scratch=scratch, seconds=float(seconds)).encode())
    while (head := _read(incoming, HEAD)) and (payload := _read(incoming, length(head))):
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        answer = wire_bytes(answered(read_request(payload), find))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(outgoing, answer)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _own_pipes() -> tuple[int, int]:
    """The pipes of our owner, out of the way of tools that print or read: those find nothing there."""
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
