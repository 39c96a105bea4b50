"""Child processes of the fault tests, to be killed or to race: `python -m tests.faults.children TASK`.

It imports no pytest, so that a child starts fast; and it forks, which a test process with threads must not.
"""

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from multiprocessing.synchronize import Event as Flag
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec

from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, Event, IndexedObject
from contextplane.model.execution.references import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects, StorageFull
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.testing.faults import KILL, Faults, FaultyDisk
from tests.patience import PATIENCE

__all__ = ["ALONE", "CHUNKS", "PUTS", "KilledChild", "exercise_disk", "start"]

ROOT = Path(__file__).resolve().parents[2]
STORE_ID = "store_0123456789abcdef"

ALONE = b"alone, and more than is written without looking. " * 100
PUTS = (b"", b"second", b"third object")
CHUNKS = (b"a" * 8, b"", b"b" * 8, b"c")

FORKING = multiprocessing.get_context("fork")

Acknowledge = Callable[[str], None]


class KilledChild(msgspec.Struct, frozen=True):
    """A child that was to be killed at call number `nth`, and what it acknowledged before."""

    nth: int
    killed: bool
    acknowledged: tuple[str, ...]


def start(task: str, *args: str | Path) -> Popen[bytes]:
    """Start one of the functions below in a child process, with pipes to it and from it."""
    command = [sys.executable, "-m", "tests.faults.children", task, *map(str, args)]
    return Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def exercise_disk(objects: Objects, acknowledge: Acknowledge) -> None:
    """Put objects so that every call of a disk is made: new, existing, and twice in one batch."""
    acknowledge(objects.put(ALONE).hex)
    acknowledge(objects.put(ALONE).hex)
    with objects.batch() as batch:
        digests = [batch.put(data) for data in PUTS]
        digests += [batch.put_stream(CHUNKS).digest for _ in range(2)]
    for digest in digests:
        acknowledge(digest.hex)


# --- the children -----------------------------------------------------------------------------------------------------


def kill_at_every_call(root: str) -> None:
    """Kill one grandchild after another, each one call later, until one finishes; print a line for each."""
    killed = True
    nth = 0
    while killed:
        nth += 1
        child = _kill_at(nth, f"{root}/{nth}")
        killed = child.killed
        sys.stdout.write(msgspec.json.encode(child).decode() + "\n")


def _kill_at(nth: int, root: str) -> KilledChild:
    Path(root).mkdir()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            objects = FileObjects(root, FaultyDisk(Faults().at("*", nth, KILL)))
            exercise_disk(objects, lambda name: _print_line(writing, name))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        acknowledged = file.read().decode().split()
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed at call {nth}")
    return KilledChild(nth=nth, killed=os.WIFSIGNALED(status), acknowledged=tuple(acknowledged))


def kill_in_a_large_batch(root: str, call: str, nth: str) -> None:
    """Commit a batch that is synced as a whole, and be killed at one of its calls."""
    with FileObjects(root, FaultyDisk(Faults().at(call, int(nth), KILL))).batch() as batch:
        for n in range(300):
            batch.put(b"%d" % n)


def put_many(root: str) -> None:
    """Put 500 objects, singly, in batches and as streams; print each name once it is acknowledged."""
    objects = FileObjects(root)
    for n in range(0, 500, 10):
        for k in range(4):
            _print_line(1, objects.put(b"single %d" % (n + k)).hex)
        with objects.batch() as batch:
            digests = [batch.put(b"of a batch %d" % (n + k)) for k in range(4, 8)]
        for digest in digests:
            _print_line(1, digest.hex)
        for k in range(8, 10):
            chunks = (b"%d of a stream %d" % (part, n + k) * 1000 for part in range(4))
            _print_line(1, objects.put_stream(chunks).digest.hex)
    sys.stdin.read()  # finished before the kill: wait for it


