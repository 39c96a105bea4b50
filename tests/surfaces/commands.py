"""Run `ctx` and judge it by its exit status and by what it wrote.

Within this process where another one would show nothing more; forked, or started as users do, where it would.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE
from tests.surfaces.forked_commands import forked
from tests.surfaces.in_process import run_in_process

__all__ = ["COMMAND", "Result", "child_environment", "ctx", "ctx_as_nobody", "ctx_started", "in_public", "is_root"]

COMMAND = str(Path(sys.executable).with_name("ctx"))
NOBODY = 65534
_ASTRAY = frozenset({"CTX_DATABASE_URL", "CTX_DIR", "NO_COLOR", "PYTHONUNBUFFERED"})


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended. `raw` is its standard output as bytes, `out` the same as text."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode(errors="backslashreplace")


def is_root() -> bool:
    return os.geteuid() == 0


def child_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without what leads `ctx` or its output astray, and without measuring the child."""
    ours = {key: value for key, value in os.environ.items() if key not in _ASTRAY and not key.startswith("COV")}
    if "PYTHONPATH" in ours:  # the child works in another folder
        ours["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, ours["PYTHONPATH"].split(os.pathsep)))
    return ours | dict(env or {})


def ctx(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002  the name that subprocess gives it
) -> Result:
    """Run `ctx` with these arguments and without those variables that would lead it astray."""
    return _run(args, cwd, child_environment(env), input)


def ctx_started(*args: str, cwd: Path) -> Result:
    """The same from the console script, with an interpreter that has nothing loaded: slower, and just as users do."""
    return _started(args, cwd, child_environment(), None)


def ctx_as_nobody(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002  the name that subprocess gives it
) -> Result:
    """Run `ctx` as somebody for whom file modes count: as nobody when we are root, else as ourselves."""
    if not is_root():
        return ctx(*args, cwd=cwd, env=env, input=input)
    return _run(args, cwd, child_environment(env), input, user=NOBODY)


@contextmanager
def in_public() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _run(
    args: Sequence[str], cwd: Path, env: dict[str, str], data: bytes | None, *, user: int | None = None
) -> Result:
    done = run_in_process([COMMAND, *args], cwd, env, data) if user is None else None
    if done is None:
        done = forked([COMMAND, *args], cwd, env, data, user=user)
    if done is None:
        assert user is None, "a command as somebody else is always forked"
        return _started(args, cwd, env, data)
    status, out, err = done
    return Result(status=status, raw=out, err=err.decode(errors="backslashreplace"))


def _started(args: Sequence[str], cwd: Path, env: dict[str, str], data: bytes | None) -> Result:
    done = subprocess.run(
        [COMMAND, *args],
        cwd=cwd,
        env=env,
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return Result(status=done.returncode, raw=done.stdout, err=done.stderr.decode(errors="backslashreplace"))
