"""The catalog in one SQLite file: the `Catalog` port for a single machine.

`SqliteCatalog` opens transactions; a transaction holds the indexes, each on its own tables. SQL that PostgreSQL
understands as well is in `adapters.sql`. Full text uses FTS5.
"""

import os
import sqlite3
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import ClassVar

import msgspec

from contextplane.adapters.sql.core import SqlMarks, SqlPending, SqlStreams, stored_digest
from contextplane.adapters.sql.indexes import (
    HANDOFF_COLUMNS,
    SqlHandoffIndex,
    SqlObjectIndex,
    SqlPackIndex,
    filter_conditions,
    handoff_values,
)
from contextplane.adapters.sqlite.connection import (
    BUSY_SECONDS,
    MEMORY,
    SqliteConnection,
    catalog_errors,
    connect,
    migrate,
    schema_problems,
    schema_version,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import (
    BLOB,
    Durability,
    HandoffFilter,
    HandoffRow,
    SearchHit,
    Table,
    TextPart,
    search_terms,
)
from contextplane.model.ids import Digest, HandoffId
from contextplane.ports.catalog import CatalogFailed, CatalogForeign, CatalogMissing, CatalogReadOnly

__all__ = [
    "SqliteCatalog",
    "SqliteHandoffIndex",
    "SqliteObjectIndex",
    "SqlitePackIndex",
    "SqliteStreams",
    "SqliteTextIndex",
    "SqliteTransaction",
]

_ROWS_AT_ONCE = 4096
_TEXTS_AT_ONCE = 256
_SNIPPET_WORDS = 16
_TRIGRAM = 3
_MAX_MATCH = 64
"""FTS5 matches at most this many characters of a query; the rest is compared row by row."""
_SYNCHRONOUS = {"crash": "NORMAL", "power_cut": "FULL"}
_tools_decoder = msgspec.json.Decoder(tuple[str, ...])


class SqliteStreams(SqlStreams):
    """The `Streams` port in SQLite."""

    def names(self, prefix: str = "") -> Iterator[str]:
        # One index lookup per stream: the cost does not grow with the number of events.
        row = self._db.single_row("SELECT min(stream) FROM event WHERE stream >= ?", (prefix,))
        while row[0] is not None and row[0].startswith(prefix):
            yield row[0]
            row = self._db.single_row("SELECT min(stream) FROM event WHERE stream > ?", (row[0],))


class SqliteObjectIndex(SqlObjectIndex):
    """The `ObjectIndex` port in SQLite.

    A statement inserts many rows, which it reads from a JSON text: that is faster than a call for each row.
    """

    FIRST_PART: ClassVar[str] = "substr(name, 1, instr(name, '/'))"
    NOT_REACHED: ClassVar[str] = "digest NOT IN reached"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        remaining = iter(blobs)
        while sizes := {digest.hex: size for digest, size in islice(remaining, _ROWS_AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT key, ?, value, 1 FROM json_each(?) WHERE true"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE kind = excluded.kind AND size <> excluded.size",
                (BLOB, _json(sizes)),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while batch := list(islice(edges, _ROWS_AT_ONCE)):
            for role, group in groupby(batch, itemgetter(0)):
                targets = [target.hex for _, target in group]
                self._db.execute(
                    "INSERT INTO edge (source, position, role, target) SELECT ?, ? + key, ?, value FROM json_each(?)",
                    (source, position, role, _json(targets)),
                )
                position += len(targets)


def _json(value: dict[str, int] | Sequence[str]) -> str:
    return msgspec.json.encode(value).decode()


class SqlitePackIndex(SqlPackIndex):
    """The `PackIndex` port in SQLite."""

    TOOLS: ClassVar[str] = (
        "(SELECT json_group_array(tool) FROM (SELECT tool FROM pack_tool WHERE number = pack.number ORDER BY tool))"
    )

    def decode_tools(self, value: str) -> tuple[str, ...]:
        return _tools_decoder.decode(value)

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


class SqliteTextIndex:
    """The `TextIndex` port on FTS5 (tables `text_part` and `words`), within one transaction."""

    def __init__(self, db: SqliteConnection) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[SearchHit, ...]:
        # Each term is a quoted string for FTS5, so no input is an operator.
        query = " ".join('"' + term.text.replace('"', '""') + '"' + "*" * term.prefix for term in search_terms(words))
        # Ordered by number, not by rank: ranking reads every match, so its cost would grow with the store.
        rows = self._db.execute(
            "SELECT pack.digest, text_part.part, snippet(words, 0, char(2), char(3), '...', ?)"
            " FROM words JOIN text_part ON text_part.id = words.rowid JOIN pack ON pack.number = text_part.number"
            " WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?",
            (_SNIPPET_WORDS, query, limit),
        )
        return tuple(
            SearchHit(pack=stored_digest(self._db, digest), part=part, snippet=snippet)
            for digest, part, snippet in rows
        )

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        number = self._db.single_row("SELECT number FROM pack WHERE digest = ?", (pack.hex,))[0]
        last = self._db.single_row("SELECT max(id) FROM text_part")[0] or 0
        numbered = enumerate(parts, last + 1)
        # In batches: the texts of a pack together may not fit into memory.
        while batch := list(islice(numbered, _TEXTS_AT_ONCE)):
            places = ((id_, number, part.part) for id_, part in batch)
            self._db.executemany("INSERT INTO text_part (id, number, part) VALUES (?, ?, ?)", places)
            words = ((id_, part.text) for id_, part in batch)
            self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", words)


class SqliteHandoffIndex(SqlHandoffIndex):
    """The `HandoffIndex` port in SQLite; full text is in `handoff_text`."""

    def put(self, row: HandoffRow, *, tags: Sequence[str] = ()) -> None:
        self.remove(row.id)
        number = self._db.single_row(
            f"INSERT INTO handoff ({HANDOFF_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            handoff_values(row),
        )
        searched = _without_nul(row.searched_text(tags))
        self._db.execute("INSERT INTO handoff_text (rowid, text) VALUES (?, ?)", (*number, searched))

    def remove(self, handoff_id: HandoffId) -> None:
        row = self._db.execute("SELECT number FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM handoff_text WHERE rowid = ?", row)
            self._db.execute("DELETE FROM handoff WHERE number = ?", row)

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff_text")
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def offset_clause(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "LIMIT -1 OFFSET ?", (offset,)

    def deadline_source(self) -> str:
        return "handoff INDEXED BY handoff_deadline"

    def filter_query(self, handoff_filter: HandoffFilter) -> tuple[str, str, list[object]]:
        """See `SqlHandoffIndex`. An upper bound of the deadline selects few packs, so its index is used."""
        where, values = filter_conditions(handoff_filter)
        if handoff_filter.query:
            query = _without_nul(handoff_filter.query.casefold())
            if len(query) >= _TRIGRAM:
                # One quoted string for FTS5, so no input is an operator.
                where = f"handoff_text MATCH ? AND {where}"
                values.insert(0, '"' + query[:_MAX_MATCH].replace('"', '""') + '"')
            if not _TRIGRAM <= len(query) <= _MAX_MATCH:
                where += " AND instr(handoff_text.text, ?)"
                values.append(query)
            return "handoff JOIN handoff_text ON handoff_text.rowid = number", where, values
        newest = "handoff_newest" if handoff_filter.status is None else "handoff_status"
        index = newest if handoff_filter.until is None else "handoff_deadline"
        return f"handoff INDEXED BY {index}", where, values


def _without_nul(text: str) -> str:
    # FTS5 ends a text at a NUL.
    return text.replace("\0", "\x01")


class SqliteTransaction:
    """The indexes of one transaction. None of them works after its end."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self.streams = SqliteStreams(connection)
        self.objects = SqliteObjectIndex(connection)
        self.marks = SqlMarks(connection)
        self.packs = SqlitePackIndex(connection)
        self.texts = SqliteTextIndex(connection)
        self.pending = SqlPending(connection)

    @cached_property
    def handoffs(self) -> SqliteHandoffIndex:
        """Made on first use: most verbs do not touch handoff packs."""
        return SqliteHandoffIndex(self._connection)


class SqliteCatalog:
    """The `Catalog` port on a SQLite file. One connection, not for two threads at once.

    Only `close` may be called by another thread: it takes effect when the transaction that is open then has ended.
    """

    def __init__(self, db: sqlite3.Connection, path: str, schema: int) -> None:
        self._db = db
        self._path = path
        self._schema = schema
        self._sealed: ContextPlaneError | None = None
        self._lock = allocate_lock()
        self._users = 0
        self._closing = False

    @classmethod
    def create(cls, path: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> tuple["SqliteCatalog", str]:
        """Open or create the file for a store without an identity; return the catalog and its identity.

        The first identity stays: of two processes that create it at once, and after one that was killed.
        """
        db = connect(path, busy_seconds=busy_seconds)
        with _close_on_error(db), catalog_errors(path):
            schema = migrate(db, at=path)
            # Take the write lock first: a statement that reads and then writes fails when another writer was faster.
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)", (store_id,))
            db.execute("COMMIT")
            return cls(db, path, schema), _identity(db)

    @classmethod
    def open(cls, path: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> "SqliteCatalog":
        """Open the catalog of exactly this store. A missing, empty or foreign one is refused, never created."""
        if not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0):
            raise _catalog_missing(path)
        db = connect(path, busy_seconds=busy_seconds)
        with _close_on_error(db), catalog_errors(path):
            # Before anything is changed: it may belong to another store.
            if schema_version(db) == 0:
                raise _catalog_missing(path)
            if _identity(db) != store_id:
                raise CatalogForeign(
                    "this catalog belongs to another store", at=path, hint="move it away and restore the right one"
                )
            return cls(db, path, migrate(db, at=path))

    def copy(self) -> "SqliteCatalog":
        """Return a copy in memory. It can be written, and is gone when it is closed."""
        db = connect(MEMORY)
        with _close_on_error(db), catalog_errors(self._path):
            self._db.backup(db)
            return SqliteCatalog(db, self._path, self._schema)

    def seal(self, why: ContextPlaneError) -> None:
        """Make it read-only: from now on `write` raises `CatalogReadOnly` with the message of `why`."""
        self._sealed = why

    @property
    def schema(self) -> int:
        return self._schema

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        connection = SqliteConnection(self._db)
        with catalog_errors(self._path), self._use():
            query_only = self._query_only()
            self._db.execute("PRAGMA query_only = ON")
            self._db.execute("BEGIN")
            try:
                # SQLite takes the snapshot at the first read, so read here.
                self._db.execute("SELECT 1 FROM identity").fetchone()
                yield SqliteTransaction(connection)
            finally:
                connection.end()
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._db.execute(f"PRAGMA query_only = {query_only}")

    @contextmanager
    def write(self, *, survives: Durability = "power_cut") -> Iterator[SqliteTransaction]:
        connection = SqliteConnection(self._db)
        with catalog_errors(self._path), self._use():
            if self._sealed is not None:
                raise CatalogReadOnly(self._sealed.message, at=self._sealed.at, hint=self._sealed.hint)
            if self._query_only():
                raise CatalogReadOnly("cannot be written", at=self._path, hint="check the mount and the permissions")
            self._db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[survives]}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                connection.end()

    def tables(self) -> tuple[Table, ...]:
        with catalog_errors(self._path), self._use():
            rows = self._db.execute("SELECT name, role, note FROM catalog_table ORDER BY role DESC, name")
            return tuple(Table(name=name, role=role, note=note) for name, role, note in rows)

    def problems(self) -> Iterator[str]:
        with catalog_errors(self._path), self._use():
            for (line,) in self._db.execute("PRAGMA integrity_check"):
                if line != "ok":
                    yield line
            yield from schema_problems(self._db)

    def close(self) -> None:
        """Close the connection, or have the transaction that is open close it at its end.

        Closing a connection that another thread uses would crash the process.
        """
        with self._lock:
            self._closing = True
            if not self._users:
                self._db.close()

    @contextmanager
    def _use(self) -> Iterator[None]:
        with self._lock:
            if self._closing and not self._users:
                raise CatalogFailed("the catalog is closed", at=self._path, hint="open the store again")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._closing and not self._users:
                    self._db.close()

    def _query_only(self) -> int:
        return int(self._db.execute("PRAGMA query_only").fetchone()[0])


def _identity(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT store_id FROM identity").fetchone()
    return str(row[0]) if row else ""


def _catalog_missing(path: str) -> CatalogMissing:
    return CatalogMissing(
        "this store has an identity, but its catalog is gone",
        at=path,
        hint="restore it from a copy, or 'ctx fsck --rebuild' makes a new index and names what is lost",
    )


@contextmanager
def _close_on_error(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise
