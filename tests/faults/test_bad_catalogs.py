"""Catalogs that are gone, damaged, busy or of another store: refused, and rebuilt at the price that is named.

All of it through the real command, except where only the API can wait for less than the command does.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.platform import open_platform
from contextplane.app.repair import open_repaired
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.ports.catalog import CatalogBusy
from tests.faults.children import STORE_ID, start
from tests.faults.stores import READING, REPORT, assert_refused, json_of, small_files, tree, with_one_pack
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import ctx

STREAMS = [f"run/{n:03}" for n in range(60)]
PAGE = 4096


@pytest.fixture
def eventful(store: Path) -> Path:
    """The store with 300 events in it, too many for one page."""
    with open_platform(Settings(cwd=str(store.parent))) as platform, platform.catalog.write() as tx:
        for stream in STREAMS:
            tx.streams.append(stream, 0, [Event(kind="said", body=b"%d " % n * 60) for n in range(5)])
    return store


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite_start(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"\xa5" * 100 + data[100:])


def replace_with_text(path: Path) -> None:
    path.write_text("not a database at all\n" * 500, encoding="ascii")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 3 * PAGE + 17])


def replace_with_folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


DAMAGES: list[tuple[Callable[[Path], None], tuple[int, ...], tuple[str, ...]]] = [
    (delete, (14,), ("catalog_missing",)),
    (empty, (14,), ("catalog_missing",)),
    (overwrite_start, (14,), ("catalog_corrupt",)),
    (replace_with_text, (14,), ("catalog_corrupt",)),
    (truncate, (14,), ("catalog_corrupt",)),
    (replace_with_folder, (14,), ("catalog_corrupt",)),
]


def events_of(store: Path) -> dict[str, list[tuple[str, bytes]]]:
    """Every event of a store that opens, by stream."""
    with open_platform(Settings(cwd=str(store.parent))) as platform, platform.catalog.read() as view:
        names = list(view.streams.names())
        return {name: [(event.kind, event.body) for event in view.streams.read(name)] for name in names}


@pytest.mark.parametrize(("damage", "statuses", "codes"), DAMAGES, ids=[damage[0].__name__ for damage in DAMAGES])
def test_a_catalog_that_cannot_be_used_is_refused_until_a_rebuild_that_names_what_is_lost(
    eventful: Path, damage: Callable[[Path], None], statuses: tuple[int, ...], codes: tuple[str, ...]
) -> None:
    folder, catalog = eventful.parent, eventful / "catalog.db"
    damage(catalog)
    harmed = tree(eventful)
    for args in (*READING, ("init",)):
        result = ctx(*args, cwd=folder)
        assert result.status in statuses
        assert_refused(result, result.status, *codes)
    checked = ctx("fsck", "--json", cwd=folder)
    assert checked.status == 1
    assert json_of(checked)["objects"] == 5  # all of them, without a catalog
    assert tree(eventful) == harmed

    done = ctx("fsck", "--rebuild", "--json", cwd=folder)
    assert (done.status, done.err) == (1, "")
    report = json_of(done)
    assert report["rebuilt"] == {
        "packs": 1,
        "objects": 5,
        "handoffs": 0,
        "entries": 0,
        "adopted": [],
        "unclear": [],
    }
    lost = report["lost"]
    assert isinstance(lost, dict)
    assert lost["why"]
    assert "event: " in lost["truth"][0]
    if damage is delete:
        assert lost["moved_to"] is None
    else:
        # Moved aside, as it was, and never deleted.
        aside = Path(lost["moved_to"])
        assert aside.parent == eventful
        assert (tree(aside) if aside.is_dir() else aside.read_bytes()) == (
            {"inside": None} if aside.is_dir() else harmed["catalog.db"]
        )
    events = events_of(eventful)
    assert [kind for kind, _ in events["store"]] == ["catalog_lost"]
    assert lost["saved_streams"] == sorted(set(events) - {"store"})
    assert msgspec.json.decode(events["store"][0][1])["saved_events"] == lost["saved_events"]

    assert json_of(ctx("status", "--json", cwd=folder))["execution_packs"] == 1
    again = ctx("fsck", "--rebuild", "--json", cwd=folder)
    assert (again.status, json_of(again)["lost"]) == (0, None)
    assert events_of(eventful) == events


def test_events_that_can_still_be_read_are_saved_and_counted(eventful: Path) -> None:
    before = events_of(eventful)
    catalog = eventful / "catalog.db"
    with closing(sqlite3.connect(catalog)) as db:
        pages = db.execute("SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf' ORDER BY path")
        middle = [page for (page,) in pages][2]
    with catalog.open("r+b") as file:
        file.seek((middle - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    assert ctx("fsck", cwd=eventful.parent).status == 1
    report = json_of(ctx("fsck", "--rebuild", "--json", cwd=eventful.parent))
    lost = report["lost"]
    assert isinstance(lost, dict)
    after = events_of(eventful)
    assert [kind for kind, _ in after.pop("store")] == ["catalog_lost"]
    assert after
    assert all(events == before[stream][: len(events)] for stream, events in after.items())
    assert (lost["saved_events"], lost["saved_streams"]) == (sum(map(len, after.values())), sorted(after))
    # All that can be lost is what stood on the one page: the events of a few streams.
    assert len(STREAMS) - len(after) <= 6
    human = ctx("fsck", "--rebuild", cwd=eventful.parent)
    assert human.status == 0
    assert "Index rebuilt: 1 execution pack, 5 objects" in human.out


def test_people_are_told_what_is_lost(eventful: Path) -> None:
    delete(eventful / "catalog.db")
    output = ctx("fsck", "--rebuild", cwd=eventful.parent).out
    assert "The catalog could not be used" in output
    assert "Recovered: 0 events of 0 streams" in output
    assert "lost for ever" in output
    assert "event: Append-only event streams" in output


def test_the_catalog_of_another_store_is_refused_and_kept(eventful: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = with_one_pack(tmp_path / "other") / "catalog.db"
    shutil.copy(stranger, eventful / "catalog.db")
    for args in (*READING, ("init",)):
        assert_refused(ctx(*args, cwd=eventful.parent), 14, "catalog_foreign")
    # It is sound, so nothing is rebuilt from it either, and nothing of it is taken for ours.
    assert_refused(ctx("fsck", "--rebuild", cwd=eventful.parent), 14, "catalog_foreign")
    assert (eventful / "catalog.db").read_bytes() == stranger.read_bytes()
    (eventful / "catalog.db").rename(eventful / "aside")
    assert ctx("fsck", "--rebuild", cwd=eventful.parent).status == 1
    assert ctx("status", cwd=eventful.parent).status == 0


@pytest.mark.parametrize("pattern", [b"\xa5" * PAGE, bytes(PAGE)], ids=["noise", "zeros"])
def test_whichever_page_is_damaged_a_rebuild_makes_the_store_usable(eventful: Path, pattern: bytes) -> None:
    catalog = eventful / "catalog.db"
    settings = Settings(cwd=str(eventful.parent))
    whole = catalog.read_bytes()
    before = events_of(eventful)
    for page in range(len(whole) // PAGE):
        for path in eventful.glob("catalog.db*"):
            path.unlink()
        catalog.write_bytes(whole[: page * PAGE] + pattern + whole[(page + 1) * PAGE :])
        with open_repaired(settings) as done:
            assert done.rebuilt.packs == 1
            lost = done.loss is not None
        after = events_of(eventful)
        noted = [kind for kind, _ in after.pop("store", [])]
        assert noted == (["catalog_lost"] if lost else [])
        assert all(events == before[stream][: len(events)] for stream, events in after.items())
        assert lost or after == before


def test_a_rebuild_that_finds_no_room_does_not_leave_a_store_that_forgot_quietly(eventful: Path) -> None:
    before = events_of(eventful)
    overwrite_index_page(eventful / "catalog.db")
    failed = small_files(80_000, "fsck", "--rebuild", cwd=eventful.parent)
    assert failed.status == 1, failed
    assert "Traceback" not in failed.err
    status = ctx("status", cwd=eventful.parent)
    if status.status == 0:
        after = events_of(eventful)
        after.pop("store", None)
        assert after == before
    else:
        assert_refused(status, 14, "catalog_missing", "catalog_corrupt")
    # With room, nothing is lost but what was lost before.
    assert ctx("fsck", "--rebuild", cwd=eventful.parent).status == 1
    after = events_of(eventful)
    assert after.pop("store")
    assert after == before


def overwrite_index_page(path: Path) -> None:
    """Damage that costs no event: a page of an index."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT pageno FROM dbstat WHERE name = 'root' LIMIT 1").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)


