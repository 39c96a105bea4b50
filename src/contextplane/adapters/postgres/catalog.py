"""The catalog in one schema of a PostgreSQL database: the `Catalog` port for several machines.

It hands out transactions and nothing more; each noun's SQL is in its own module.

The list of handoff packs in PostgreSQL: the `HandoffIndex` port on `handoff` and `handoff_tally`.

What objects are and what refers to them, in PostgreSQL: the `ObjectIndex` port.

The list of execution packs in PostgreSQL: the `PackIndex` port on `pack` and `pack_tool`.

Event streams in PostgreSQL: the `Streams` port on the table `event`.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar

import psycopg
from psycopg.pq import TransactionStatus

from contextplane.adapters.postgres.connection import (
    BUSY_SECONDS,
    RESTORE,
    Connection,
    Live,
    catalog_errors,
    connect,
    exists,
    lost,
    migrate,
    migrations,
    place_of,
    refuse_newer,
    schema_problems,
    version_of,
)
from contextplane.adapters.postgres.text_search import PostgresTextIndex
from contextplane.adapters.sql.core import SqlMarks, SqlPending, SqlStreams
from contextplane.adapters.sql.indexes import COLUMNS, SqlHandoffIndex, SqlObjectIndex, SqlPackIndex, bounds, values_of
from contextplane.model.catalog import BLOB, HandoffFilter, HandoffRow, Survives, Table
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
_MATCHED = 64
"""So many characters of a long text are looked up in the index; whether the rest follows is looked at one by one."""


class PostgresHandoffIndex(SqlHandoffIndex):
    """Lives within one transaction of the catalog."""

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        self._db.execute(
            f"INSERT INTO handoff ({COLUMNS}, searched, trigrams)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::text[])",
            (*values_of(row), row.searched, sorted(set(_trigrams(row.searched)))),
        )

    def remove(self, handoff_id: HandoffId) -> None:
        self._db.execute("DELETE FROM handoff WHERE id = ?", (handoff_id.text,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def all_after(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "OFFSET ?", (offset,)

    def by_deadline(self) -> str:
        return "handoff"

    def meant(self, wanted: HandoffFilter) -> tuple[str, str, list[object]]:
        where, values = bounds(wanted)
        if wanted.query:
            query = wanted.query.casefold()
            if len(query) >= _TRIGRAM:
                where += " AND trigrams @> ?::text[]"
                values.append(_trigrams(query[:_MATCHED]))
            # All parts of it may be there and not the whole: the index only says where to look.
            where += " AND strpos(searched, ?) > 0"
            values.append(query)
        return "handoff", where, values


def _trigrams(text: str) -> list[str]:
    return [text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)]


_AT_ONCE = 4096


class PostgresObjectIndex(SqlObjectIndex):
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, strpos(name, '/'))"
    NOT_REACHED: ClassVar[str] = "NOT EXISTS (SELECT 1 FROM reached WHERE reached.digest = object.digest)"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        left = iter(blobs)
        # Many in one statement, each once: a statement may not change a row twice.
        while some := {digest.hex: size for digest, size in islice(left, _AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT digest, ?, size, TRUE FROM unnest(?::text[], ?::bigint[]) AS blob(digest, size)"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE object.kind = excluded.kind AND object.size <> excluded.size",
                (BLOB, list(some), list(some.values())),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while some := list(islice(edges, _AT_ONCE)):
            self._db.execute(
                "INSERT INTO edge (source, position, role, target)"
                " SELECT ?, ? + ordinality - 1, role, target"
                " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS new(role, target, ordinality)",
                (source, position, [role for role, _ in some], [target.hex for _, target in some]),
            )
            position += len(some)


class PostgresPackIndex(SqlPackIndex):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str] = "ARRAY(SELECT tool FROM pack_tool WHERE pack_tool.number = pack.number ORDER BY tool)"

    def tools_in(self, value: list[str]) -> tuple[str, ...]:
        return tuple(value)


# One step down the key per stream: the cost does not grow with the number of events.
_NAMES = """
  WITH RECURSIVE found(stream) AS (
    (SELECT stream FROM event WHERE stream >= ? ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (SELECT event.stream FROM event WHERE event.stream > found.stream ORDER BY event.stream LIMIT 1)
    FROM found WHERE starts_with(found.stream, ?)
  )
  SELECT stream FROM found WHERE starts_with(stream, ?)
"""


class PostgresStreams(SqlStreams):
    """Lives within one transaction of the catalog."""

    def names(self, prefix: str = "") -> Iterator[str]:
        for (stream,) in self._db.rows(_NAMES, (prefix, prefix, prefix)):
            yield stream


_STORE = re.compile(r"store_([0-9a-f]{16})")
_SYNCHRONOUS = {"crash": "off", "power_cut": "on"}
_HALF = 1 << 63
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_GAPS = "SELECT stream FROM event GROUP BY stream HAVING count(*) <> max(seq) OR min(seq) <> 1 ORDER BY stream"


class PostgresTransaction:
    """One transaction on one connection; nothing of it works after its end."""

    def __init__(self, live: Live) -> None:
        self.streams = PostgresStreams(live)
        self.objects = PostgresObjectIndex(live)
        self.marks = SqlMarks(live)
        self.packs = PostgresPackIndex(live)
        self.texts = PostgresTextIndex(live)
        self.handoffs = PostgresHandoffIndex(live)
        self.pending = SqlPending(live)


class PostgresCatalog:
    """A connection of its own for whoever opens it; not for two threads at once.

    A connection that was lost between two transactions is made again, unnoticed. One that is lost within a transaction
    ends it: nothing of it happened, and the next one connects again.
    """

    def __init__(self, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._url = url
        self._at = place_of(url)
        self._store_id = store_id
        self._name, self._turn = _schema_of(store_id, self._at)
        self._here = f"SET LOCAL search_path = {self._name}, pg_temp"
        self._busy = int(busy_seconds * 1000)
        self._db: Connection = connect(url)
        self._schema = 0

    @classmethod
    def create(cls, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> tuple["PostgresCatalog", str]:
        """Make the catalog of this store, or open the one that is there; return the identity it has."""
        catalog = cls(url, store_id, busy_seconds=busy_seconds)
        with _closing_on_error(catalog), catalog_errors(catalog._at):
            with catalog._turn_taken("power_cut"):
                catalog._schema = migrate(catalog._db, catalog._name, at=catalog._at)
                catalog._db.execute(
                    "INSERT INTO identity SELECT %s WHERE NOT EXISTS (SELECT 1 FROM identity)", (store_id,)
                )
            return catalog, catalog._identity()

    @classmethod
    def open(cls, url: str, store_id: str, *, busy_seconds: float = BUSY_SECONDS) -> "PostgresCatalog":
        """Open the catalog of exactly this store. An absent or foreign one is refused, never made anew."""
        catalog = cls(url, store_id, busy_seconds=busy_seconds)
        with _closing_on_error(catalog), catalog_errors(catalog._at):
            if not exists(catalog._db, catalog._name):
                raise CatalogMissing(
                    f"this store has an identity, but this database has no schema {catalog._name}",
                    at=catalog._at,
                    hint=f"check CTX_DATABASE_URL, or {RESTORE}",
                )
            if catalog._identity() != store_id:
                raise CatalogForeign(
                    "this catalog belongs to another store", at=catalog._at, hint="restore the right one"
                )
            catalog._schema = version_of(catalog._db, catalog._name)
            refuse_newer(catalog._schema, at=catalog._at)
            if catalog._schema < len(migrations()):
                with catalog._turn_taken("power_cut"):
                    catalog._schema = migrate(catalog._db, catalog._name, at=catalog._at)
            return catalog

    @property
    def schema(self) -> int:
        return self._schema

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        # The snapshot is taken by the first read, so take it here.
        with catalog_errors(self._at), self._undone(f"{_READING}; {self._here}; SELECT 1 FROM identity") as live:
            yield PostgresTransaction(live)

    @contextmanager
    def write(self, *, survives: Survives = "power_cut") -> Iterator[PostgresTransaction]:
        with catalog_errors(self._at), self._turn_taken(survives) as live:
            yield PostgresTransaction(live)

    def tables(self) -> tuple[Table, ...]:
        with catalog_errors(self._at), self._undone(f"{_READING}; {self._here}") as live:
            rows = live.execute("SELECT name, role, note FROM catalog_table ORDER BY role DESC, name")
            return tuple(Table(name=name, role=role, note=note) for name, role, note in rows)

    def problems(self) -> Iterator[str]:
        with catalog_errors(self._at), self._undone(f"BEGIN; {self._here}"):
            yield from schema_problems(self._db, self._name)
        with catalog_errors(self._at), self._undone(f"{_READING}; {self._here}") as live:
            for (stream,) in live.rows(_GAPS):
                yield f"stream {stream!r} has a gap"

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _turn_taken(self, survives: Survives) -> Iterator[Live]:
        """A transaction that begins when no other writer of this store has its turn, and that commits at its end."""
        self._begin(
            f"BEGIN ISOLATION LEVEL READ COMMITTED; {self._here};"
            f" SET LOCAL synchronous_commit = {_SYNCHRONOUS[survives]}; SET LOCAL lock_timeout = {self._busy};"
            f" SELECT pg_advisory_xact_lock({self._turn}); SET LOCAL lock_timeout = 0"
        )
        live = Live(self._db)
        try:
            yield live
            live.end()
            self._commit()
        finally:
            live.end()
            self._roll_back()

    @contextmanager
    def _undone(self, beginning: str) -> Iterator[Live]:
        """A transaction of which nothing stays."""
        self._begin(beginning)
        live = Live(self._db)
        try:
            yield live
        finally:
            live.end()
            self._roll_back()

    def _begin(self, statements: str) -> None:
        """Begin, on a new connection when the old one is gone: nothing of this transaction happened on it."""
        if self._db.closed:
            self._db = connect(self._url)
        if self._db.info.transaction_status != TransactionStatus.IDLE:
            # The server would go on within the open one, and end both at once.
            raise CatalogFailed("begun within another transaction", hint="this is a defect of the caller")
        try:
            self._db.execute(statements.encode())
        except psycopg.Error as error:
            self._roll_back()
            if not lost(error):
                raise
            self._db.close()
            self._db = connect(self._url)
            self._db.execute(statements.encode())

    def _commit(self) -> None:
        if self._db.info.transaction_status == TransactionStatus.INERROR:
            # The server would answer COMMIT with a rollback, and call that no error.
            raise CatalogFailed("a statement of this transaction failed, so nothing of it happened", at=self._at)
        try:
            self._db.execute("COMMIT")
        except psycopg.Error as error:
            if not lost(error):
                raise
            raise CatalogFailed(
                "the database went out of reach while it committed: whether that happened is not known",
                at=self._at,
                hint="look at what is there before you do it again",
            ) from error

    def _roll_back(self) -> None:
        """End what is still open. A connection that is gone has nothing open, and the next transaction makes one."""
        if self._db.closed or self._db.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            self._db.execute("ROLLBACK")
        except psycopg.Error:
            self._db.close()

    def _identity(self) -> str:
        row = self._db.execute(f"SELECT store_id FROM {self._name}.identity".encode()).fetchone()
        return str(row[0]) if row else ""


def _schema_of(store_id: str, at: str) -> tuple[str, int]:
    """The schema that holds the catalog of a store, and the number of the lock that its writers take turns with."""
    match = _STORE.fullmatch(store_id)
    if match is None:
        raise CatalogFailed(f"not the id of a store: {store_id!r}", at=at, hint="restore config.json from a copy")
    return f"ctx_{match[1]}", int(match[1], 16) - _HALF


@contextmanager
def _closing_on_error(catalog: PostgresCatalog) -> Iterator[None]:
    try:
        yield
    except BaseException:
        catalog.close()
        raise
