"""The `Tools` port: one worker process for all calls, and another one after a call that had to be ended."""

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import Self

import msgspec

from contextplane.adapters.tools.plugins import plugins
from contextplane.adapters.tools.tool import BUILT_IN, OUTPUT_MOST
from contextplane.adapters.tools.wire import HEAD, READY, Answer, Request, framed, length, read_answer, wire_bytes
from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown

__all__ = ["Confines", "ProcessTools"]

_BEGIN_SECONDS = 60.0
_END_SECONDS = 2.0
_ALONE_SECONDS = 5.0  # after the time limit, the worker of an owner that was killed ends by itself
_CHUNK = 1 << 20
_ANSWER_MOST = OUTPUT_MOST + (1 << 20)
_ENDED: dict[str, type[ContextPlaneError]] = {"failed": ToolFailed, "refused": ToolRefused}


class Confines(Value, frozen=True):
    """What calls may reach: files below `root`, these hosts, functions of these modules, and so many seconds each."""

    root: str
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0


class ProcessTools:
    """Tools in a process of their own, begun with the first call. A call that overruns ends it, and what it began."""

    def __init__(self, confines: Confines) -> None:
        self._confines = confines
        self._worker: _Worker | None = None

    @cached_property
    def _plugins(self) -> dict[str, str]:
        """Looked for when first a tool is named that is not built in."""
        return plugins()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*BUILT_IN, *self._plugins}))

    def version(self, name: str) -> str:
        version = BUILT_IN.get(name)
        if version is None:
            version = self._plugins.get(name)
        if version is None:
            raise ToolUnknown(f"no tool {name[:80]!r} is available here", hint=f"there are {', '.join(self.names())}")
        return version

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        self.version(name)  # an unknown tool needs no process
        try:
            request = wire_bytes(Request(tool=name, parameters=dict(parameters)))
        except RecursionError:
            raise ToolFailed("the parameters are too deep") from None
        if self._worker is None:
            self._worker = _Worker(self._confines)
        try:
            answer = self._worker.exchange(request, self._confines.seconds)
        except BaseException:
            # Whatever it is in the middle of, its next answer would not be the one to the next request.
            self.close(at_once=True)
            raise
        if answer.ended != "output":
            raise _ENDED[answer.ended](answer.message)
        return answer.output

    def close(self, *, at_once: bool = False) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(0.0 if at_once else _END_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(at_once=kind is not None)


class _Worker:
    """The process and its two pipes. Neither reading nor writing waits beyond a deadline."""

    def __init__(self, confines: Confines) -> None:
        # -P: the folder that we happen to be in brings no modules. -B: nothing is written into the workspace.
        command = [sys.executable, "-P", "-B", "-m", "contextplane.adapters.tools.worker"]
        told = [os.path.abspath(confines.root), ",".join(confines.hosts), ",".join(confines.modules)]
        told.append(str(confines.seconds + _ALONE_SECONDS))
        self._process = subprocess.Popen(  # noqa: S603  our own module, by our own interpreter
            [*command, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise ToolFailed("the worker has no pipes")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._ready = False

    def exchange(self, request: bytes, seconds: float) -> Answer:
        """Send a request and wait for its answer. How long the process takes to begin is not the tool's time."""
        if not self._ready:
            self._ready = self._message(time.monotonic() + _BEGIN_SECONDS) == READY
        deadline = time.monotonic() + seconds
        try:
            self._send(framed(request), deadline)
            return read_answer(self._message(deadline))
        except ToolTimedOut:
            raise ToolTimedOut(f"still running after {seconds:g} s", hint="--timeout gives it longer") from None
        except (BrokenPipeError, msgspec.DecodeError):
            raise _gone() from None

    def end(self, patience: float) -> None:
        """End the process and all that it began; it may leave by itself first, when there is patience."""
        self._stdin.close()
        with suppress(ToolFailed, ToolTimedOut):
            self._receive(1, time.monotonic() + patience)  # its end of the pipe closes when it ends
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stdout.close()

    def _message(self, deadline: float) -> bytes:
        size = length(self._receive(HEAD, deadline))
        if size > _ANSWER_MOST:
            raise _gone()
        return self._receive(size, deadline)

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _await(self._stdin.fileno(), select.POLLOUT, deadline)
            view = view[self._stdin.write(view) or 0 :]

    def _receive(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            _await(self._stdout.fileno(), select.POLLIN, deadline)
            piece = self._stdout.read(min(size - len(data), _CHUNK))
            if piece == b"":
                raise _gone()
            data += piece or b""
        return bytes(data)


def _await(fd: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    left = deadline - time.monotonic()
    if not poll.poll(max(0, math.ceil(left * 1000))):
        raise ToolTimedOut("no answer in time")


def _gone() -> ToolFailed:
    return ToolFailed("the process that ran the tool ended unexpectedly")
