"""How long a command takes to start, as users install it (a wheel, a console script), against a bare interpreter."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.install import installed
from bench.measure import Row, in_turns

__all__ = ["startup"]

_ROUNDS = 40
_LIMITS = (("--version", 2.0), ("--help", 2.5), ("status", 5.5))


def startup() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        bin_ = installed(Path(folder))
        subprocess.run([bin_ / "ctx", "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = [[f"{bin_}/python", "-I", "-c", "pass"], *([f"{bin_}/ctx", argument] for argument, _ in _LIMITS)]

        def running(command: list[str]) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        bare, *times = in_turns([running(command) for command in commands], rounds=_ROUNDS)
    for (argument, limit), taken in zip(_LIMITS, times, strict=True):
        ratio = taken / bare
        figures = f"{taken * 1000:.1f} ms, bare {bare * 1000:.1f} ms"
        yield Row(f"ctx {argument}", "python -I -c pass", ratio, f"<= {limit}", ratio <= limit, figures)
