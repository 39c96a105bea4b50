"""Runs commands in processes forked from one that has all of `ctx` loaded: no interpreter starts.

Each command has its own folder, environment, streams and exit status, as a command from the shell has. Variables that
an interpreter reads at its start cannot differ here; a test that needs that, or looks at imports, starts a new one.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.patience import PATIENCE
from tests.surfaces.in_process_commands import STARTUP_VARIABLES

__all__ = ["run_forked"]

_MAX_INPUT = 32 << 10  # a pipe holds so much before it is read

# Lazily imported modules are loaded too: a command without rights could not read them later.
_FORK_SERVER = """
import argparse, atexit, difflib, gettext, json, locale, os, pkgutil, shutil, signal, socket, sqlite3, sys
import contextplane.adapters.sqlite.connection
import contextplane.cli.main
for room in ("adapters", "app", "cli", "handoff", "mcp", "model", "store"):
    for module in pkgutil.walk_packages([os.path.join(contextplane.__path__[0], room)], f"contextplane.{room}."):
        try:
            __import__(module.name)
        except Exception:
            pass  # the command that needs it will say so
contextplane.adapters.sqlite.connection.migrations()
calls = socket.socket(fileno=int(sys.argv[1]))

def run(call, streams):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    calls.close()
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    sys.argv = call["argv"]
    if call["user"] is not None:
        os.setgroups([])
        os.setgid(call["user"])
        os.setuid(call["user"])
    contextplane.cli.main.console()

while True:
    data, streams, _, _ = socket.recv_fds(calls, 1 << 20, 3)
    if not data:
        break
    while not data.endswith(b"\\n"):
        data += calls.recv(1 << 20)
    child = os.fork()
    if not child:
        status = 1
        try:
            run(json.loads(data), streams)
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(status)
    for stream in streams:
        os.close(stream)
    calls.sendall(b"%d\\n" % child)
    _, status = os.waitpid(child, 0)
    calls.sendall(b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


def run_forked(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], data: bytes | None, *, user: int | None = None
) -> tuple[int, bytes, bytes] | None:
    """Run a command; return its status, output and errors, or None if it needs a new interpreter."""
    settings = {key: value for key, value in env.items() if key.startswith(STARTUP_VARIABLES)}
    if len(data or b"") > _MAX_INPUT or any(os.environ.get(key) != value for key, value in settings.items()):
        return None
    return _fork_server(threading.get_native_id(), frozenset(settings.items())).run(
        json.dumps({"argv": list(argv), "cwd": os.fspath(cwd), "env": dict(env), "user": user}), data
    )


class _ForkServer:
    """The process that commands are forked from."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._calls, theirs = socket.socketpair()
        self._calls.settimeout(PATIENCE)
        with theirs:
            variables = {key: value for key, value in os.environ.items() if not key.startswith(STARTUP_VARIABLES)}
            self._process = subprocess.Popen(
                [sys.executable, "-c", _FORK_SERVER, str(theirs.fileno())],
                env=variables | settings,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(self, call: str, data: bytes | None) -> tuple[int, bytes, bytes]:
        streams = [_input_pipe(data), os.memfd_create("out"), os.memfd_create("err")]
        try:
            message = call.encode() + b"\n"
            sent = socket.send_fds(self._calls, [message], streams)
            self._calls.sendall(message[sent:])
            child = int(self._line())
            try:
                status = int(self._line())
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                self._line()
                raise
            return status, _content(streams[1]), _content(streams[2])
        finally:
            for stream in streams:
                os.close(stream)

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            piece = self._calls.recv(1)
            if not piece:
                raise EOFError("the process that commands are forked from has ended")
            line += piece
        return line


@cache
def _fork_server(_thread: int, settings: frozenset[tuple[str, str]]) -> _ForkServer:
    """The server of a thread and of these startup variables. One per thread, so that commands run at once."""
    return _ForkServer(dict(settings))


def _input_pipe(data: bytes | None) -> int:
    if data is None:
        return os.open(os.devnull, os.O_RDONLY)
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)
