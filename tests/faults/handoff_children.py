"""What the fault tests of handoff packs run in processes of their own: `python -m tests.faults.handoff_children`."""

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
from contextplane.app.handoff.store import opened_desk
from contextplane.app.init import init
from contextplane.app.platform import opened
from contextplane.app.settings import HandoffSettings, Settings
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNameTaken, RevisionConflict
from contextplane.handoff.import_ import read_offer, take
from contextplane.handoff.reader import HandoffLimits, Written
from contextplane.handoff.source import SourceReader
from contextplane.handoff.writer import Shelf
from contextplane.model.catalog import Survives, Table
from contextplane.model.handoff import HandoffDocument, Section
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, Transaction
from contextplane.testing.faults import KILL, Faults, FaultyDisk
from tests.faults.children import FORKING
from tests.surfaces.running import child_environment
from tests.unit.handoff.reference_root import ReferencePacks

__all__ = ["NAMERS", "TURNS", "WRITERS", "Outcome", "begin", "document", "kill_points", "shelf_in"]

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
WRITERS, TURNS, NAMERS = 3, 12, 8


class Outcome(msgspec.Struct, frozen=True):
    """What became of one attempt: the revision it made, or the code of the refusal and what it says has changed."""

    who: int
    turn: int
    revision: int = 0
    code: str = ""
    changed: tuple[str, ...] = ()


