"""Child processes of the fault tests of handoff packs: `python -m tests.faults.handoff_children TASK`."""

import os
import pkgutil
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec

import contextplane
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.files.workspace import FileSources
from contextplane.adapters.system import SystemClock, SystemIds
from contextplane.app.handoff.session import open_handoffs
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import HandoffSettings, Settings
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNameTaken, RevisionConflict
from contextplane.handoff.import_ import import_candidates, read_candidate
from contextplane.handoff.reader import HandoffLimits, WriteResult
from contextplane.handoff.source import SourceReader
from contextplane.handoff.writer import HandoffRepository
from contextplane.model.catalog import Durability, Table
from contextplane.model.handoff import HandoffDocument, Section
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, Transaction
from contextplane.testing.faults import KILL, Faults, FaultyDisk
from tests.faults.children import FORKING
from tests.patience import PATIENCE
from tests.surfaces.commands import child_environment
from tests.unit.handoff.reference_root import ReferencePacks

__all__ = ["NAMERS", "TURNS", "WRITERS", "Outcome", "document", "kill_points", "repository_in", "start"]

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
WRITERS, TURNS, NAMERS = 3, 12, 8


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt: the new revision, or the error's code and the changed sections in it."""

    who: int
    turn: int
    revision: int = 0
    code: str = ""
    changed: tuple[str, ...] = ()


