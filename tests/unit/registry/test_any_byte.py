"""Any byte that is changed, and any row that is taken away, makes the verification of a registry fail."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.registry.audit import AuditInputs, audit
from contextplane.registry.events import Deprecated
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from tests.unit.registry.world import ORIGIN, STORE, Registry
from tests.unit.trust.world import CHECK

_EVENTS = "SELECT stream, seq, kind, body FROM event ORDER BY stream, seq"
_MARKS = "SELECT name, value FROM mark WHERE name LIKE 'registry/heads/%' ORDER BY name"


class Bench:
    """A small registry in a file, with nothing that keeps its rows from being changed."""

    def __init__(self, path: Path) -> None:
        registry = Registry(path=str(path))
        registry.publish(b"one")
        registry.pin("prod", "refunds@1.0.0", b"one")
        registry.on_version("pub", "refunds@1.0.0", Deprecated())
        with registry.catalog.read() as view:
            self.known = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
        registry.catalog.close()
        self._path = path
        with closing(sqlite3.connect(path)) as database:
            for (guard,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                database.execute(f"DROP TRIGGER {guard}")
            self.events: list[tuple[str, int, str, bytes]] = database.execute(_EVENTS).fetchall()
            self.marks: list[tuple[str, str]] = database.execute(_MARKS).fetchall()
            database.commit()

    def sound_after(self, sql: str, *values: object) -> bool:
        """Whether the verification passes after a change, which is undone again."""
        with closing(sqlite3.connect(self._path)) as database:
            database.execute("PRAGMA synchronous = OFF")
            assert database.execute(sql, values).rowcount == 1
            database.commit()
            try:
                return self.sound()
            finally:
                database.executemany("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?)", self.events)
                database.executemany("INSERT OR REPLACE INTO mark VALUES (?, ?)", self.marks)
                database.commit()

    def sound(self) -> bool:
        with closing(SqliteCatalog.open(str(self._path), STORE)) as catalog, catalog.read() as view:
            return audit(AuditInputs(view=view, known=self.known, check=CHECK)).sound


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("bench") / "catalog.db")
    assert made.sound()
    yield made
    assert made.sound()


def changed(data: bytes, place: int, by: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([data[place] ^ by]) + data[place + 1 :]


BYTES = {"place": st.integers(0, 1 << 16), "by": st.integers(1, 255)}


@settings(max_examples=100, deadline=None)
@given(row=st.integers(0, 1 << 10), **BYTES)
def test_any_byte_of_any_event_entry_node_and_checkpoint(bench: Bench, row: int, place: int, by: int) -> None:
    stream, seq, _, body = bench.events[row % len(bench.events)]
    sql = "UPDATE event SET body = ? WHERE stream = ? AND seq = ?"
    assert not bench.sound_after(sql, changed(body, place, by), stream, seq)


@settings(max_examples=20, deadline=None)
@given(row=st.integers(0, 1 << 10), place=st.integers(0, 1 << 16), by=st.integers(1, 15))
def test_any_letter_of_the_kind_of_an_event(bench: Bench, row: int, place: int, by: int) -> None:
    rows = [event for event in bench.events if event[0] != "trust/keyring"]  # the kind of these says nothing to anybody
    stream, seq, kind, _ = rows[row % len(rows)]
    sql = "UPDATE event SET kind = ? WHERE stream = ? AND seq = ?"
    assert not bench.sound_after(sql, changed(kind.encode(), place, by).decode(), stream, seq)


@settings(max_examples=20, deadline=None)
@given(row=st.integers(0, 1 << 10), place=st.integers(0, 1 << 16), by=st.integers(1, 15))
def test_any_letter_of_any_node_over_the_ends(bench: Bench, row: int, place: int, by: int) -> None:
    name, value = bench.marks[row % len(bench.marks)]
    sql = "UPDATE mark SET value = ? WHERE name = ?"
    assert not bench.sound_after(sql, changed(value.encode(), place, by).decode(), name)


@settings(max_examples=40, deadline=None)
@given(row=st.integers(0, 1 << 10))
def test_any_row_that_is_taken_away(bench: Bench, row: int) -> None:
    rows: list[tuple[str, tuple[object, ...]]] = [
        *(("DELETE FROM event WHERE stream = ? AND seq = ?", (stream, seq)) for stream, seq, _, _ in bench.events),
        *(("DELETE FROM mark WHERE name = ?", (name,)) for name, _ in bench.marks),
    ]
    sql, values = rows[row % len(rows)]
    assert not bench.sound_after(sql, *values)
