"""The start-up time of installed commands, against a bare interpreter."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.install import install_wheel
from bench.measure import Row, measure_in_turns

__all__ = ["startup_rows"]

_ROUNDS = 40
_LIMITS = (("--version", 2.0), ("--help", 2.5), ("status", 4.5))


def startup_rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        bin_ = install_wheel(Path(folder))
        subprocess.run([bin_ / "ctx", "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        commands = [[f"{bin_}/python", "-I", "-c", "pass"], *([f"{bin_}/ctx", argument] for argument, _ in _LIMITS)]

        def prepare(command: list[str]) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        bare, *times = measure_in_turns([prepare(command) for command in commands], rounds=_ROUNDS)
    for (argument, limit), taken in zip(_LIMITS, times, strict=True):
        ratio = taken / bare
        figures = f"{taken * 1000:.1f} ms, bare {bare * 1000:.1f} ms"
        yield Row(f"ctx {argument}", "python -I -c pass", ratio, f"<= {limit}", ratio <= limit, figures)