def start(task: str, *args: str | Path) -> Popen[bytes]:
    """Start one of the functions below in a child process, with pipes to it and from it."""
    command = [sys.executable, "-m", "tests.faults.handoff_children", task, *map(str, args)]
    # Without coverage: a child that may not write, or has no room, cannot store its measurements.
    env = child_environment()
    return Popen(command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def document(*keys: str, text: str = "t", name: str | None = None) -> HandoffDocument:
    return HandoffDocument(sections=tuple(Section(key=key, title=key, description=text) for key in keys), name=name)


class FaultyCatalog:
    """A catalog that fails by plan: before a transaction begins, before it commits, and after."""

    def __init__(self, inner: Catalog, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self.read = inner.read
        self.problems = inner.problems
        self.close = inner.close

    @property
    def schema(self) -> int:
        return self._inner.schema

    def tables(self) -> tuple[Table, ...]:
        return self._inner.tables()

    @contextmanager
    def write(self, *, survives: Durability = "power_cut") -> Iterator[Transaction]:
        self._faults.hit("begin")
        with self._inner.write(survives=survives) as tx:
            yield tx
            self._faults.hit("commit")
        self._faults.hit("committed")


@contextmanager
def repository_in(folder: Path, faults: Faults | None = None) -> Iterator[HandoffRepository]:
    """Open the handoff repository in a folder, on a disk and a catalog that fail by plan."""
    plan = faults or Faults()
    with open_platform(Settings(cwd=str(folder))) as platform:
        yield HandoffRepository(
            FaultyCatalog(platform.catalog, plan),
            FileObjects(platform.home.objects, FaultyDisk(plan)),
            clock=SystemClock(),
            ids=SystemIds(),
            reader_factory=lambda: SourceReader(FileSources(str(folder)), 1 << 20),
            limits=HandoffLimits(),
        )


def exercise_repository(repository: HandoffRepository, acknowledge: Callable[[WriteResult], None]) -> None:
    """Make every kind of write: small and large, new and changed, flushed, deleted and imported."""
    small = repository.write(document("scope", name="plan"))
    acknowledge(small)
    large = repository.write(document("scope", text="x" * 70_000), identity="plan", expected_revision=1)
    acknowledge(large)
    acknowledge(repository.ttl("plan", expected_revision=2, extend_minutes=5))
    repository.flush_pending()
    repository.delete("plan")
    acknowledge(repository.write(document("scope", name="plan")))
    now, limits = Timestamp.of(SystemClock().now()), HandoffLimits()
    candidates = [
        read_candidate(HandoffId(name), msgspec.json.encode(ReferencePacks.pack(name)), now=now, limits=limits)
        for name in ("pk_aaaaaaaa", "pk_bbbbbbbb")
    ]
    import_candidates(repository._catalog, repository._objects, candidates, SystemIds())
    for candidate in candidates:
        acknowledge(WriteResult(pack=candidate.pack, digest=candidate.digest, stored=True))


# --- the children -----------------------------------------------------------------------------------------------------


def kill_points(root: str) -> None:
    """Kill one grandchild after another, each one call later, until one finishes."""
    killed, nth = True, 0
    while killed:
        nth += 1
        folder = Path(root, str(nth))
        folder.mkdir()
        init(Settings(cwd=str(folder)), ".")
        pid = os.fork()
        if pid == 0:
            _until_killed(folder, nth)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status)
        if not killed and os.WEXITSTATUS(status):
            raise SystemExit(f"the child failed at call {nth}")
        if killed and os.WTERMSIG(status) != signal.SIGKILL:
            raise SystemExit(f"the child was ended otherwise at call {nth}")


def _until_killed(folder: Path, nth: int) -> None:
    status = 1
    try:
        fd = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with repository_in(folder, Faults().at("*", nth, KILL)) as repository:
            exercise_repository(repository, lambda written: _print_line(fd, _line(written)))
        status = 0
    finally:
        os._exit(status)


def write_many(folder: str) -> None:
    """Write one pack after the other, each twice; print every revision once it is acknowledged."""
    with repository_in(Path(folder)) as repository:
        for n in range(2000):
            first = repository.write(document("scope", text="x" * (70_000 if n % 50 == 7 else 10)))
            _print_line(1, _line(first))
            _print_line(1, _line(repository.write(document("qa"), identity=first.pack.id, expected_revision=1)))
    sys.stdin.read()  # finished before the kill: wait for it


def race(folder: str) -> None:
    """In every turn, all writers write to one pack with the same expected revision."""
    with repository_in(Path(folder)) as repository:
        repository.write(document("begin", name="plan"))
    barrier = FORKING.Barrier(WRITERS, timeout=PATIENCE)
    _run([FORKING.Process(target=_racer, args=(folder, n, barrier)) for n in range(WRITERS)])


def _racer(folder: str, who: int, barrier: Barrier) -> None:
    with repository_in(Path(folder)) as repository:
        for turn in range(TURNS):
            barrier.wait()
            expected = turn + 1
            try:
                done = repository.write(document("begin", f"of-{who}"), identity="plan", expected_revision=expected)
                _print_outcome(Outcome(who=who, turn=turn, revision=done.pack.revision))
            except RevisionConflict as error:
                changed = error.details["changed_section_keys"]
                _print_outcome(Outcome(who=who, turn=turn, code=error.code, changed=tuple(changed)))  # type: ignore[arg-type]


def name_at_once(folder: str) -> None:
    """Let eight processes create a store and a pack of one name at the same time, five times."""
    barrier = FORKING.Barrier(NAMERS, timeout=PATIENCE)
    _run([FORKING.Process(target=_namer, args=(folder, n, barrier)) for n in range(NAMERS)])


def _namer(folder: str, who: int, barrier: Barrier) -> None:
    with open_handoffs(Settings(cwd=folder)) as session:
        for turn in range(5):
            barrier.wait()
            try:
                done = session.repository.write(document(f"of-{who}", name=f"plan {turn}"))
                _print_outcome(Outcome(who=who, turn=turn, revision=done.pack.revision))
            except HandoffNameTaken as error:
                _print_outcome(Outcome(who=who, turn=turn, code=error.code))


def fill_up(folder: str, large: str) -> None:
    """Write until the disk is full; print what was acknowledged, then the code of the error."""
    with repository_in(Path(folder)) as repository:
        limit = 2 << 20 if large == "small" else 100_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            for n in range(5000):
                text = "x" * 5000 if large == "small" else "x" * (70_000 + n * 1000)
                _print_line(1, _line(repository.write(document("scope", text=text))))
        except ContextPlaneError as error:
            _print_line(1, error.code)


def as_nobody(folder: str, root: str) -> None:
    """As a user without write access: list, write, and print what could not be imported."""
    __import__("contextplane.app.init")
    for package in ("adapters", "app.handoff", "handoff", "model", "store"):  # while they can still be read
        path = str(Path(contextplane.__path__[0], *package.split(".")))
        for module in pkgutil.walk_packages([path], f"contextplane.{package}."):
            __import__(module.name)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    named = None if root else str(Path(folder, ".ctx"))  # a store of another user is used only when it is named
    settings = Settings(cwd=folder, ctx_dir=named, handoff=HandoffSettings(root=root or None))
    with open_handoffs(settings) as session:
        _print_line(1, " ".join(row.id.text for row in session.repository.list().rows))
        _print_line(1, " ".join(sorted(session.import_result.refused)) if session.import_result else "")
        _print_line(1, " ".join(session.repository.get(row.id.text).pack.id for row in session.repository.list().rows))
        try:
            session.repository.write(document("scope"))
        except ContextPlaneError as error:
            _print_line(1, error.code)


def _run(processes: list[FORKING.Process]) -> None:  # type: ignore[name-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process failed")


def _line(written: WriteResult) -> str:
    return f"{written.pack.id} {written.pack.revision} {written.digest.hex}"


def _print_outcome(outcome: Outcome) -> None:
    _print_line(1, msgspec.json.encode(outcome).decode())


def _print_line(fd: int, line: str) -> None:
    """Print a line in one write, so that a kill leaves it whole or unwritten."""
    os.write(fd, line.encode() + b"\n")


TASKS: dict[str, Callable[..., None]] = {
    "kill_points": kill_points,
    "write_many": write_many,
    "race": race,
    "name_at_once": name_at_once,
    "fill_up": fill_up,
    "as_nobody": as_nobody,
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
