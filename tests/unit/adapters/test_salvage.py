"""Of a damaged catalog everything readable is saved, nothing doubtful is, and the damaged one is kept."""

import errno
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from contextplane.adapters.files.disk import Disk
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.salvage import NEXT, has_unfinished_install, install, salvage_events
from contextplane.model.catalog import Event, StoredEvent
from contextplane.ports.objects import StorageFailed
from contextplane.testing.faults import Faults, FaultyDisk

STORE_ID = "store_0123456789abcdef"
STREAMS = [f"run/{n:03}" for n in range(60)]
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A catalog of 60 streams with 5 events each, spread over some thirty pages."""
    path = tmp_path / "catalog.db"
    catalog, _ = SqliteCatalog.create(str(path), STORE_ID)
    with catalog.write() as tx:
        for stream in STREAMS:
            bodies = [f"{stream} {n} ".encode() * 20 for n in range(1, 6)]
            tx.streams.append(stream, 0, [Event(kind="said", body=body) for body in bodies])
    catalog.close()
    return path


def salvage(path: str) -> list[StoredEvent]:
    return sorted(salvage_events(path, STORE_ID), key=lambda event: (event.stream, event.seq))


def original(stream: str, seq: int) -> StoredEvent:
    return StoredEvent(stream=stream, seq=seq, kind="said", body=f"{stream} {seq} ".encode() * 20)


def assert_nothing_doubtful(events: list[StoredEvent]) -> None:
    """Each stream from its first event on without a gap, and each event as it was."""
    assert events == [original(event.stream, event.seq) for event in events]
    for stream in {event.stream for event in events}:
        seqs = [event.seq for event in events if event.stream == stream]
        assert seqs == list(range(1, len(seqs) + 1))


def overwrite(path: Path, page: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(data)


def test_everything_is_saved_from_a_sound_catalog(path: Path) -> None:
    assert salvage(str(path)) == [original(stream, seq) for stream in STREAMS for seq in range(1, 6)]


def test_what_stands_in_the_write_ahead_log_is_saved_too(path: Path) -> None:
    catalog = SqliteCatalog.open(str(path), STORE_ID)
    with catalog.write() as tx:
        tx.streams.append("store", 0, [Event(kind="said", body=b"late")])
    assert StoredEvent(stream="store", seq=1, kind="said", body=b"late") in salvage(str(path))
    catalog.close()


@pytest.mark.parametrize("data", [b"\xa5" * PAGE, bytes(PAGE)], ids=["noise", "zeros"])
def test_one_bad_page_costs_no_more_than_the_streams_on_it(path: Path, data: bytes) -> None:
    whole = path.read_bytes()
    saved = []
    for page in range(1, len(whole) // PAGE):
        path.write_bytes(whole)
        overwrite(path, page, data)
        events = salvage(str(path))
        assert_nothing_doubtful(events)
        saved.append(len({event.stream for event in events}))
    # Some pages hold no events; a few hold the schema, the way to all of them, and whose they are. A page of events
    # holds those of a few streams.
    assert sum(count == len(STREAMS) for count in saved) >= 5
    assert sum(count < len(STREAMS) - 6 for count in saved) <= 5


def test_a_stream_is_saved_up_to_its_first_gap(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER event_is_never_removed")
        db.execute("DELETE FROM event WHERE stream = 'run/007' AND seq = 3")
        db.execute("DELETE FROM event WHERE stream = 'run/008' AND seq = 1")
        db.commit()
    events = salvage(str(path))
    assert_nothing_doubtful(events)
    assert [event.seq for event in events if event.stream == "run/007"] == [1, 2]
    assert not [event for event in events if event.stream == "run/008"]
    assert len(events) == 5 * len(STREAMS) - 3 - 5


@pytest.mark.parametrize("size", [0, 1, 100, PAGE, 3 * PAGE, 10 * PAGE + 7])
def test_from_a_truncated_catalog_nothing_doubtful_is_saved(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    assert_nothing_doubtful(salvage(str(path)))


def test_nothing_is_saved_from_what_is_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xa5" * 10_000)
    (tmp_path / "folder").mkdir()
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE event (a)")
        db.execute("INSERT INTO event VALUES (1)")
        db.commit()
    for name in ("absent", "noise", "folder", "other.db"):
        assert salvage(str(tmp_path / name)) == []
    assert not (tmp_path / "absent").exists()


def test_salvaging_changes_nothing(path: Path) -> None:
    overwrite(path, 10, b"\xa5" * PAGE)
    before = path.read_bytes()
    salvage(str(path))
    assert path.read_bytes() == before


def test_nothing_is_saved_from_the_catalog_of_another_store_or_of_nobody(path: Path) -> None:
    assert list(salvage_events(str(path), "store_fedcba9876543210")) == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM identity")
        db.commit()
    assert salvage(str(path)) == []


def test_an_event_that_is_too_large_ends_its_stream_and_no_other(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("DROP TRIGGER event_is_never_changed")
        db.execute("UPDATE event SET body = zeroblob(70000) WHERE stream = 'run/007' AND seq = 3")
        db.commit()
    events = salvage(str(path))
    assert [event.seq for event in events if event.stream == "run/007"] == [1, 2]
    assert len(events) == 5 * len(STREAMS) - 3


# --- putting a new catalog in the place of the old one ----------------------------------------------------------------


def prepared(path: Path, text: str) -> None:
    path.with_name(path.name + NEXT).write_text(text, encoding="ascii")


def test_the_old_catalog_is_kept_with_its_companions_and_over_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    for number in (1, 2, 3):
        for part in ("", "-wal", "-shm"):
            (tmp_path / f"catalog.db{part}").write_text(f"{number}{part}", encoding="ascii")
        prepared(path, "new")
        assert install(str(path), Disk()) == f"{path}.damaged-{number}"
        assert path.read_text(encoding="ascii") == "new"
    assert {file.name: file.read_text(encoding="ascii") for file in tmp_path.iterdir()} == {"catalog.db": "new"} | {
        f"catalog.db.damaged-{number}{part}": f"{number}{part}" for number in (1, 2, 3) for part in ("", "-wal", "-shm")
    }


def test_a_lonely_companion_in_the_way_makes_the_name_taken(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"damaged")
    prepared(path, "new")
    (tmp_path / "catalog.db.damaged-1-wal").write_bytes(b"older")
    assert install(str(path), Disk()) == f"{path}.damaged-2"
    assert (tmp_path / "catalog.db.damaged-1-wal").read_bytes() == b"older"


def test_a_folder_in_the_place_of_a_catalog_is_moved_aside_like_one(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    (path / "inside").mkdir(parents=True)
    prepared(path, "new")
    assert install(str(path), Disk()) == f"{path}.damaged-1"
    assert (tmp_path / "catalog.db.damaged-1" / "inside").is_dir()
    assert path.read_text(encoding="ascii") == "new"


def test_stopped_anywhere_there_is_the_whole_old_catalog_or_the_new_one_ready(tmp_path: Path) -> None:
    for stop in range(1, 12):
        folder = tmp_path / str(stop)
        folder.mkdir()
        path = folder / "catalog.db"
        for part in ("", "-wal", "-shm"):
            (folder / f"catalog.db{part}").write_text(f"old{part}", encoding="ascii")
        prepared(path, "new")
        faults = Faults().at("*", stop, OSError(errno.EIO, "stopped"))
        with suppress(StorageFailed):
            install(str(path), FaultyDisk(faults))
        if path.exists() and path.read_text(encoding="ascii") == "old":
            assert (folder / "catalog.db-wal").read_text(encoding="ascii") == "old-wal"
        elif not path.exists():
            assert has_unfinished_install(str(path))
            install(str(path), Disk())
            assert path.read_text(encoding="ascii") == "new"
        if path.read_text(encoding="ascii") == "new":
            assert not (folder / "catalog.db-wal").exists()
            asides = [file.name for file in folder.iterdir() if "damaged" in file.name]
            assert sorted(asides) == [f"catalog.db.damaged-1{part}" for part in ("", "-shm", "-wal")]