def append_many(path: str) -> None:
    """Append one to three events to five streams in turn; print `stream seq` once it is acknowledged."""
    catalog = SqliteCatalog.open(path, STORE_ID)
    heads = [0] * 5
    for n in range(5000):
        which = n % 5
        stream, head = f"run/{which}", heads[which]
        events = [Event(kind="counted", body=b"%s %d" % (stream.encode(), head + k + 1)) for k in range(1 + n % 3)]
        with catalog.write(survives="crash") as tx:
            heads[which] = tx.streams.append(stream, head, events)
            tx.marks.put(stream, str(heads[which]))
        _print_line(1, f"{stream} {heads[which]}")
    sys.stdin.read()  # finished before the kill: wait for it


WRITERS, ROUNDS = 8, 40


def write_at_once(root: str) -> None:
    """Eight processes, forty rounds: in each, all put the same object, and each puts one of its own."""
    barrier = FORKING.Barrier(WRITERS, timeout=PATIENCE)  # a process that fails breaks it for all
    _run_all([FORKING.Process(target=_writer, args=(root, n, barrier)) for n in range(WRITERS)])


def _writer(root: str, number: int, barrier: Barrier) -> None:
    objects = FileObjects(root)
    for turn in range(ROUNDS):
        barrier.wait()
        # Half of them as bytes and half as a stream, which take different paths.
        same = b"the same %d" % turn
        name = objects.put(same) if number % 2 else objects.put_stream([same[:3], same[3:]]).digest
        if objects.get(name) != same:
            raise SystemExit("what was put is not there")
        objects.put(b"of writer %d in round %d" % (number, turn))


LINKERS, LINKS = 4, 30
GRACE = timedelta(hours=1)


def linked_contents(linker: int, turn: int) -> list[bytes]:
    """The contents that a linker puts and links in one turn: a shared one, and three of its own."""
    own = [b"%d of linker %d in round %d" % (k, linker, turn) for k in range(3)]
    return [b"shared by all in round %d" % turn, *own]


def link_and_collect(folder: str) -> None:
    """Four processes put, register and link, while two others collect all the time."""
    done = FORKING.Event()
    collectors = [FORKING.Process(target=_collector, args=(folder, done)) for _ in range(2)]
    for collector in collectors:
        collector.start()
    try:
        _run_all([FORKING.Process(target=_linker, args=(folder, n)) for n in range(LINKERS)])
    finally:
        done.set()
    for collector in collectors:
        collector.join()
    if any(collector.exitcode for collector in collectors):
        raise SystemExit("a collector failed")


def _linker(folder: str, number: int) -> None:
    with open_platform(Settings(cwd=folder)) as platform:
        for turn in range(LINKS):
            contents = linked_contents(number, turn)
            _put_collectable(platform, contents[1:])
            _link(platform, contents)


def _put_collectable(platform: Platform, contents: list[bytes]) -> None:
    """Put objects that are recorded, old and unreachable: a collector may take them until the next put."""
    for content in contents:
        digest = platform.objects.put(content)
        with platform.catalog.write(survives="crash") as tx:
            tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(content), traced=True))
        with suppress(FileNotFoundError):
            os.utime(Path(platform.home.objects, digest.hex[:2], digest.hex[2:]), (0, 0))


def _link(platform: Platform, contents: list[bytes]) -> None:
    objects = platform.objects
    with objects.batch() as batch:
        blobs = [batch.put(data) for data in contents]
        inputs = [{"content_ref": str(blob)} for blob in blobs]
        data = msgspec.json.encode({"version": "0.1", "hash": "", "inputs": inputs, "steps": []})
        manifest = batch.put(data)
    Path(platform.home.packs, manifest.hex).write_bytes(str(manifest).encode())
    with platform.catalog.write(survives="crash") as tx:
        for blob, content in zip(blobs, contents, strict=True):
            tx.objects.record(IndexedObject(digest=blob, kind=BLOB, size=len(content), traced=True))
            tx.objects.link(manifest, "inputs", blob)
        tx.objects.record(IndexedObject(digest=manifest, kind=EXECUTION_PACK, size=len(data), traced=True))
        tx.objects.keep(f"packs/{manifest.hex}", manifest)
    for blob in blobs:
        # Old again: from here on only the link protects it.
        os.utime(Path(platform.home.objects, blob.hex[:2], blob.hex[2:]), (0, 0))
        if objects.check(blob).state != "whole":
            raise SystemExit(f"{blob} was put and linked, and is gone")


