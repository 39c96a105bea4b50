"""What the fault tests run in processes of their own, to be killed or to race: `python -m tests.faults.children WHAT`.

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
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, Event, Recorded
from contextplane.model.execution.manifest import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects, StorageFull
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.testing.faults import KILL, Faults, FaultyDisk

__all__ = ["ALONE", "CHUNKS", "PUTS", "Ended", "everything_a_disk_does", "start"]

ROOT = Path(__file__).resolve().parents[2]
STORE_ID = "store_0123456789abcdef"

ALONE = b"alone, and more than is written without looking. " * 100
PUTS = (b"", b"second", b"third object")
CHUNKS = (b"a" * 8, b"", b"b" * 8, b"c")

FORKING = multiprocessing.get_context("fork")

Acknowledge = Callable[[str], None]


class Ended(msgspec.Struct, frozen=True):
    """How a child ended that was to be killed at its call number `nth`, and what it had acknowledged by then."""

    nth: int
    killed: bool
    acknowledged: tuple[str, ...]


def start(what: str, *args: str | Path) -> Popen[bytes]:
    """Start one of the functions below in a process of its own, with pipes to it and from it."""
    command = [sys.executable, "-m", "tests.faults.children", what, *map(str, args)]
    return Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def everything_a_disk_does(objects: Objects, acknowledge: Acknowledge) -> None:
    """Puts that need every call of a disk: of a new object, of one that is there, of a batch with one stream twice."""
    acknowledge(objects.put(ALONE).hex)
    acknowledge(objects.put(ALONE).hex)
    with objects.batch() as batch:
        digests = [batch.put(data) for data in PUTS]
        digests += [batch.put_stream(CHUNKS).digest for _ in range(2)]
    for digest in digests:
        acknowledge(digest.hex)


# --- the children -----------------------------------------------------------------------------------------------------


def kill_at_every_call(root: str) -> None:
    """One grandchild after another, each killed one call later, until one comes through. A line of `Ended` for each."""
    killed = True
    nth = 0
    while killed:
        nth += 1
        ended = _killed_at(nth, f"{root}/{nth}")
        killed = ended.killed
        sys.stdout.write(msgspec.json.encode(ended).decode() + "\n")


def _killed_at(nth: int, root: str) -> Ended:
    Path(root).mkdir()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            objects = FileObjects(root, FaultyDisk(Faults().at("*", nth, KILL)))
            everything_a_disk_does(objects, lambda name: _tell(writing, name))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        acknowledged = file.read().decode().split()
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed at call {nth}")
    return Ended(nth=nth, killed=os.WIFSIGNALED(status), acknowledged=tuple(acknowledged))


def kill_in_a_large_batch(root: str, call: str, nth: str) -> None:
    """A batch that is synced as a whole, killed at one of its calls."""
    with FileObjects(root, FaultyDisk(Faults().at(call, int(nth), KILL))).batch() as batch:
        for n in range(300):
            batch.put(b"%d" % n)


def put_many(root: str) -> None:
    """500 puts, singly, in batches and as streams; each name is told once it is acknowledged."""
    objects = FileObjects(root)
    for n in range(0, 500, 10):
        for k in range(4):
            _tell(1, objects.put(b"single %d" % (n + k)).hex)
        with objects.batch() as batch:
            digests = [batch.put(b"of a batch %d" % (n + k)) for k in range(4, 8)]
        for digest in digests:
            _tell(1, digest.hex)
        for k in range(8, 10):
            chunks = (b"%d of a stream %d" % (part, n + k) * 1000 for part in range(4))
            _tell(1, objects.put_stream(chunks).digest.hex)
    sys.stdin.read()  # done before the kill came: wait for it


def append_many(path: str) -> None:
    """Appends of one to three events to five streams in turn; `stream seq` is told once it is acknowledged."""
    catalog = SqliteCatalog.open(path, STORE_ID)
    heads = [0] * 5
    for n in range(5000):
        which = n % 5
        stream, head = f"run/{which}", heads[which]
        events = [Event(kind="counted", body=b"%s %d" % (stream.encode(), head + k + 1)) for k in range(1 + n % 3)]
        with catalog.write(survives="crash") as tx:
            heads[which] = tx.streams.append(stream, head, events)
            tx.marks.put(stream, str(heads[which]))
        _tell(1, f"{stream} {heads[which]}")
    sys.stdin.read()  # done before the kill came: wait for it


WRITERS, ROUNDS = 8, 40


def write_at_once(root: str) -> None:
    """Eight processes, forty rounds: in each, all of them put the same object, and each puts one of its own."""
    together = FORKING.Barrier(WRITERS, timeout=20)  # who fails breaks it for all
    _all_end_well([FORKING.Process(target=_writer, args=(root, n, together)) for n in range(WRITERS)])


def _writer(root: str, number: int, together: Barrier) -> None:
    objects = FileObjects(root)
    for turn in range(ROUNDS):
        together.wait()
        # Half of them as bytes and half as a stream, for the two take different ways.
        same = b"the same %d" % turn
        name = objects.put(same) if number % 2 else objects.put_stream([same[:3], same[3:]]).digest
        if objects.get(name) != same:
            raise SystemExit("what was put is not there")
        objects.put(b"of writer %d in round %d" % (number, turn))


LINKERS, LINKS = 4, 30
GRACE = timedelta(hours=1)


def contents_of(linker: int, turn: int) -> list[bytes]:
    """What a linker puts and links to in one turn: something that all of them share, and three things of its own."""
    own = [b"%d of linker %d in round %d" % (k, linker, turn) for k in range(3)]
    return [b"shared by all in round %d" % turn, *own]


def link_and_collect(folder: str) -> None:
    """Four processes put, register and link, while two others collect all the time."""
    done = FORKING.Event()
    collectors = [FORKING.Process(target=_collector, args=(folder, done)) for _ in range(2)]
    for collector in collectors:
        collector.start()
    try:
        _all_end_well([FORKING.Process(target=_linker, args=(folder, n)) for n in range(LINKERS)])
    finally:
        done.set()
    for collector in collectors:
        collector.join()
    if any(collector.exitcode for collector in collectors):
        raise SystemExit("a collector failed")


def _linker(folder: str, number: int) -> None:
    with opened(Settings(cwd=folder)) as platform:
        for turn in range(LINKS):
            contents = contents_of(number, turn)
            _leave_about(platform, contents[1:])
            _link(platform, contents)


def _leave_about(platform: Platform, contents: list[bytes]) -> None:
    """Objects that are recorded, old and unreachable: whoever collects may take them, until they are put again."""
    for content in contents:
        digest = platform.objects.put(content)
        with platform.catalog.write(survives="crash") as tx:
            tx.objects.record(Recorded(digest=digest, kind=BLOB, size=len(content), traced=True))
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
            tx.objects.record(Recorded(digest=blob, kind=BLOB, size=len(content), traced=True))
            tx.objects.link(manifest, "inputs", blob)
        tx.objects.record(Recorded(digest=manifest, kind=EXECUTION_PACK, size=len(data), traced=True))
        tx.objects.keep(f"packs/{manifest.hex}", manifest)
    for blob in blobs:
        # Old again: from here on it is the link alone that keeps it.
        os.utime(Path(platform.home.objects, blob.hex[:2], blob.hex[2:]), (0, 0))
        if objects.check(blob).state != "whole":
            raise SystemExit(f"{blob} was put and linked, and is gone")


def _collector(folder: str, done: Flag) -> None:
    with opened(Settings(cwd=folder)) as platform:
        last = False
        while not last:
            last = done.is_set()
            limit = platform.clock.now() - GRACE
            gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False)


def _all_end_well(processes: list[multiprocessing.context.ForkProcess]) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process failed")


MEBI = 1 << 20
LARGE, LITTLE = 256 * MEBI, 64 * MEBI


def in_little_memory(what: str, place: str) -> None:
    """Do one thing in at most 64 MiB more than an idle process has, and tell by how many bytes it grew."""
    task = {"objects": _large_objects, "fsck": _check_all, "hog": _hog}[what]
    FileObjects(f"{place}/idle").has(Digest("0" * 64))
    before, data = _memory("VmRSS"), _memory("VmData")
    resource.setrlimit(resource.RLIMIT_DATA, (data + LITTLE, data + LITTLE))
    task(place)
    _tell(1, str(_memory("VmHWM") - before))


def _large_objects(place: str) -> None:
    """A large stream in, a large file in, and both out again."""
    objects = FileObjects(place)
    source = Path(place, "sparse")
    with source.open("wb") as file:
        file.truncate(LARGE)
    for stored in (objects.put_stream(_large_stream()), objects.put_path(str(source))):
        size = sum(len(chunk) for chunk in objects.stream(stored.digest))
        if not size == stored.size == LARGE:
            raise SystemExit(f"{size} bytes came back")


def _large_stream() -> Iterator[bytes]:
    for n in range(LARGE // MEBI):
        yield n.to_bytes(8) * (MEBI // 8)


def _check_all(place: str) -> None:
    counted = [0, 0]

    def count(size: int, objects: int) -> None:
        counted[0] += size
        counted[1] += objects

    with opened(Settings(cwd=place)) as platform:
        findings = list(fsck(platform.catalog, platform.entries, platform.objects, count))
    if findings:
        raise SystemExit(str(findings[:3]))
    _tell(1, f"{counted[0]} {counted[1]}")


def _hog(_: str) -> None:
    """What must not work here, so that we know that the limit is one."""
    if len(bytes(LARGE)) != LARGE:
        raise SystemExit("no bytes")


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"no {field}")


def hold_lock(path: str) -> None:
    """Take the catalog's write lock, tell so, and keep it until standard input ends."""
    catalog = SqliteCatalog.open(path, STORE_ID)
    with catalog.write():
        _tell(1, "held")
        sys.stdin.read()
    catalog.close()


def put_over(root: str, data: str) -> None:
    """Put these bytes, whatever stands in their place, and read them back."""
    objects = FileObjects(root)
    _tell(1, objects.get(objects.put(data.encode())).decode())


def with_small_files(limit: str, *command: str) -> None:
    """Run a command that can make no file larger than so many bytes: to it, the disk is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    os.execv(command[0], list(command))  # noqa: S606  the command of the test


def fill_up(root: str) -> None:
    """Put objects until there is no room left; tell the names that were acknowledged, then the error."""
    objects = FileObjects(root)
    try:
        for n in range(10_000):
            _tell(1, objects.put(n.to_bytes(4) * 4096).hex)
    except StorageFull as error:
        _tell(1, error.code)


def _tell(fd: int, line: str) -> None:
    """One line in one write, so that a kill leaves it whole or unwritten."""
    os.write(fd, line.encode() + b"\n")


WHAT: dict[str, Callable[..., None]] = {
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
    WHAT[sys.argv[1]](*sys.argv[2:])
