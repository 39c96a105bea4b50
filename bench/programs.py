"""The programs to measure in turns: our installed `ctx`, and another one that `CTX_OTHER` names.

Each has its own stores, filled through its own `pack`. Operations that another program does not support are skipped.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.install import install_wheel
from bench.measure import scratch

__all__ = ["Program", "programs"]


class Program:
    """A `ctx` command."""

    def __init__(self, name: str, ctx: str, folder: str) -> None:
        self.name = name
        self._ctx = ctx
        self._folder = folder

    def new_store(self) -> str:
        """Make an empty store; return its folder."""
        store = tempfile.mkdtemp(dir=self._folder)
        subprocess.run([self._ctx, "init"], cwd=store, check=True, stdout=subprocess.DEVNULL)
        return store

    def pack(self, store: str, log: Path) -> str:
        """Pack a log; return the digest of the pack."""
        done = subprocess.run([self._ctx, "pack", str(log)], cwd=store, check=True, capture_output=True, text=True)
        return done.stdout.split("ctx://")[-1].strip()

    def pack_fresh(self, log: Path, *, rounds: int) -> Callable[[], object]:
        """Return work that packs a log, each time into an empty store that was made before."""
        stores = iter([self.new_store() for _ in range(rounds)])
        return lambda: self.pack(next(stores), log)

    def pack_in_turn(self, logs: list[Path]) -> Callable[[], object]:
        """Return work that packs one log after the other into the same store."""
        store = self.new_store()
        remaining = iter(logs)
        return lambda: self.pack(store, next(remaining))

    def supports(self, store: str, *args: str) -> bool:
        """Whether the program supports a command."""
        return self._run(store, *args).returncode == 0

    def prepare(self, store: str, *args: str) -> Callable[[], object]:
        """Return work that runs a command."""
        return lambda: self._run(store, *args).check_returncode()

    def _run(self, store: str, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._ctx, *args], cwd=store, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


@contextmanager
def programs() -> Iterator[tuple[str, list[Program]]]:
    """Yield a folder on the disk of the checkout, and the programs. All of it is removed at the end."""
    with scratch() as folder:
        programs = [Program("ours", str(install_wheel(Path(folder)) / "ctx"), folder)]
        if other := os.environ.get("CTX_OTHER"):  # noqa: TID251  said above
            programs.append(Program("CTX_OTHER", other, folder))
        yield folder, programs
