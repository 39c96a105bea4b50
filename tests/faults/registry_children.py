"""A process that runs commands in children and kills each at a chosen call: `python -m tests.faults.registry_children`.

It imports no pytest, and it forks, which a test process with threads must not. A child is killed (`SIGKILL`) just
before the nth call that reaches outside of the interpreter: of a file, of the system, or of the database. Between two
such calls nothing changes that outlives the child.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, Popen
from types import FrameType, TracebackType
from typing import IO, NamedTuple, Self

import contextplane.cli.main

__all__ = ["CommandKiller", "KilledCommand"]

ROOT = Path(__file__).resolve().parents[2]
_OUTSIDE = ("posix", "_io", "_sqlite3", "sqlite3", "fcntl")
_NEVER = 1 << 60


class KilledCommand(NamedTuple):
    """How a command ended: its status, -9 if it was killed, and how many calls it made."""

    status: int
    calls: int


class CommandKiller:
    """Runs commands in the other process, each until its nth call."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.faults.registry_children"]
        self._process = Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._process:
            _stream(self._process.stdin).close()

    def run(self, args: list[str], *, cwd: Path, env: Mapping[str, str], nth: int = _NEVER) -> KilledCommand:
        """Run `ctx` with these arguments, and kill it before its nth call."""
        call = {"argv": ["ctx", *args], "cwd": str(cwd), "env": dict(env), "nth": nth}
        requests, answers = _stream(self._process.stdin), _stream(self._process.stdout)
        requests.write(json.dumps(call).encode() + b"\n")
        requests.flush()
        status, calls = json.loads(answers.readline())
        return KilledCommand(status, calls)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


# --- the other process ------------------------------------------------------------------------------------------------


def _serve() -> None:
    for line in sys.stdin:
        call = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os._exit(_child(call, writing))
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            calls = file.read()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), int(calls or b"0")]) + "\n")
        sys.stdout.flush()


def _child(call: dict[str, object], writing: int) -> int:
    """Run the command of a call. The number of its calls is written when it ends by itself."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.chdir(str(call["cwd"]))
    os.environ.clear()
    os.environ.update(dict(call["env"]))  # type: ignore[call-overload]
    sys.argv = list(call["argv"])  # type: ignore[call-overload]
    count, nth = 0, int(str(call["nth"]))

    def look(_frame: FrameType, event: str, function: object) -> None:
        nonlocal count
        if event == "c_call" and _reaches_outside(function):
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    status = 1
    sys.setprofile(look)
    try:
        contextplane.cli.main.console()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.setprofile(None)
        os.write(writing, b"%d" % count)
    return status


def _reaches_outside(function: object) -> bool:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(type(owner), "__module__", "")
    return str(module).startswith(_OUTSIDE) or getattr(owner, "__name__", "") in _OUTSIDE


if __name__ == "__main__":
    _serve()
