"""The `Tools` port on worker processes.

One process serves all calls of our own tools; each call of foreign code has its own.
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

from contextplane.adapters.tools.plugin_worker import plugin_versions
from contextplane.adapters.tools.wire import (
    BUILTIN_VERSIONS,
    HEADER_BYTES,
    MAX_OUTPUT_BYTES,
    OWN_TOOLS,
    ToolRequest,
    ToolResponse,
    decode_response,
    encode_message,
    frame,
    payload_length,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.ports.tools import Confinement, ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown

__all__ = ["ProcessTools", "SandboxOptions", "WorkerProcess"]

_START_SECONDS = 60.0
_CHUNK = 1 << 20
_MAX_RESPONSE_BYTES = MAX_OUTPUT_BYTES + (1 << 20)


class WorkerProcess:
    """A worker process and its two pipes. Neither reading nor writing waits beyond a deadline."""

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        # -P: no modules from the current folder. -B: no compiled code is written.
        self._process = subprocess.Popen(  # noqa: S603  our own module, by our own interpreter
            [sys.executable, "-P", "-B", "-m", module, *arguments],
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
        """What confines the worker: its first message, before any tool is called."""
        return "kernel" if self._read_message(time.monotonic() + _START_SECONDS) == b"kernel" else "python"

    def exchange(self, request: bytes, seconds: float) -> ToolResponse:
        """Send a request and wait for the response. The start of the process does not count."""
        _ = self.confinement
        if _ready(self._stdout.fileno(), select.POLLIN, 0.0):
            raise _worker_ended()  # it ended, or responds before the request
        deadline = time.monotonic() + seconds
        try:
            self._send(frame(request), deadline)
            return decode_response(self._read_message(deadline))
        except ToolTimedOut:
            raise ToolTimedOut(f"still running after {seconds:g} s", hint="--timeout gives it longer") from None
        except (BrokenPipeError, msgspec.DecodeError):
            raise _worker_ended() from None

    def end(self, grace: float) -> None:
        """Kill the process and its group; give it `grace` seconds to end by itself first."""
        self._stdin.close()
        with suppress(ToolFailed, ToolTimedOut):
            self._receive(1, time.monotonic() + grace)  # the pipe closes when it ends
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stdout.close()

    def _read_message(self, deadline: float) -> bytes:
        size = payload_length(self._receive(HEADER_BYTES, deadline))
        if size > _MAX_RESPONSE_BYTES:
            raise _worker_ended()
        return self._receive(size, deadline)

    def _send(self, data: bytes, deadline: float) -> None:
        unwritten = memoryview(data)
        while unwritten:
            _await(self._stdin.fileno(), select.POLLOUT, deadline)
            unwritten = unwritten[self._stdin.write(unwritten) or 0 :]

    def _receive(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            _await(self._stdout.fileno(), select.POLLIN, deadline)
            chunk = self._stdout.read(min(size - len(data), _CHUNK))
            if chunk == b"":
                raise _worker_ended()
            data += chunk or b""
        return bytes(data)


def _await(fd: int, event: int, deadline: float) -> None:
    if not _ready(fd, event, deadline - time.monotonic()):
        raise ToolTimedOut("no answer in time")


def _ready(fd: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0, math.ceil(seconds * 1000))))


def _worker_ended() -> ToolFailed:
    return ToolFailed("the process that ran the tool ended unexpectedly")


_PACKAGE = __name__.rpartition(".")[0]
_BUILTIN_WORKER, _FUNCTION_WORKER, _PLUGIN_WORKER = (
    f"{_PACKAGE}.builtin",
    f"{_PACKAGE}.function_worker",
    f"{_PACKAGE}.plugin_worker",
)
_END_SECONDS = 2.0
_ORPHAN_SECONDS = 5.0  # a worker whose owner was killed ends this long after the time limit
_ERRORS: dict[str, type[ContextPlaneError]] = {"failed": ToolFailed, "refused": ToolRefused}


class SandboxOptions(Value, frozen=True):
    """What tool calls may access, and for how long.

    - `root`: they read files below it; `store`: a folder they never access, wherever it is.
    - `hosts`, `modules`: allowed for `http_get` and for `python`; `seconds`: the time limit of a call.
    - `environment`: the variables that they see; none of ours is inherited.
    - `trusting`: foreign code is called also where the kernel cannot confine it.
    """

    root: str
    store: str = ""
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0
    environment: Mapping[str, str] = {}
    trusting: bool = False


class ProcessTools:
    """The `Tools` port. Processes start when needed; a call that exceeds its time ends its process."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._worker: WorkerProcess | None = None
        self.confinement: Confinement | None = None
        """What confined the tools so far: the weakest of all calls, None before the first."""

    @cached_property
    def _plugins(self) -> dict[str, str]:
        """Found on first use: only a name that is not built in needs them."""
        return plugin_versions()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*BUILTIN_VERSIONS, *self._plugins}))

    def version(self, name: str) -> str:
        version = BUILTIN_VERSIONS.get(name)
        if version is None:
            version = self._plugins.get(name)
        if version is None:
            raise ToolUnknown(f"no tool {name[:80]!r} is available here", hint=f"there are {', '.join(self.names())}")
        return version

    def call(self, name: str, parameters: Mapping[str, object]) -> bytes:
        self.version(name)  # raises for an unknown tool before a process is started
        try:
            request = encode_message(ToolRequest(tool=name, parameters=dict(parameters)))
        except (RecursionError, UnicodeEncodeError):
            raise ToolFailed("the parameters are too deep, or contain something that is not text") from None
        response = self._call_own(request) if name in OWN_TOOLS else self._call_foreign(name, request)
        if response.ended != "output":
            raise _ERRORS[response.ended](response.message)
        return response.output

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

    def _call_own(self, request: bytes) -> ToolResponse:
        if self._worker is None:
            self._worker = WorkerProcess(_BUILTIN_WORKER, self._worker_arguments(), self._options.environment)
        try:
            self._record_confinement(self._worker)
            return self._worker.exchange(request, self._options.seconds)
        except BaseException:
            # Its next response might belong to the interrupted request.
            self.close(at_once=True)
            raise

    def _call_foreign(self, name: str, request: bytes) -> ToolResponse:
        with _scratch() as scratch:
            folders = {"HOME": scratch, "TMPDIR": scratch}
            module = _FUNCTION_WORKER if name == "python" else _PLUGIN_WORKER
            worker = WorkerProcess(module, self._worker_arguments(scratch), {**self._options.environment, **folders})
            try:
                if self._record_confinement(worker) == "python" and not self._options.trusting:
                    raise ToolRefused(
                        "this system has no wall for code of others (Linux 6.2 has)",
                        hint="--trust-tools calls it without one: only what you trust",
                    )
                return worker.exchange(request, self._options.seconds)
            finally:
                worker.end(0.0)

    def _record_confinement(self, worker: WorkerProcess) -> Confinement:
        if self.confinement != "python":
            self.confinement = worker.confinement
        return worker.confinement

    def _worker_arguments(self, scratch: str = "") -> tuple[str, ...]:
        options = self._options
        root, store = os.path.abspath(options.root), os.path.abspath(options.store) if options.store else ""
        seconds = str(options.seconds + _ORPHAN_SECONDS)
        return root, store, ",".join(options.hosts), ",".join(options.modules), seconds, scratch


@contextmanager
def _scratch() -> Iterator[str]:
    """Yield a temporary folder for the files of foreign code; removed at the end."""
    folder = tempfile.mkdtemp(prefix="ctx-tool-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
