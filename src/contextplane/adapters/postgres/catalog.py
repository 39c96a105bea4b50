"""The catalog in one schema of a PostgreSQL database: the `Catalog` port for several machines.

`PostgresCatalog` opens transactions; a transaction holds the indexes, each on its own tables. SQL that SQLite
understands as well is in `adapters.sql`, full text in `text_search`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar

import psycopg
from psycopg.pq import TransactionStatus

from contextplane.adapters.postgres.connection import (
    BUSY_SECONDS,
    RESTORE_HINT,
    DriverConnection,
    PostgresConnection,
    catalog_errors,
    catalog_exists,
    connect,
    display_url,
    is_connection_lost,
    migrate,
    migrations,
    refuse_newer,
    schema_problems,
    schema_version,
)
from contextplane.adapters.postgres.text_search import PostgresTextIndex
from contextplane.adapters.sql.core import SqlMarks, SqlPending, SqlStreams
from contextplane.adapters.sql.indexes import (
    HANDOFF_COLUMNS,
    SqlHandoffIndex,
    SqlObjectIndex,
    SqlPackIndex,
    filter_conditions,
    handoff_values,
)
from contextplane.model.catalog import BLOB, Durability, HandoffFilter, HandoffRow, Table
from contextplane.model.ids import Digest, HandoffId
from contextplane.ports.catalog import CatalogFailed, CatalogForeign, CatalogMissing

__all__ = [
    "PostgresCatalog",
    "PostgresHandoffIndex",
    "PostgresObjectIndex",
    "PostgresPackIndex",
    "PostgresStreams",
    "PostgresTransaction",
]

_TRIGRAM = 3
_MAX_MATCH = 64
"""At most this many characters of a query are looked up in the index; the rest is compared row by row."""
_ROWS_AT_ONCE = 4096
_STORE_ID = re.compile(r"store_([0-9a-f]{16})")
_SYNCHRONOUS = {"crash": "off", "power_cut": "on"}
_SIGNED_OFFSET = 1 << 63
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_STREAMS_WITH_GAPS = (
    "SELECT stream FROM event GROUP BY stream HAVING count(*) <> max(seq) OR min(seq) <> 1 ORDER BY stream"
)
# One index lookup per stream: the cost does not grow with the number of events.
_STREAM_NAMES = """
  WITH RECURSIVE found(stream) AS (
    (SELECT stream FROM event WHERE stream >= ? ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (SELECT event.stream FROM event WHERE event.stream > found.stream ORDER BY event.stream LIMIT 1)
    FROM found WHERE starts_with(found.stream, ?)
  )
  SELECT stream FROM found WHERE starts_with(stream, ?)
"""


class PostgresHandoffIndex(SqlHandoffIndex):
    """The `HandoffIndex` port in PostgreSQL; trigrams of the text are a column."""

    def put(self, row: HandoffRow, *, tags: Sequence[str] = ()) -> None:
        searched = row.searched_text(tags)
        self.remove(row.id)
        self._db.execute(
            f"INSERT INTO handoff ({HANDOFF_COLUMNS}, searched, trigrams)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::text[])",
            (*handoff_values(row), searched, sorted(set(_trigrams(searched)))),
        )

    def remove(self, handoff_id: HandoffId) -> None:
        self._db.execute("DELETE FROM handoff WHERE id = ?", (handoff_id.text,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def offset_clause(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "OFFSET ?", (offset,)

    def deadline_source(self) -> str:
        return "handoff"

    def filter_query(self, handoff_filter: HandoffFilter) -> tuple[str, str, list[object]]:
        where, values = filter_conditions(handoff_filter)
        if handoff_filter.query:
            query = handoff_filter.query.casefold()
            if len(query) >= _TRIGRAM:
                where += " AND trigrams @> ?::text[]"
                values.append(_trigrams(query[:_MAX_MATCH]))
            # A row may hold all trigrams and not the query: the index only narrows the search.
            where += " AND strpos(searched, ?) > 0"
            values.append(query)
        return "handoff", where, values


def _trigrams(text: str) -> list[str]:
    return [text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)]


class PostgresObjectIndex(SqlObjectIndex):
    """The `ObjectIndex` port in PostgreSQL."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, strpos(name, '/'))"
    NOT_REACHED: ClassVar[str] = "NOT EXISTS (SELECT 1 FROM reached WHERE reached.digest = object.digest)"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        remaining = iter(blobs)
        # Many in one statement, each once: a statement may not change a row twice.
        while sizes := {digest.hex: size for digest, size in islice(remaining, _ROWS_AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT digest, ?, size, TRUE FROM unnest(?::text[], ?::bigint[]) AS blob(digest, size)"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE object.kind = excluded.kind AND object.size <> excluded.size",
                (BLOB, list(sizes), list(sizes.values())),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while batch := list(islice(edges, _ROWS_AT_ONCE)):
            self._db.execute(
                "INSERT INTO edge (source, position, role, target)"
                " SELECT ?, ? + ordinality - 1, role, target"
                " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS new(role, target, ordinality)",
                (source, position, [role for role, _ in batch], [target.hex for _, target in batch]),
            )
            position += len(batch)


class PostgresPackIndex(SqlPackIndex):
    """The `PackIndex` port in PostgreSQL."""

    TOOLS: ClassVar[str] = "ARRAY(SELECT tool FROM pack_tool WHERE pack_tool.number = pack.number ORDER BY tool)"

    def decode_tools(self, value: list[str]) -> tuple[str, ...]:
        return tuple(value)


class PostgresStreams(SqlStreams):
    """The `Streams` port in PostgreSQL."""

    def names(self, prefix: str = "") -> Iterator[str]:
        for (stream,) in self._db.rows(_STREAM_NAMES, (prefix, prefix, prefix)):
            yield stream


class PostgresTransaction:
    """The indexes of one transaction. None of them works after its end."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.streams = PostgresStreams(connection)
        self.objects = PostgresObjectIndex(connection)
        self.marks = SqlMarks(connection)
        self.packs = PostgresPackIndex(connection)
        self.texts = PostgresTextIndex(connection)
        self.handoffs = PostgresHandoffIndex(connection)
        self.pending = SqlPending(connection)


class PostgresCatalog:
    """The `Catalog` port on a PostgreSQL schema. One connection, not for two threads at once.

    A connection that was lost between two transactions is replaced without an error. One that is lost within a
    transaction ends it: none of it took effect, and the next transaction connects again.
    """

    def __init__(self, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._url = url
        self._place = display_url(url)
        self._store_id = store_id
        self._schema_name, self._lock_number = _schema_and_lock(store_id, self._place)
        self._set_search_path = f"SET LOCAL search_path = {self._schema_name}, pg_temp"
        self._busy_millis = int(busy_seconds * 1000)
        self._db: DriverConnection = connect(url)
        self._schema = 0

    @classmethod
    def create(cls, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> tuple["PostgresCatalog", str]:
        """Create or open the catalog of this store; return it and the identity it has."""
        catalog = cls(url, store_id, busy_seconds=busy_seconds)
        with _close_on_error(catalog), catalog_errors(catalog._place):
            with catalog._write_transaction("power_cut"):
                catalog._schema = migrate(catalog._db, catalog._schema_name, at=catalog._place)
                catalog._db.execute(
                    "INSERT INTO identity SELECT %s WHERE NOT EXISTS (SELECT 1 FROM identity)", (store_id,)
                )
            return catalog, catalog._identity()

    @classmethod
    def open(cls, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> "PostgresCatalog":
        """Open the catalog of exactly this store. A missing or foreign one is refused, never created."""
        catalog = cls(url, store_id, busy_seconds=busy_seconds)
        with _close_on_error(catalog), catalog_errors(catalog._place):
            if not catalog_exists(catalog._db, catalog._schema_name):
                raise CatalogMissing(
                    f"this store has an identity, but this database has no schema {catalog._schema_name}",
                    at=catalog._place,
                    hint=f"check CTX_DATABASE_URL, or {RESTORE_HINT}",
                )
            if catalog._identity() != store_id:
                raise CatalogForeign(
                    "this catalog belongs to another store", at=catalog._place, hint="restore the right one"
                )
            catalog._schema = schema_version(catalog._db, catalog._schema_name)
            refuse_newer(catalog._schema, at=catalog._place)
            if catalog._schema < len(migrations()):
                with catalog._write_transaction("power_cut"):
                    catalog._schema = migrate(catalog._db, catalog._schema_name, at=catalog._place)
            return catalog

    @property
    def schema(self) -> int:
        return self._schema

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        # PostgreSQL takes the snapshot at the first read, so read here.
        with (
            catalog_errors(self._place),
            self._rollback_transaction(f"{_BEGIN_READ}; {self._set_search_path}; SELECT 1 FROM identity") as connection,
        ):
            yield PostgresTransaction(connection)

    @contextmanager
    def write(self, *, survives: Durability = "power_cut") -> Iterator[PostgresTransaction]:
        with catalog_errors(self._place), self._write_transaction(survives) as connection:
            yield PostgresTransaction(connection)

    def tables(self) -> tuple[Table, ...]:
        with (
            catalog_errors(self._place),
            self._rollback_transaction(f"{_BEGIN_READ}; {self._set_search_path}") as connection,
        ):
            rows = connection.execute("SELECT name, role, note FROM catalog_table ORDER BY role DESC, name")
            return tuple(Table(name=name, role=role, note=note) for name, role, note in rows)

    def problems(self) -> Iterator[str]:
        with catalog_errors(self._place), self._rollback_transaction(f"BEGIN; {self._set_search_path}"):
            yield from schema_problems(self._db, self._schema_name)
        with (
            catalog_errors(self._place),
            self._rollback_transaction(f"{_BEGIN_READ}; {self._set_search_path}") as connection,
        ):
            for (stream,) in connection.rows(_STREAMS_WITH_GAPS):
                yield f"stream {stream!r} has a gap"

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _write_transaction(self, survives: Durability) -> Iterator[PostgresConnection]:
        """Wait for the write lock of this store, then run a transaction that commits at its end."""
        self._begin(
            f"BEGIN ISOLATION LEVEL READ COMMITTED; {self._set_search_path};"
            f" SET LOCAL synchronous_commit = {_SYNCHRONOUS[survives]}; SET LOCAL lock_timeout = {self._busy_millis};"
            f" SELECT pg_advisory_xact_lock({self._lock_number}); SET LOCAL lock_timeout = 0"
        )
        connection = PostgresConnection(self._db)
        try:
            yield connection
            connection.end()
            self._commit()
        finally:
            connection.end()
            self._roll_back()

    @contextmanager
    def _rollback_transaction(self, begin: str) -> Iterator[PostgresConnection]:
        """Run a transaction that is rolled back at its end."""
        self._begin(begin)
        connection = PostgresConnection(self._db)
        try:
            yield connection
        finally:
            connection.end()
            self._roll_back()

    def _begin(self, statements: str) -> None:
        """Begin a transaction, on a new connection when the old one is lost."""
        if self._db.closed:
            self._db = connect(self._url)
        if self._db.info.transaction_status != TransactionStatus.IDLE:
            # The server would continue the open transaction, and its end would end both.
            raise CatalogFailed("started within another transaction", hint="this is a defect of the caller")
        try:
            self._db.execute(statements.encode())
        except psycopg.Error as error:
            self._roll_back()
            if not is_connection_lost(error):
                raise
            self._db.close()
            self._db = connect(self._url)
            self._db.execute(statements.encode())

    def _commit(self) -> None:
        if self._db.info.transaction_status == TransactionStatus.INERROR:
            # The server would roll back at COMMIT without an error.
            raise CatalogFailed("a statement of this transaction failed, so nothing of it happened", at=self._place)
        try:
            self._db.execute("COMMIT")
        except psycopg.Error as error:
            if not is_connection_lost(error):
                raise
            raise CatalogFailed(
                "the database went out of reach while it committed: whether that happened is not known",
                at=self._place,
                hint="check the current state before you try again",
            ) from error

    def _roll_back(self) -> None:
        """Roll back an open transaction. A lost connection has none; the next transaction makes a new one."""
        if self._db.closed or self._db.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            self._db.execute("ROLLBACK")
        except psycopg.Error:
            self._db.close()

    def _identity(self) -> str:
        row = self._db.execute(f"SELECT store_id FROM {self._schema_name}.identity".encode()).fetchone()
        return str(row[0]) if row else ""


def _schema_and_lock(store_id: str, at: str) -> tuple[str, int]:
    """Return the name of the schema for a store, and the number of its write lock."""
    match = _STORE_ID.fullmatch(store_id)
    if match is None:
        raise CatalogFailed(f"not the id of a store: {store_id!r}", at=at, hint="restore config.json from a copy")
    return f"ctx_{match[1]}", int(match[1], 16) - _SIGNED_OFFSET


@contextmanager
def _close_on_error(catalog: PostgresCatalog) -> Iterator[None]:
    try:
        yield
    except BaseException:
        catalog.close()
        raise
