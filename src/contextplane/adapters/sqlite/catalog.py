"""The catalog in one SQLite file: the `Catalog` port for a single machine.

It hands out transactions and nothing more; each noun's SQL is in its own module.

Event streams in SQLite: the `Streams` port on the table `event`.

What objects are and what refers to them, in SQLite: the `ObjectIndex` port.

Many rows go into one statement, which reads them from a JSON text: calling SQLite for each of them takes longer.

The list of execution packs in SQLite: the `PackIndex` port on `pack` and `pack_tool`.

The list of handoff packs in SQLite: the `HandoffIndex` port on `handoff`, `handoff_tally` and `handoff_text`.

Full text in SQLite's FTS5: the `TextIndex` port on `text_part` and `words`.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import ClassVar

import msgspec

from contextplane.adapters.sql.core import SqlMarks, SqlPending, SqlStreams, digest_in
from contextplane.adapters.sql.indexes import COLUMNS, SqlHandoffIndex, SqlObjectIndex, SqlPackIndex, bounds, values_of
from contextplane.adapters.sqlite.connection import (
    BUSY_SECONDS,
    MEMORY,
    Live,
    catalog_errors,
    connect,
    migrate,
    schema_problems,
    version_of,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import BLOB, HandoffFilter, HandoffRow, Hit, Survives, Table, TextPart, terms
from contextplane.model.ids import Digest, HandoffId
from contextplane.ports.catalog import CatalogForeign, CatalogMissing, CatalogReadOnly

__all__ = [
    "SqliteCatalog",
    "SqliteHandoffIndex",
    "SqliteObjectIndex",
    "SqlitePackIndex",
    "SqliteStreams",
    "SqliteTextIndex",
    "SqliteTransaction",
]


class SqliteStreams(SqlStreams):
    """Lives within one transaction of the catalog."""

    def names(self, prefix: str = "") -> Iterator[str]:
        # One step down the key per stream: the cost does not grow with the number of events.
        row = self._db.one("SELECT min(stream) FROM event WHERE stream >= ?", (prefix,))
        while row[0] is not None and row[0].startswith(prefix):
            yield row[0]
            row = self._db.one("SELECT min(stream) FROM event WHERE stream > ?", (row[0],))


_ROWS_AT_ONCE = 4096


class SqliteObjectIndex(SqlObjectIndex):
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, instr(name, '/'))"
    NOT_REACHED: ClassVar[str] = "digest NOT IN reached"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        left = iter(blobs)
        while some := {digest.hex: size for digest, size in islice(left, _ROWS_AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT key, ?, value, 1 FROM json_each(?) WHERE true"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE kind = excluded.kind AND size <> excluded.size",
                (BLOB, _json(some)),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while some := list(islice(edges, _ROWS_AT_ONCE)):
            for role, group in groupby(some, itemgetter(0)):
                targets = [target.hex for _, target in group]
                self._db.execute(
                    "INSERT INTO edge (source, position, role, target) SELECT ?, ? + key, ?, value FROM json_each(?)",
                    (source, position, role, _json(targets)),
                )
                position += len(targets)


def _json(value: dict[str, int] | Sequence[str]) -> str:
    return msgspec.json.encode(value).decode()


_tools = msgspec.json.Decoder(tuple[str, ...])


class SqlitePackIndex(SqlPackIndex):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str] = (
        "(SELECT json_group_array(tool) FROM (SELECT tool FROM pack_tool WHERE number = pack.number ORDER BY tool))"
    )

    def tools_in(self, value: str) -> tuple[str, ...]:
        return _tools.decode(value)

    def remove(self, digest: Digest) -> None:
        self._db.execute(
            "DELETE FROM words WHERE rowid IN"
            " (SELECT id FROM text_part JOIN pack USING (number) WHERE pack.digest = ?)",
            (digest.hex,),
        )
        super().remove(digest)

    def clear(self) -> None:
        self._db.execute("DELETE FROM words")
        super().clear()


_SNIPPET_WORDS = 16
_TEXTS_AT_ONCE = 256


class SqliteTextIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[Hit, ...]:
        # Each term is a quoted string to FTS5: nothing that people type is an operator of it.
        query = " ".join('"' + term.text.replace('"', '""') + '"' + "*" * term.prefix for term in terms(words))
        # By number and not by rank: ranking reads every match, and the cost would grow with what is stored.
        rows = self._db.execute(
            "SELECT pack.digest, text_part.part, snippet(words, 0, char(2), char(3), '...', ?)"
            " FROM words JOIN text_part ON text_part.id = words.rowid JOIN pack ON pack.number = text_part.number"
            " WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?",
            (_SNIPPET_WORDS, query, limit),
        )
        return tuple(
            Hit(pack=digest_in(self._db, digest), part=part, snippet=snippet) for digest, part, snippet in rows
        )

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        number = self._db.one("SELECT number FROM pack WHERE digest = ?", (pack.hex,))[0]
        last = self._db.one("SELECT max(id) FROM text_part")[0] or 0
        numbered = enumerate(parts, last + 1)
        # Some at a time: all the texts of a pack may be more than fits.
        while some := list(islice(numbered, _TEXTS_AT_ONCE)):
            places = ((id_, number, part.part) for id_, part in some)
            self._db.executemany("INSERT INTO text_part (id, number, part) VALUES (?, ?, ?)", places)
            words = ((id_, part.text) for id_, part in some)
            self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", words)


_SYNCHRONOUS = {"crash": "NORMAL", "power_cut": "FULL"}


class SqliteTransaction:
    """One transaction on one connection; nothing of it works after its end."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self.streams = SqliteStreams(live)
        self.objects = SqliteObjectIndex(live)
        self.marks = SqlMarks(live)
        self.packs = SqlitePackIndex(live)
        self.texts = SqliteTextIndex(live)
        self.pending = SqlPending(live)

    @cached_property
    def handoffs(self) -> "SqliteHandoffIndex":
        """Loaded when first asked for: most verbs have nothing to do with handoff packs."""
        return SqliteHandoffIndex(self._live)


