"""How long a command takes to start, as users install it (a wheel, a console script), against a bare interpreter."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import Row, in_turns

__all__ = ["startup"]

_ROOT = Path(__file__).parent.parent
_ROUNDS = 40
_LIMITS = (("--version", 2.0), ("--help", 2.5), ("status", 5.5))


def startup() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        bin_ = _installed(Path(folder))
        subprocess.run([bin_ / "ctx", "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = [[f"{bin_}/python", "-I", "-c", "pass"], *([f"{bin_}/ctx", argument] for argument, _ in _LIMITS)]

        def running(command: list[str]) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        bare, *times = in_turns([running(command) for command in commands], rounds=_ROUNDS)
    for (argument, limit), taken in zip(_LIMITS, times, strict=True):
        ratio = taken / bare
        figures = f"{taken * 1000:.1f} ms, bare {bare * 1000:.1f} ms"
        yield Row(f"ctx {argument}", "python -I -c pass", ratio, f"<= {limit}", ratio <= limit, figures)


def _installed(folder: Path) -> Path:
    """A fresh environment with the locked dependencies and our wheel, compiled as pip compiles; its bin folder."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, _ROOT]
    subprocess.run(wheel, check=True)
    install = [*pip, "--python", environment / "bin" / "python", "install"]
    subprocess.run([*install, "--require-hashes", "-r", _ROOT / "requirements" / "run.txt"], check=True)
    subprocess.run([*install, "--no-deps", *folder.glob("*.whl")], check=True)
    return environment / "bin"
