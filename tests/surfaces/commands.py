"""Runs `ctx` for tests; the result has its exit status, output and errors.

A command runs within this process unless it needs one of its own; then it is forked, or started as users do.
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
from tests.surfaces.forked_commands import run_forked
from tests.surfaces.in_process_commands import run_in_process

__all__ = [
    "COMMAND",
    "Result",
    "child_environment",
    "ctx",
    "ctx_as_nobody",
    "ctx_subprocess",
    "is_root",
    "public_folder",
]

COMMAND = str(Path(sys.executable).with_name("ctx"))
NOBODY = 65534
_UNWANTED_VARIABLES = frozenset(
    {
        "COLUMNS",
        "CTX_DATABASE_URL",
        "CTX_DIR",
        "CTX_OTHER_DATABASE_URL",
        "CTX_TRUST_ROOT",
        "NO_COLOR",
        "PYTHONUNBUFFERED",
    }
)


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
    """Our environment without variables that change `ctx` or its output or measure coverage, plus `env`."""
    ours = {
        key: value for key, value in os.environ.items() if key not in _UNWANTED_VARIABLES and not key.startswith("COV")
    }
    if "PYTHONPATH" in ours:  # the child works in another folder
        ours["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, ours["PYTHONPATH"].split(os.pathsep)))
    return ours | dict(env or {})


def ctx(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002  the name that subprocess gives it
) -> Result:
    """Run `ctx` with these arguments in `child_environment(env)`."""
    return _run(args, cwd, child_environment(env), input)


def ctx_subprocess(*args: str, cwd: Path) -> Result:
    """Run the console script in a new interpreter, as users do. Slower than `ctx`."""
    return _run_subprocess(args, cwd, child_environment(), None)


def ctx_as_nobody(
    *args: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,  # noqa: A002  the name that subprocess gives it
) -> Result:
    """Run `ctx` as a user for whom file modes count: user `nobody` if we are root, else ourselves.

    A store in the folder is named by `CTX_DIR`: another user's is used only on purpose.
    """
    if not is_root():
        return ctx(*args, cwd=cwd, env=env, input=input)
    named = {"CTX_DIR": str(cwd / ".ctx")} if (cwd / ".ctx").exists() else {}
    return _run(args, cwd, child_environment(named | dict(env or {})), input, user=NOBODY)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _run(args: Sequence[str], cwd: Path, env: dict[str, str], data: bytes | None, *, user: int | None = None) -> Result:
    outcome = run_in_process([COMMAND, *args], cwd, env, data) if user is None else None
    if outcome is None:
        outcome = run_forked([COMMAND, *args], cwd, env, data, user=user)
    if outcome is None:
        assert user is None, "a command as another user is always forked"
        return _run_subprocess(args, cwd, env, data)
    status, out, err = outcome
    return Result(status=status, raw=out, err=err.decode(errors="backslashreplace"))


def _run_subprocess(args: Sequence[str], cwd: Path, env: dict[str, str], data: bytes | None) -> Result:
    result = subprocess.run(
        [COMMAND, *args],
        cwd=cwd,
        env=env,
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return Result(status=result.returncode, raw=result.stdout, err=result.stderr.decode(errors="backslashreplace"))
