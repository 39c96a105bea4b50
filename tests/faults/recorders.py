"""Recorders that are killed at every point: `python -m tests.faults.recorders FOLDER`.

A point is a call of the disk, or the beginning, the end, or the commit of a transaction.
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
from contextplane.app.execution.record import recording_context
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import Durability, Table
from contextplane.model.execution.manifest import Environment, Model
from contextplane.model.ids import RecordingId
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.record.journal import RecordingContext
from contextplane.record.recorder import Recording
from contextplane.testing.faults import KILL, Faults, FaultyDisk

__all__ = ["ID", "STEPS", "FaultyCatalog", "KilledRecorder", "kill_everywhere"]

ROOT = Path(__file__).resolve().parents[2]
ID = "rec_0123456789abcdef"
STEPS = (b"first", b"", b"x" * 70_000)
"""The outputs of the steps. The second step has none, and parameters too large for the catalog."""


class KilledRecorder(msgspec.Struct, frozen=True):
    """What a recorder acknowledged before it was killed at point `nth`; `alive` if it finished."""

    nth: int
    alive: bool
    acknowledged: tuple[str, ...]


class FaultyCatalog:
    """A catalog with points before, at the end of, and after every write transaction."""

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
    def write(self, *, survives: Durability = "power_cut") -> Iterator[Transaction]:
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


def kill_everywhere(folder: Path) -> list[KilledRecorder]:
    """Kill a recorder at each point, each in its own store below `folder`; the last one finishes."""
    command = [sys.executable, "-m", "tests.faults.recorders", str(folder)]
    with Popen(command, cwd=ROOT, stdout=PIPE) as child:
        assert child.stdout is not None
        killed = [msgspec.json.decode(line, type=KilledRecorder) for line in child.stdout]
    assert child.returncode == 0
    return killed


def _kill_at_every_point(folder: str) -> None:
    alive, nth = False, 0
    while not alive:
        nth += 1
        shutil.copytree(f"{folder}/0", f"{folder}/{nth}")
        killed = _kill_at(nth, f"{folder}/{nth}")
        alive = killed.alive
        sys.stdout.write(msgspec.json.encode(killed).decode() + "\n")


def _kill_at(nth: int, folder: str) -> KilledRecorder:
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
        acknowledged = tuple(file.read().decode().split())
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the recorder failed at point {nth}")
    return KilledRecorder(nth=nth, alive=not os.WIFSIGNALED(status), acknowledged=acknowledged)


def _record(folder: str, faults: Faults, writing: int) -> None:
    def acknowledge(word: str) -> None:
        os.write(writing, word.encode() + b"\n")

    with open_platform(Settings(cwd=folder)) as platform:
        directory, disk = platform.home, FaultyDisk(faults)
        platform.entries = FileExecutionEntries(directory.packs, directory.staging, platform.clock, disk)
        vars(platform)["objects"] = FileObjects(directory.objects, disk)
        context = msgspec.structs.replace(recording_context(platform), catalog=FaultyCatalog(platform.catalog, faults))
        with _begin(context) as run:
            acknowledge("begun")
            for n, output in enumerate(STEPS):
                run.step("t", parameters={"long": "x" * 70_000 if not output else n}, output=output)
                acknowledge(f"step-{n}")
        acknowledge("finished")


def _begin(context: RecordingContext) -> Recording:
    return Recording.begin(
        context,
        RecordingId(ID),
        model=Model(identifier="m"),
        system_prompt="s",
        environment=Environment(os="linux", runtime="py"),
    )


if __name__ == "__main__":
    _kill_at_every_point(sys.argv[1])