def _collector(folder: str, done: Flag) -> None:
    with open_platform(Settings(cwd=folder)) as platform:
        last = False
        while not last:
            last = done.is_set()
            limit = platform.clock.now() - GRACE
            gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False)


def _run_all(processes: list[multiprocessing.context.ForkProcess]) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process failed")


MEBI = 1 << 20
LARGE, LITTLE = 256 * MEBI, 64 * MEBI


def in_little_memory(name: str, folder: str) -> None:
    """Run a task in at most 64 MiB more than an idle process has; print its growth in bytes."""
    task = {"objects": _large_objects, "fsck": _check_all, "hog": _hog}[name]
    FileObjects(f"{folder}/idle").has(Digest("0" * 64))
    before, data = _memory("VmRSS"), _memory("VmData")
    resource.setrlimit(resource.RLIMIT_DATA, (data + LITTLE, data + LITTLE))
    task(folder)
    _print_line(1, str(_memory("VmHWM") - before))


def _large_objects(folder: str) -> None:
    """Put a large stream and a large file, and read both back."""
    objects = FileObjects(folder)
    source = Path(folder, "sparse")
    with source.open("wb") as file:
        file.truncate(LARGE)
    for stored in (objects.put_stream(_large_stream()), objects.put_path(str(source))):
        size = sum(len(chunk) for chunk in objects.stream(stored.digest))
        if not size == stored.size == LARGE:
            raise SystemExit(f"{size} bytes came back")


def _large_stream() -> Iterator[bytes]:
    for n in range(LARGE // MEBI):
        yield n.to_bytes(8) * (MEBI // 8)


def _check_all(folder: str) -> None:
    totals = [0, 0]

    def count(size: int, objects: int) -> None:
        totals[0] += size
        totals[1] += objects

    with open_platform(Settings(cwd=folder)) as platform:
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, count))
    if findings:
        raise SystemExit(str(findings[:3]))
    _print_line(1, f"{totals[0]} {totals[1]}")


def _hog(_: str) -> None:
    """Exceed the limit, which must fail, so that the limit is known to work."""
    if len(bytes(LARGE)) != LARGE:
        raise SystemExit("no bytes")


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"no {field}")


def hold_lock(path: str) -> None:
    """Take the catalog's write lock, print a line, and keep it until standard input ends."""
    catalog = SqliteCatalog.open(path, STORE_ID)
    with catalog.write():
        _print_line(1, "held")
        sys.stdin.read()
    catalog.close()


def put_over(root: str, data: str) -> None:
    """Put these bytes over a damaged copy or an obstacle, and read them back."""
    objects = FileObjects(root)
    _print_line(1, objects.get(objects.put(data.encode())).decode())


def with_small_files(limit: str, *command: str) -> None:
    """Run a command with a limit on the size of files: to it, the disk is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    os.execv(command[0], list(command))  # noqa: S606  the command of the test


def fill_up(root: str) -> None:
    """Put objects until the disk is full; print the acknowledged names, then the error."""
    objects = FileObjects(root)
    try:
        for n in range(10_000):
            _print_line(1, objects.put(n.to_bytes(4) * 4096).hex)
    except StorageFull as error:
        _print_line(1, error.code)


def _print_line(fd: int, line: str) -> None:
    """Print a line in one write, so that a kill leaves it whole or unwritten."""
    os.write(fd, line.encode() + b"\n")


TASKS: dict[str, Callable[..., None]] = {
    "kill_at_every_call": kill_at_every_call,
    "kill_in_a_large_batch": kill_in_a_large_batch,
    "put_many": put_many,
    "append_many": append_many,
    "write_at_once": write_at_once,
    "link_and_collect": link_and_collect,
    "in_little_memory": in_little_memory,
    "hold_lock": hold_lock,
    "put_over": put_over,
    "with_small_files": with_small_files,
    "fill_up": fill_up,
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