class SqliteCatalog:
    """A connection of its own for whoever opens it; not for two threads at once."""

    def __init__(self, db: sqlite3.Connection, path: str, schema: int) -> None:
        self._db = db
        self._path = path
        self._schema = schema
        self._sealed: ContextPlaneError | None = None

    @classmethod
    def create(cls, path: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> tuple["SqliteCatalog", str]:
        """Open the file, or make it, for a store that has no identity yet; return the identity it has now.

        When two processes do this at once, or one did it before and died, the first identity stays.
        """
        db = connect(path, busy_seconds=busy_seconds)
        with _closing_on_error(db), catalog_errors(path):
            schema = migrate(db, at=path)
            # Our turn first: a statement that reads and then wants to write is refused at once when another was faster.
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)", (store_id,))
            db.execute("COMMIT")
            return cls(db, path, schema), _identity(db)

    @classmethod
    def open(cls, path: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> "SqliteCatalog":
        """Open the catalog of exactly this store. An absent, empty or foreign one is refused, never made anew."""
        if not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
            raise _missing(path)
        db = connect(path, busy_seconds=busy_seconds)
        with _closing_on_error(db), catalog_errors(path):
            # Before anything is changed: it may be somebody else's.
            if version_of(db) == 0:
                raise _missing(path)
            if _identity(db) != store_id:
                raise CatalogForeign(
                    "this catalog belongs to another store", at=path, hint="move it away and restore the right one"
                )
            return cls(db, path, migrate(db, at=path))

    def copy(self) -> "SqliteCatalog":
        """The same catalog in memory, which can be written and is gone when it is closed."""
        db = connect(MEMORY)
        with _closing_on_error(db), catalog_errors(self._path):
            self._db.backup(db)
            return SqliteCatalog(db, self._path, self._schema)

    def seal(self, why: ContextPlaneError) -> None:
        """From here on it can only be read; whoever wants to write is told why not."""
        self._sealed = why

    @property
    def schema(self) -> int:
        return self._schema

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        live = Live(self._db)
        with catalog_errors(self._path):
            was = self._query_only()
            self._db.execute("PRAGMA query_only = ON")
            self._db.execute("BEGIN")
            try:
                # The snapshot is taken by the first read, so take it here.
                self._db.execute("SELECT 1 FROM identity").fetchone()
                yield SqliteTransaction(live)
            finally:
                live.end()
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._db.execute(f"PRAGMA query_only = {was}")

    @contextmanager
    def write(self, *, survives: Survives = "power_cut") -> Iterator[SqliteTransaction]:
        live = Live(self._db)
        with catalog_errors(self._path):
            if self._sealed is not None:
                raise CatalogReadOnly(self._sealed.message, at=self._sealed.at, hint=self._sealed.hint)
            if self._query_only():
                raise CatalogReadOnly("cannot be written", at=self._path, hint="check the mount and the permissions")
            self._db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[survives]}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(live)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                live.end()

    def tables(self) -> tuple[Table, ...]:
        with catalog_errors(self._path):
            rows = self._db.execute("SELECT name, role, note FROM catalog_table ORDER BY role DESC, name")
            return tuple(Table(name=name, role=role, note=note) for name, role, note in rows)

    def problems(self) -> Iterator[str]:
        with catalog_errors(self._path):
            for (line,) in self._db.execute("PRAGMA integrity_check"):
                if line != "ok":
                    yield line
            yield from schema_problems(self._db)

    def close(self) -> None:
        self._db.close()

    def _query_only(self) -> int:
        return int(self._db.execute("PRAGMA query_only").fetchone()[0])


