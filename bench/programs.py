"""The programs that are measured in turns: ours as it is installed, and any other `ctx` that `CTX_OTHER` names.

Each has stores of its own, filled through its own `pack`. What another program cannot do is left out.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.install import installed
from bench.measure import scratch

__all__ = ["Program", "programs"]


class Program:
    """One `ctx`."""

    def __init__(self, name: str, ctx: str, folder: str) -> None:
        self.name = name
        self._ctx = ctx
        self._folder = folder

    def fresh(self) -> str:
        """An empty store."""
        store = tempfile.mkdtemp(dir=self._folder)
        subprocess.run([self._ctx, "init"], cwd=store, check=True, stdout=subprocess.DEVNULL)
        return store

    def pack(self, store: str, log: Path) -> str:
        """Pack a log; the digits of the pack."""
        done = subprocess.run([self._ctx, "pack", str(log)], cwd=store, check=True, capture_output=True, text=True)
        return done.stdout.split("ctx://")[-1].strip()

    def packing(self, log: Path, *, rounds: int) -> Callable[[], object]:
        """Pack a log, each time into an empty store that was made before the clock runs."""
        stores = iter([self.fresh() for _ in range(rounds)])
        return lambda: self.pack(next(stores), log)

    def packing_on(self, logs: list[Path]) -> Callable[[], object]:
        """Pack one log after the other into the same store, as a store in use has it."""
        store = self.fresh()
        coming = iter(logs)
        return lambda: self.pack(store, next(coming))

    def can(self, store: str, *args: str) -> bool:
        """Whether the program has such a command."""
        return self._run(store, *args).returncode == 0

    def asking(self, store: str, *args: str) -> Callable[[], object]:
        return lambda: self._run(store, *args).check_returncode()

    def _run(self, store: str, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._ctx, *args], cwd=store, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


@contextmanager
def programs() -> Iterator[tuple[str, list[Program]]]:
    """A folder on the disk of the checkout, ours, and the other if there is one. All of it goes away at the end."""
    with scratch() as folder:
        programs = [Program("ours", str(installed(Path(folder)) / "ctx"), folder)]
        if other := os.environ.get("CTX_OTHER"):  # noqa: TID251  said above
            programs.append(Program("CTX_OTHER", other, folder))
        yield folder, programs