def begin(what: str, *args: str | Path) -> Popen[bytes]:
    """Start one of the functions below in a process of its own, with pipes to it and from it."""
    command = [sys.executable, "-m", "tests.faults.handoff_children", what, *map(str, args)]
    # Who may write nothing, or has no room, has none for what it measured either.
    env = child_environment(measured=what not in {"as_nobody", "fill_up"})
    return Popen(command, cwd=ROOT, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def document(*keys: str, text: str = "t", name: str | None = None) -> HandoffDocument:
    return HandoffDocument(sections=tuple(Section(key=key, title=key, description=text) for key in keys), name=name)


class FaultyCatalog:
    """A catalog that follows a plan of faults: before a transaction begins, before it commits, and after."""

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
    def write(self, *, survives: Survives = "power_cut") -> Iterator[Transaction]:
        self._faults.hit("begin")
        with self._inner.write(survives=survives) as tx:
            yield tx
            self._faults.hit("commit")
        self._faults.hit("committed")


@contextmanager
def shelf_in(folder: Path, faults: Faults | None = None) -> Iterator[Shelf]:
    """The shelf of the store in a folder, on a disk and a catalog that follow a plan of faults."""
    plan = faults or Faults()
    with opened(Settings(cwd=str(folder))) as platform:
        yield Shelf(
            FaultyCatalog(platform.catalog, plan),
            FileObjects(platform.home.objects, FaultyDisk(plan)),
            clock=SystemClock(),
            ids=SystemIds(),
            reader_factory=lambda: SourceReader(FileSources(str(folder)), 1 << 20),
            limits=HandoffLimits(),
        )


def everything(shelf: Shelf, acknowledge: Callable[[Written], None]) -> None:
    """Writes that take every way there is: small and large, new and changed, moved, settled and deleted."""
    small = shelf.write(document("scope", name="plan"))
    acknowledge(small)
    large = shelf.write(document("scope", text="x" * 70_000), identity="plan", expected_revision=1)
    acknowledge(large)
    acknowledge(shelf.ttl("plan", expected_revision=2, extend_minutes=5))
    shelf.settle()
    shelf.delete("plan")
    acknowledge(shelf.write(document("scope", name="plan")))
    now, limits = Timestamp.of(SystemClock().now()), HandoffLimits()
    offers = [
        read_offer(HandoffId(name), msgspec.json.encode(ReferencePacks.pack(name)), now=now, limits=limits)
        for name in ("pk_aaaaaaaa", "pk_bbbbbbbb")
    ]
    take(shelf._catalog, shelf._objects, offers, SystemIds())
    for offer in offers:
        acknowledge(Written(pack=offer.pack, digest=offer.digest, stored=True))


# --- the children -----------------------------------------------------------------------------------------------------


def kill_points(root: str) -> None:
    """One grandchild after another, each killed one call later, until one comes through."""
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
        told = os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with shelf_in(folder, Faults().at("*", nth, KILL)) as shelf:
            everything(shelf, lambda written: _tell(told, _line(written)))
        status = 0
    finally:
        os._exit(status)


def write_many(folder: str) -> None:
    """One pack after the other, each written twice; every revision is told once it is acknowledged."""
    with shelf_in(Path(folder)) as shelf:
        for n in range(2000):
            first = shelf.write(document("scope", text="x" * (70_000 if n % 50 == 7 else 10)))
            _tell(1, _line(first))
            _tell(1, _line(shelf.write(document("qa"), identity=first.pack.id, expected_revision=1)))
    sys.stdin.read()  # done before the kill came: wait for it


def race(folder: str) -> None:
    """In every turn, all writers write to one pack with the same expected revision."""
    with shelf_in(Path(folder)) as shelf:
        shelf.write(document("begin", name="plan"))
    together = FORKING.Barrier(WRITERS, timeout=30)
    _run([FORKING.Process(target=_racer, args=(folder, n, together)) for n in range(WRITERS)])


def _racer(folder: str, who: int, together: Barrier) -> None:
    with shelf_in(Path(folder)) as shelf:
        for turn in range(TURNS):
            together.wait()
            expected = turn + 1
            try:
                done = shelf.write(document("begin", f"of-{who}"), identity="plan", expected_revision=expected)
                _outcome(Outcome(who=who, turn=turn, revision=done.pack.revision))
            except RevisionConflict as error:
                changed = error.details["changed_section_keys"]
                _outcome(Outcome(who=who, turn=turn, code=error.code, changed=tuple(changed)))  # type: ignore[arg-type]


def name_at_once(folder: str) -> None:
    """Eight processes make a store and a pack of one name, all at the same time, five times."""
    together = FORKING.Barrier(NAMERS, timeout=30)
    _run([FORKING.Process(target=_namer, args=(folder, n, together)) for n in range(NAMERS)])


def _namer(folder: str, who: int, together: Barrier) -> None:
    with opened_desk(Settings(cwd=folder)) as desk:
        for turn in range(5):
            together.wait()
            try:
                done = desk.shelf.write(document(f"of-{who}", name=f"plan {turn}"))
                _outcome(Outcome(who=who, turn=turn, revision=done.pack.revision))
            except HandoffNameTaken as error:
                _outcome(Outcome(who=who, turn=turn, code=error.code))


def fill_up(folder: str, large: str) -> None:
    """Write until there is no room; tell what was acknowledged, then the code of the error."""
    with shelf_in(Path(folder)) as shelf:
        limit = 2 << 20 if large == "small" else 100_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            for n in range(5000):
                text = "x" * 5000 if large == "small" else "x" * (70_000 + n * 1000)
                _tell(1, _line(shelf.write(document("scope", text=text))))
        except ContextPlaneError as error:
            _tell(1, error.code)


def as_nobody(folder: str, root: str) -> None:
    """As somebody who may write nothing: list, write, and tell what could not be taken in."""
    for name in ("handoff.uninitialized", "handoff.import_", "init"):
        __import__(f"contextplane.app.{name}")
    for room in ("adapters", "handoff", "model", "store"):  # while we may still read them
        path = str(Path(contextplane.__path__[0], room))
        for module in pkgutil.walk_packages([path], f"contextplane.{room}."):
            __import__(module.name)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    settings = Settings(cwd=folder, handoff=HandoffSettings(root=root or None))
    with opened_desk(settings) as desk:
        _tell(1, " ".join(row.id.text for row in desk.shelf.list().rows))
        _tell(1, " ".join(sorted(desk.taken.refused)) if desk.taken else "")
        _tell(1, " ".join(desk.shelf.get(row.id.text).pack.id for row in desk.shelf.list().rows))
        try:
            desk.shelf.write(document("scope"))
        except ContextPlaneError as error:
            _tell(1, error.code)


def _run(processes: list[FORKING.Process]) -> None:  # type: ignore[name-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process failed")


def _line(written: Written) -> str:
    return f"{written.pack.id} {written.pack.revision} {written.digest.hex}"


def _outcome(outcome: Outcome) -> None:
    _tell(1, msgspec.json.encode(outcome).decode())


def _tell(fd: int, line: str) -> None:
    """One line in one write, so that a kill leaves it whole or unwritten."""
    os.write(fd, line.encode() + b"\n")


WHAT: dict[str, Callable[..., None]] = {
    "kill_points": kill_points,
    "write_many": write_many,
    "race": race,
    "name_at_once": name_at_once,
    "fill_up": fill_up,
    "as_nobody": as_nobody,
}

if __name__ == "__main__":
    WHAT[sys.argv[1]](*sys.argv[2:])
