"""A catalog of any earlier schema opens with everything in it; a failing or unknown step changes nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contextplane.adapters.sql.core import Migration
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import (
    _run_migration,
    _split_statements,
    connect,
    migrate,
    migrations,
    schema_version,
)
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, Event, IndexedObject, StoredEvent, Tally
from contextplane.model.ids import Digest
from contextplane.ports.catalog import CatalogReadOnly, SchemaTooNew
from tests.support.cases import cases
from tests.support.reference_store import ReferenceStore

STORE_ID = "store_0123456789abcdef"
NEWEST = len(migrations())
ONE = Digest.of(b"one")
TWO = Digest.of(b"two")
EVENTS = [("run/1", 1, "began", b"{}"), ("run/1", 2, "ended", b'{"ok":true}'), ("store", 1, "made", b"")]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "catalog.db")


def fill_catalog(path: str, version: int) -> None:
    """A catalog as it was at that version, with something in every table that it had then."""
    with closing(connect(path)) as db:
        assert migrate(db, at=path, upto=version) == version == schema_version(db)
        if version >= 1:
            db.execute("INSERT INTO identity VALUES (?)", (STORE_ID,))
            db.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", EVENTS)
        if version >= 2:
            db.execute("INSERT INTO object VALUES (?, 'blob', 3, 1)", (ONE.hex,))
            source: int | str = TWO.hex
            if version >= 5:
                (source,) = db.execute("INSERT INTO source (digest) VALUES (?) RETURNING number", (TWO.hex,)).fetchone()
            db.execute("INSERT INTO edge VALUES (?, 1, 'inputs', ?)", (source, ONE.hex))
            db.execute("INSERT INTO root VALUES (?, ?)", (f"packs/{TWO.hex}", TWO.hex))
            db.execute("INSERT INTO mark VALUES ('packs', '7')")


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_a_catalog_of_an_earlier_schema_opens_with_everything_in_it(path: str, version: int) -> None:
    fill_catalog(path, version)
    catalog = SqliteCatalog.open(path, STORE_ID)
    assert catalog.schema == NEWEST
    with catalog.read() as view:
        events = [event for stream in view.streams.names() for event in view.streams.read(stream)]
        assert events == [StoredEvent(stream=s, seq=n, kind=kind, body=body) for s, n, kind, body in EVENTS]
        if version >= 2:
            assert view.objects.lookup(ONE) == IndexedObject(digest=ONE, kind=BLOB, size=3, traced=True)
            assert view.objects.targets(TWO) == (("inputs", ONE),)
            assert view.objects.referrers(ONE) == (str(TWO),)
            assert list(view.objects.roots()) == [(f"packs/{TWO.hex}", TWO)]
            assert view.objects.tallies() == (Tally(kind=BLOB, objects=1, size=3),)
            assert view.objects.root_count("packs/") == 1
            # Before there was a list of packs, so that the entries are looked at again.
            assert view.marks.get("packs") == ("7" if version >= 3 else None)
    assert not list(catalog.problems())
    with catalog.write() as tx:
        assert tx.streams.append("run/1", 2, [Event(kind="again", body=b"")]) == 3
        tx.objects.record(IndexedObject(digest=TWO, kind=BLOB, size=3, traced=True))
    catalog.close()
    with closing(connect(path)) as db:
        assert schema_version(db) == NEWEST


def test_the_steps_are_numbered_from_one_without_gaps() -> None:
    assert [step.number for step in migrations()] == list(range(1, NEWEST + 1))
    folder = Path(migrations()[0].path).parent
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        Path(step.path).name for step in migrations()
    ]


@cases("step", migrations(), ids=lambda step: step.name)
def test_every_line_of_a_step_is_run(step: Migration) -> None:
    script = Path(step.path).read_text(encoding="utf-8")
    assert "".join(_split_statements(script)).strip() == script.strip()


def test_the_list_of_tables_is_exactly_the_tables_there_are(path: str) -> None:
    catalog, _ = SqliteCatalog.create(path, STORE_ID)
    listed = sorted(table.name for table in catalog.tables())
    catalog.close()
    with closing(connect(path)) as db:
        rows = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            # What the full-text indexes keep for themselves.
            " AND name NOT LIKE 'words\\_%' ESCAPE '\\' AND name NOT LIKE 'handoff\\_text\\_%' ESCAPE '\\'"
        )
        assert listed == sorted(name for (name,) in rows)


@pytest.fixture
def db(path: str) -> Iterator[sqlite3.Connection]:
    fill_catalog(path, NEWEST)
    with closing(connect(path)) as db:
        yield db


def step_of(tmp_path: Path, script: str) -> Migration:
    path = tmp_path / "broken.sql"
    path.write_text(script, encoding="utf-8")
    return Migration(number=NEWEST + 1, name="broken", path=str(path))


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE fresh (a);\nCREATE TABLE fresh (a);\n",
        "CREATE TABLE fresh (a);\nDROP TABLE event;\nnonsense;\n",
        "CREATE TABLE fresh (a);\nUPDATE event SET kind = 'other';\n",
        "CREATE TABLE fresh (a);\nINSERT INTO identity VALUES (NULL);\n",
    ],
    ids=["twice", "nonsense", "against-a-trigger", "against-a-constraint"],
)
def test_a_step_that_fails_leaves_the_catalog_as_it_was(db: sqlite3.Connection, tmp_path: Path, script: str) -> None:
    before = list(db.iterdump())
    with pytest.raises(sqlite3.Error):
        _run_migration(db, step_of(tmp_path, script))
    assert schema_version(db) == NEWEST
    assert list(db.iterdump()) == before
    assert not db.in_transaction


def test_a_step_that_another_process_ran_meanwhile_is_not_run_again(db: sqlite3.Connection) -> None:
    before = list(db.iterdump())
    for step in migrations():
        _run_migration(db, step)
    assert schema_version(db) == NEWEST
    assert list(db.iterdump()) == before


@pytest.mark.parametrize("version", [NEWEST + 1, 999, 2**31 - 1])
def test_a_newer_schema_is_refused_and_not_touched(path: str, db: sqlite3.Connection, version: int) -> None:
    db.execute(f"PRAGMA user_version = {version}")
    before = list(db.iterdump())
    for way in (SqliteCatalog.open, SqliteCatalog.create):
        with pytest.raises(SchemaTooNew) as refused:
            way(path, STORE_ID)
        assert refused.value.at == path
        assert refused.value.hint
    assert schema_version(db) == version
    assert list(db.iterdump()) == before


def test_an_old_catalog_that_cannot_be_written_is_refused(path: str) -> None:
    fill_catalog(path, 1)
    with closing(connect(path)) as db:
        db.execute("PRAGMA query_only = ON")
        with pytest.raises(CatalogReadOnly):
            migrate(db, at=path)
        assert schema_version(db) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = x'00'",
        "UPDATE event SET seq = 9 WHERE stream = 'run/1' AND seq = 2",
        "DELETE FROM event",
        "DELETE FROM event WHERE stream = 'store'",
        "INSERT INTO event VALUES ('run/1', 4, 'k', x'')",
        "INSERT INTO event VALUES ('run/2', 2, 'k', x'')",
        "INSERT INTO event VALUES ('run/2', 0, 'k', x'')",
        "INSERT INTO event VALUES ('run/1', 2, 'k', x'')",
        "INSERT OR REPLACE INTO event VALUES ('run/1', 2, 'k', x'')",
        "INSERT INTO event VALUES ('', 1, 'k', x'')",
        "INSERT INTO event VALUES ('run/2', 1, '', x'')",
        "INSERT INTO event VALUES ('run/2', 1, 'k', zeroblob(65537))",
        "INSERT INTO event VALUES ('run/2', 'one', 'k', x'')",
        "INSERT INTO event VALUES ('run/2', 1, 'k', 'a text')",
    ],
)
def test_the_schema_itself_keeps_events_append_only(db: sqlite3.Connection, statement: str) -> None:
    before = list(db.iterdump())
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    assert list(db.iterdump()) == before


def test_packs_that_an_earlier_schema_indexed_are_listed_after_the_next_opening(tmp_path: Path) -> None:
    digits = ReferenceStore(tmp_path).pack(outputs={"report.md": b"done"})
    settings = Settings(cwd=str(tmp_path))
    store_id = init(settings).store_id
    path = tmp_path / ".ctx" / "catalog.db"
    path.unlink()
    with closing(connect(str(path))) as db:
        migrate(db, at=str(path), upto=2)
        db.execute("INSERT INTO identity VALUES (?)", (store_id,))
        db.execute("INSERT INTO root VALUES (?, ?)", (f"packs/{digits}", digits))
        db.execute("INSERT INTO mark VALUES ('packs', ?)", (str((tmp_path / ".ctx" / "packs").stat().st_mtime_ns),))
    with open_platform(settings) as platform, platform.catalog.read() as view:
        assert [digest.hex for digest in view.packs.digests()] == [digits]
        assert view.texts.search("careful", 5)
