"""Child processes of the fault tests on PostgreSQL: `python -m tests.faults.postgres_children TASK URL STORE`.

It imports no pytest, and it forks, which a test process with threads must not.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from subprocess import PIPE, Popen

from contextplane.adapters.postgres.catalog import PostgresCatalog
from contextplane.model.catalog import Event
from contextplane.ports.catalog import StreamConflict

__all__ = ["EACH", "RACES", "WRITERS", "start"]

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 16
RACES = 5
EACH = 5

FORKING = multiprocessing.get_context("fork")


def start(task: str, url: str, store_id: str) -> Popen[bytes]:
    """Start one of the functions below in a child process, with pipes to it and from it."""
    command = [sys.executable, "-m", "tests.faults.postgres_children", task, url, store_id]
    return Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def write_at_once(url: str, store_id: str) -> None:
    """Writers race for the places of one stream, share another, and have one each; print the winners."""
    barrier = FORKING.Barrier(WRITERS)
    writers = [FORKING.Process(target=_write, args=(url, store_id, n, barrier)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    sys.exit(any(writer.exitcode for writer in writers))


def _write(url: str, store_id: str, n: int, barrier: Barrier) -> None:
    try:
        _race(url, store_id, n, barrier)
    except BaseException:
        barrier.abort()  # the others do not wait for one that failed
        raise


def _race(url: str, store_id: str, n: int, barrier: Barrier) -> None:
    with closing(PostgresCatalog.open(url, store_id)) as catalog:
        for race in range(RACES):
            barrier.wait()
            if _append(catalog, "race", race, n):
                _print_line(f"{race} {n}")
        for turn in range(EACH):
            while not _append(catalog, "shared", _head(catalog, "shared"), n * EACH + turn):
                pass
            assert _append(catalog, f"own/{n}", turn, turn)


def _head(catalog: PostgresCatalog, stream: str) -> int:
    with catalog.read() as view:
        return view.streams.head(stream)


def _append(catalog: PostgresCatalog, stream: str, expected: int, number: int) -> bool:
    try:
        with catalog.write(survives="crash") as tx:
            tx.streams.append(stream, expected, [Event(kind="counted", body=b"%d" % number)])
    except StreamConflict:
        return False
    return True


def hold_turn(url: str, store_id: str) -> None:
    """Append within a transaction that never ends, and print a line."""
    with closing(PostgresCatalog.open(url, store_id)) as catalog, catalog.write() as tx:
        tx.streams.append("s", tx.streams.head("s"), [Event(kind="counted", body=b"lost")])
        _print_line("inside")
        sys.stdin.read()


def _print_line(line: str) -> None:
    """Print a line in one write, so that a kill leaves it whole or unwritten."""
    os.write(1, line.encode() + b"\n")


TASKS: dict[str, Callable[[str, str], None]] = {"write_at_once": write_at_once, "hold_turn": hold_turn}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
