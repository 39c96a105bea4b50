"""The `Tools` port: one process for all calls of our own tools, and another one for each call of code of others.

A process that calls tools, seen from its owner: begun, asked, and ended with all that it began.
"""

import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from types import TracebackType
from typing import Self

import msgspec

from contextplane.adapters.tools.plugin_worker import plugins
from contextplane.adapters.tools.wire import (
    BUILT_IN,
    HEAD,
    OURS,
    OUTPUT_MOST,
    Answer,
    Request,
    framed,
    length,
    read_answer,
    wire_bytes,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.ports.tools import Confinement, ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown

__all__ = ["Child", "Confines", "ProcessTools"]

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


_HERE = __name__.rpartition(".")[0]
_OURS, _FUNCTION, _PLUGIN = f"{_HERE}.builtin", f"{_HERE}.function_worker", f"{_HERE}.plugin_worker"
_END_SECONDS = 2.0
_ALONE_SECONDS = 5.0  # after the time limit, the process of an owner that was killed ends by itself
_ENDED: dict[str, type[ContextPlaneError]] = {"failed": ToolFailed, "refused": ToolRefused}


class Confines(Value, frozen=True):
    """What calls may reach: files below `root`, these hosts, functions of these modules, and so many seconds each.

    `store` is a folder that none of them reaches, wherever it lies. `environment` is all that they see of ours.
    `trusting`: code of others is called also where no kernel holds it.
    """

    root: str
    store: str = ""
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0
    environment: Mapping[str, str] = {}
    trusting: bool = False


class ProcessTools:
    """Tools in processes of their own, begun when they are called. A call that overruns ends its process."""

    def __init__(self, confines: Confines) -> None:
        self._confines = confines
        self._worker: Child | None = None
        self.confinement: Confinement | None = None
        """Who held the tools that were called: the weaker, where that changed. None while there was no call."""

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
        except (RecursionError, UnicodeEncodeError):
            raise ToolFailed("the parameters are too deep, or hold what is no text") from None
        answer = self._of_ours(request) if name in OURS else self._of_others(name, request)
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

    def _of_ours(self, request: bytes) -> Answer:
        if self._worker is None:
            self._worker = Child(_OURS, self._told(), self._confines.environment)
        try:
            self._held(self._worker)
            return self._worker.exchange(request, self._confines.seconds)
        except BaseException:
            # Whatever it is in the middle of, its next answer would not be the one to the next request.
            self.close(at_once=True)
            raise

    def _of_others(self, name: str, request: bytes) -> Answer:
        with _scratch() as scratch:
            places = {"HOME": scratch, "TMPDIR": scratch}
            module = _FUNCTION if name == "python" else _PLUGIN
            child = Child(module, self._told(scratch), {**self._confines.environment, **places})
            try:
                if self._held(child) == "python" and not self._confines.trusting:
                    raise ToolRefused(
                        "this system has no wall for code of others (Linux 6.2 has)",
                        hint="--trust-tools calls it without one: only what you trust",
                    )
                return child.exchange(request, self._confines.seconds)
            finally:
                child.end(0.0)

    def _held(self, child: Child) -> Confinement:
        if self.confinement != "python":
            self.confinement = child.confinement
        return child.confinement

    def _told(self, scratch: str = "") -> tuple[str, ...]:
        own = self._confines
        root, store = os.path.abspath(own.root), os.path.abspath(own.store) if own.store else ""
        return root, store, ",".join(own.hosts), ",".join(own.modules), str(own.seconds + _ALONE_SECONDS), scratch


@contextmanager
def _scratch() -> Iterator[str]:
    """A folder for what code of others writes, for as long as it runs."""
    folder = tempfile.mkdtemp(prefix="ctx-tool-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
