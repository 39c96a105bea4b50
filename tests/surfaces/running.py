"""Running `ctx` as its users do: a process of its own, judged by its exit status and by what it wrote."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.surfaces.forking import forked

__all__ = ["COMMAND", "Result", "child_environment", "ctx", "ctx_as_nobody", "ctx_started", "in_public", "is_root"]

COMMAND = str(Path(sys.executable).with_name("ctx"))
NOBODY = 65534
_ASTRAY = frozenset({"CTX_DATABASE_URL", "CTX_DIR", "NO_COLOR", "PYTHONUNBUFFERED"})
_PATIENCE = 30  # a command that waits for ever is a failure, not a hanging suite


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


def child_environment(env: Mapping[str, str] | None = None, *, measured: bool = True) -> dict[str, str]:
    """Our environment without what leads `ctx` or its output astray. `measured`: coverage may look into the child."""
    kept = {key: value for key, value in os.environ.items() if key not in _ASTRAY}
    if not measured:
        kept = {key: value for key, value in kept.items() if not key.startswith("COV")}
    if "PYTHONPATH" in kept:  # the child works in another folder
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep)))
    return kept | dict(env or {})


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
    return _run(args, cwd, child_environment(env, measured=False), input, user=NOBODY)


@contextmanager
def in_public() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _run(
    args: Sequence[str], cwd: Path, env: dict[str, str], given: bytes | None, *, user: int | None = None
) -> Result:
    done = forked([COMMAND, *args], cwd, env, given, user=user)
    if done is None:
        assert user is None, "a command as somebody else is always forked"
        return _started(args, cwd, env, given)
    status, out, err = done
    return Result(status=status, raw=out, err=err.decode(errors="backslashreplace"))


def _started(args: Sequence[str], cwd: Path, env: dict[str, str], given: bytes | None) -> Result:
    done = subprocess.run(
        [COMMAND, *args],
        cwd=cwd,
        env=env,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        check=False,
        timeout=_PATIENCE,
    )
    return Result(status=done.returncode, raw=done.stdout, err=done.stderr.decode(errors="backslashreplace"))
