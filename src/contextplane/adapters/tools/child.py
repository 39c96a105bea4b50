"""A process that calls tools, seen from its owner: begun, asked, and ended with all that it began."""

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import msgspec

from contextplane.adapters.tools.tool import OUTPUT_MOST
from contextplane.adapters.tools.wire import HEAD, Answer, framed, length, read_answer
from contextplane.ports.tools import Confinement, ToolFailed, ToolTimedOut

__all__ = ["Child"]

_BEGIN_SECONDS = 60.0
_CHUNK = 1 << 20
_ANSWER_MOST = OUTPUT_MOST + (1 << 20)


class Child:
    """The process and its two pipes. Neither reading nor writing waits beyond a deadline."""

    def __init__(self, module: str, told: Sequence[str], environment: Mapping[str, str]) -> None:
        # -P: the folder that we happen to be in brings no modules. -B: no compiled code is written.
        self._process = subprocess.Popen(  # noqa: S603  our own module, by our own interpreter
            [sys.executable, "-P", "-B", "-m", module, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env=environment,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise ToolFailed("the process for the tool has no pipes")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)

    @cached_property
    def confinement(self) -> Confinement:
        """Who holds it in its confines: the first thing that it says, before any tool is called."""
        return "kernel" if self._message(time.monotonic() + _BEGIN_SECONDS) == b"kernel" else "python"

    def exchange(self, request: bytes, seconds: float) -> Answer:
        """Send a request and wait for its answer. How long the process takes to begin is not the tool's time."""
        _ = self.confinement
        if _ready(self._stdout.fileno(), select.POLLIN, 0.0):
            raise _gone()  # it is gone, or answers what it was not asked yet
        deadline = time.monotonic() + seconds
        try:
            self._send(framed(request), deadline)
            return read_answer(self._message(deadline))
        except ToolTimedOut:
            raise ToolTimedOut(f"still running after {seconds:g} s", hint="--timeout gives it longer") from None
        except (BrokenPipeError, msgspec.DecodeError):
            raise _gone() from None

    def end(self, patience: float) -> None:
        """End the process and its group; it may leave by itself first, when there is patience."""
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
    if not _ready(fd, event, deadline - time.monotonic()):
        raise ToolTimedOut("no answer in time")


def _ready(fd: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0, math.ceil(seconds * 1000))))


def _gone() -> ToolFailed:
    return ToolFailed("the process that ran the tool ended unexpectedly")