def _identity(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT store_id FROM identity").fetchone()
    return str(row[0]) if row else ""


def _missing(path: str) -> CatalogMissing:
    return CatalogMissing(
        "this store has an identity, but its catalog is gone",
        at=path,
        hint="restore it from a copy, or 'ctx fsck --rebuild' makes a new index and names what is lost",
    )


@contextmanager
def _closing_on_error(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


_TRIGRAM = 3
_MATCHED = 64
"""FTS5 finds so many characters of a long text quickly; whether the rest follows is then looked at one by one."""


class SqliteHandoffIndex(SqlHandoffIndex):
    """Lives within one transaction of the catalog."""

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        number = self._db.one(
            f"INSERT INTO handoff ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number", values_of(row)
        )
        self._db.execute("INSERT INTO handoff_text (rowid, text) VALUES (?, ?)", (*number, _whole(row.searched)))

    def remove(self, handoff_id: HandoffId) -> None:
        row = self._db.execute("SELECT number FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM handoff_text WHERE rowid = ?", row)
            self._db.execute("DELETE FROM handoff WHERE number = ?", row)

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff_text")
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def all_after(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "LIMIT -1 OFFSET ?", (offset,)

    def by_deadline(self) -> str:
        return "handoff INDEXED BY handoff_deadline"

    def meant(self, wanted: HandoffFilter) -> tuple[str, str, list[object]]:
        """As it says there. A deadline that is bounded above is near, so few have one."""
        where, values = bounds(wanted)
        if wanted.query:
            query = _whole(wanted.query.casefold())
            if len(query) >= _TRIGRAM:
                # One quoted string to FTS5: nothing that people type is an operator.
                where = f"handoff_text MATCH ? AND {where}"
                values.insert(0, '"' + query[:_MATCHED].replace('"', '""') + '"')
            if not _TRIGRAM <= len(query) <= _MATCHED:
                where += " AND instr(handoff_text.text, ?)"
                values.append(query)
            return "handoff JOIN handoff_text ON handoff_text.rowid = number", where, values
        newest = "handoff_newest" if wanted.status is None else "handoff_status"
        index = newest if wanted.until is None else "handoff_deadline"
        return f"handoff INDEXED BY {index}", where, values


def _whole(text: str) -> str:
    # FTS5 takes a NUL for the end of the text.
    return text.replace("\0", "\x01")
