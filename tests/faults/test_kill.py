"""`kill -9` at random moments: acknowledged writes are there, others are absent or complete."""

from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest
from tests.faults.children import STORE_ID, start

# How many acknowledgements to wait for before the kill; its exact moment is random.
ROUNDS = (1, 6, 17, 44, 83, 151, 268, 402)
FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


def kill_after(child: Popen[bytes], acknowledgements: int) -> list[str]:
    """Kill a child after so many lines of output; return every line."""
    assert child.stdout is not None
    with child:
        lines = [child.stdout.readline() for _ in range(acknowledgements)]
        child.kill()
        lines += child.stdout.readlines()
    assert child.returncode == -9, (lines, child.stderr)
    assert len(lines) >= acknowledgements
    assert all(line.endswith(b"\n") for line in lines)
    return [line.decode().strip() for line in lines]


@pytest.mark.parametrize("acknowledgements", ROUNDS)
def test_a_killed_writer_of_objects_loses_nothing_acknowledged(folder: Path, acknowledgements: int) -> None:
    acknowledged = kill_after(start("put_many", folder), acknowledgements)
    objects = FileObjects(str(folder))
    assert {objects.check(Digest(name)).state for name in acknowledged} == {"whole"}
    assert {objects.check(name).state for name in objects.names()} == {"whole"}
    assert {stray.what for stray in objects.strays()} <= {"leftover"}
    objects.sweep(older_than=FAR_AHEAD)
    assert not list(objects.strays())
    assert objects.get(objects.put(b"life goes on")) == b"life goes on"


@pytest.mark.parametrize("acknowledgements", ROUNDS)
def test_a_killed_writer_of_events_loses_nothing_acknowledged_and_leaves_no_gap(
    folder: Path, acknowledgements: int
) -> None:
    path = str(folder / "catalog.db")
    SqliteCatalog.create(path, STORE_ID)[0].close()
    heads: dict[str, int] = {}
    for line in kill_after(start("append_many", path), acknowledgements):
        stream, seq = line.split()
        heads[stream] = int(seq)
    catalog = SqliteCatalog.open(path, STORE_ID)
    with catalog.read() as view:
        assert not [stream for stream, seq in heads.items() if view.streams.head(stream) < seq]
        for stream in view.streams.names():
            events = list(view.streams.read(stream))
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert [event.body for event in events] == [b"%s %d" % (stream.encode(), event.seq) for event in events]
            # What one transaction wrote beside the events came with them or not at all.
            assert view.marks.get(stream) == str(len(events))
    assert not list(catalog.problems())
    with catalog.write() as tx:
        tx.streams.append("run/0", tx.streams.head("run/0"), [Event(kind="counted", body=b"life goes on")])
    catalog.close()