def test_a_rebuild_of_a_store_that_was_never_adopted_loses_nothing_and_gives_it_an_identity(tmp_path: Path) -> None:
    ReferenceStore(tmp_path).pack(outputs={"report.md": REPORT})
    done = ctx("fsck", "--rebuild", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert json_of(done)["lost"] is None
    first = json_of(ctx("status", "--json", cwd=tmp_path))
    assert str(first["store_id"]).startswith("store_")
    assert first["execution_packs"] == 1
    assert json_of(ctx("status", "--json", cwd=tmp_path))["store_id"] == first["store_id"]
    assert events_of(tmp_path / ".ctx") == {}


def test_a_catalog_that_another_process_writes_to_is_busy_for_writers_and_free_for_readers(folder: Path) -> None:
    path = str(folder / "catalog.db")
    SqliteCatalog.create(path, STORE_ID)[0].close()
    with start("hold_lock", path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        catalog = SqliteCatalog.open(path, STORE_ID, busy_seconds=0.2)
        with catalog.read() as view:
            assert view.streams.head("s") == 0
        with pytest.raises(CatalogBusy) as busy, catalog.write() as tx:
            tx.streams.append("s", 0, [Event(kind="k", body=b"")])
        assert (busy.value.family, busy.value.at) == ("conflict", path)
        assert busy.value.hint
        child.communicate(b"")
    assert child.returncode == 0
    with catalog.write() as tx:
        assert tx.streams.append("s", 0, [Event(kind="k", body=b"")]) == 1
    catalog.close()
