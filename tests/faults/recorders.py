"""A recorder that is killed at every point, in a process of its own: `python -m tests.faults.recorders FOLDER`.

A point is a call of the disk, or the beginning, the end, or the commit of a turn at the catalog.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec

from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.pack_entries import FileExecutionEntries
from contextplane.app.execution.record import desk_of
from contextplane.app.platform import opened
from contextplane.app.settings import Settings
from contextplane.model.catalog import Survives, Table
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import RecordingId
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.record.journal import Desk
from contextplane.record.recorder import Recording
from contextplane.testing.faults import KILL, Faults, FaultyDisk

__all__ = ["ID", "STEPS", "FaultyCatalog", "Killed", "killed_everywhere"]

ROOT = Path(__file__).resolve().parents[2]
ID = "rec_0123456789abcdef"
STEPS = (b"first", b"", b"x" * 70_000)
"""Outputs of its steps. The second has none, and parameters too large for the catalog."""


class Killed(msgspec.Struct, frozen=True):
    """What a recorder had acknowledged when it was killed at point `nth`; `alive` when it came through."""

    nth: int
    alive: bool
    told: tuple[str, ...]


class FaultyCatalog:
    """Any catalog, with points before, at the end of, and after every turn."""

    def __init__(self, inner: Catalog, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    @property
    def schema(self) -> int:
        return self._inner.schema

    @contextmanager
    def read(self) -> Iterator[View]:
        with self._inner.read() as view:
            yield view

    @contextmanager
    def write(self, *, survives: Survives = "power_cut") -> Iterator[Transaction]:
        self._faults.hit("turn")
        with self._inner.write(survives=survives) as tx:
            yield tx
            self._faults.hit("commit")
        self._faults.hit("committed")

    def tables(self) -> tuple[Table, ...]:
        return self._inner.tables()

    def problems(self) -> Iterator[str]:
        return self._inner.problems()

    def close(self) -> None:
        self._inner.close()


def killed_everywhere(folder: Path) -> list[Killed]:
    """A store below `folder` for each point, in which a recorder was killed there; the last came through."""
    command = [sys.executable, "-m", "tests.faults.recorders", str(folder)]
    with Popen(command, cwd=ROOT, stdout=PIPE) as child:
        assert child.stdout is not None
        ended = [msgspec.json.decode(line, type=Killed) for line in child.stdout]
    assert child.returncode == 0
    return ended


def _kill_everywhere(folder: str) -> None:
    alive, nth = False, 0
    while not alive:
        nth += 1
        shutil.copytree(f"{folder}/0", f"{folder}/{nth}")
        killed = _killed_at(nth, f"{folder}/{nth}")
        alive = killed.alive
        sys.stdout.write(msgspec.json.encode(killed).decode() + "\n")


def _killed_at(nth: int, folder: str) -> Killed:
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _record(folder, Faults().at("*", nth, KILL), writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = tuple(file.read().decode().split())
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the recorder failed at point {nth}")
    return Killed(nth=nth, alive=not os.WIFSIGNALED(status), told=told)


def _record(folder: str, faults: Faults, writing: int) -> None:
    def tell(word: str) -> None:
        os.write(writing, word.encode() + b"\n")

    with opened(Settings(cwd=folder)) as platform:
        home, disk = platform.home, FaultyDisk(faults)
        platform.entries = FileExecutionEntries(home.packs, home.staging, platform.clock, disk)
        vars(platform)["objects"] = FileObjects(home.objects, disk)
        desk = msgspec.structs.replace(desk_of(platform), catalog=FaultyCatalog(platform.catalog, faults))
        with _begun(desk) as run:
            tell("begun")
            for n, output in enumerate(STEPS):
                run.step("t", parameters={"long": "x" * 70_000 if not output else n}, output=output)
                tell(f"step-{n}")
        tell("finished")


def _begun(desk: Desk) -> Recording:
    return Recording.begin(
        desk,
        RecordingId(ID),
        model=Model(identifier="m"),
        system_prompt="s",
        environment=Environment(os="linux", runtime="py"),
    )


if __name__ == "__main__":
    _kill_everywhere(sys.argv[1])
