"""Connections to a PostgreSQL catalog, its migrations, and the translation of PostgreSQL's errors.

Every connection is set up the same way. The schema is a list of numbered SQL files that run in order on open; a
catalog newer than the files is refused.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

import psycopg
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrDumper, TextLoader

from contextplane.adapters.sql.core import Migration, list_migrations
from contextplane.errors import ContextPlaneError, Family
from contextplane.ports.catalog import CatalogBusy, CatalogCorrupt, CatalogFailed, CatalogReadOnly, SchemaTooNew
from contextplane.ports.objects import StorageFull

__all__ = [
    "BUSY_SECONDS",
    "RESTORE_HINT",
    "DatabaseUrlInvalid",
    "DriverConnection",
    "PostgresConnection",
    "catalog_errors",
    "catalog_exists",
    "connect",
    "display_url",
    "is_connection_lost",
    "migrate",
    "migrations",
    "refuse_newer",
    "schema_problems",
    "schema_version",
]

BUSY_SECONDS = 10.0
"""How long a writer waits for the lock before it gives up."""

RESTORE_HINT = "restore this database from a backup"

DriverConnection = psycopg.Connection[tuple[Any, ...]]

_SCHEMES = ("postgresql://", "postgres://")
_CONNECT_SECONDS = 10
_ROWS_AT_ONCE = 256
# A machine that vanished while it held the lock does not block others for hours. Local sockets ignore it.
_KEEPALIVE = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"

_BUSY = frozenset({"55P03", "40P01", "40001"})
_READ_ONLY = frozenset({"25006", "42501"})
_FULL = frozenset({"53100"})
# A missing table, for example, or a row that breaks a constraint: no statement of this program causes these in a sound
# catalog.
_CORRUPT = frozenset({"42P01", "42703", "42883", "3F000", "XX001", "XX002"})
_CONSTRAINT = "23"
_REINDEX_HINT = f"'ctx fsck --rebuild' makes the index again; where that does not help, {RESTORE_HINT}"
_LOST = frozenset({"57P01", "57P02", "57P03", "25P03"})


class DatabaseUrlInvalid(ContextPlaneError):
    """`CTX_DATABASE_URL` is not the address of a PostgreSQL database."""

    code: ClassVar[str] = "database_url_invalid"
    family: ClassVar[Family] = "usage"


class _TextDumper(StrDumper):
    """Writes NUL, which PostgreSQL cannot store in a text, as two characters that sort the same way."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or "\1" in obj:
            obj = obj.replace("\1", "\1\3").replace("\0", "\1\2")
        return super().dump(obj)


class _TextLoader(TextLoader):
    """Reads what `_TextDumper` wrote."""

    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        if isinstance(text, str) and "\1" in text:
            return text.replace("\1\2", "\0").replace("\1\3", "\1")
        return text


class PostgresConnection:
    """The `SqlConnection` of PostgreSQL. After `end` every call fails with `CatalogFailed`."""

    def __init__(self, db: DriverConnection) -> None:
        self._db: DriverConnection | None = db
        self._cursors = 0

    @property
    def recovery_hint(self) -> str:
        return RESTORE_HINT

    def execute(self, sql: str, values: Sequence[object] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._open().execute(_driver_sql(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._open().cursor() as cursor:
            cursor.executemany(_driver_sql(sql), rows)

    def single_row(self, sql: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """Return the row of a statement that always has exactly one."""
        row = self.execute(sql, values).fetchone()
        if row is None:
            raise CatalogCorrupt("a statement that always has a row had none", hint=RESTORE_HINT)
        return row

    def rows(
        self, sql: str, values: Sequence[object] = (), *, at_once: int = _ROWS_AT_ONCE
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement through a cursor of the server, `at_once` at a time.

        The server closes an abandoned cursor with the transaction, so dropping the iterator costs no call.
        """
        self._cursors += 1
        name = f"rows_{self._cursors}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values)
        while batch := self.execute(f"FETCH {at_once} FROM {name}").fetchall():
            for row in batch:
                yield row
                self._open()
        self.execute(f"CLOSE {name}")

    def end(self) -> None:
        self._db = None

    def _open(self) -> DriverConnection:
        if self._db is None:
            raise CatalogFailed("used after the end of its transaction", hint="this is a defect of the caller")
        return self._db


def _driver_sql(sql: str) -> bytes:
    """Replace `?` with the driver's `%s`. No statement of ours has a question mark in a literal."""
    return sql.replace("?", "%s").encode()


def connect(url: str) -> DriverConnection:
    """Connect in autocommit mode: a statement is its own transaction until one is begun."""
    at = display_url(url)
    with catalog_errors(at):
        db: DriverConnection = psycopg.Connection.connect(
            url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_SECONDS, client_encoding="utf8"
        )
        try:
            _set_up(db, at)
        except BaseException:
            db.close()
            raise
    return db


def _set_up(db: DriverConnection, at: str) -> None:
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CatalogFailed(f"the database keeps its texts as {encoding}", at=at, hint="make one with ENCODING 'UTF8'")
    db.execute(_KEEPALIVE)
    db.adapters.register_dumper(str, _TextDumper)
    db.adapters.register_loader("text", _TextLoader)


def display_url(url: str) -> str:
    """Return the address of a database for messages: without password and options."""
    # Without the cause: the driver quotes the address, with its password.
    refusal = DatabaseUrlInvalid(
        "not the address of a PostgreSQL database",
        at="CTX_DATABASE_URL",
        hint="write postgresql://user@host/database, with special characters percent-encoded",
    )
    if not url.startswith(_SCHEMES):
        raise refusal
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise refusal from None
    host, port = parts.get("host") or "", parts.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"


@contextmanager
def catalog_errors(at: str) -> Iterator[None]:
    """Turn an error of PostgreSQL into one with a code, a place and a hint."""
    try:
        yield
    except psycopg.Error as error:
        raise _catalog_error(error, at) from error


def is_connection_lost(error: psycopg.Error) -> bool:
    """Whether an error means that the connection is lost, not only that the statement failed."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state in _LOST or state.startswith("08")


def _catalog_error(error: psycopg.Error, at: str) -> ContextPlaneError:
    state, message = error.sqlstate or "", _server_message(error)
    if is_connection_lost(error):
        return CatalogFailed(
            f"the database is out of reach, and what was not committed did not happen: {message}",
            at=at,
            hint="check that the server runs, then do it again",
        )
    if state in _BUSY:
        return CatalogBusy("another process is writing to the catalog", at=at, hint="try again when it has finished")
    if state in _READ_ONLY:
        return CatalogReadOnly(
            f"cannot be written: {message}", at=at, hint="check the server, and the rights of this user"
        )
    if state in _FULL:
        return StorageFull(
            f"no room to write: {message}", at=at, hint="free some space, then run the same command again"
        )
    if state in _CORRUPT or state.startswith(_CONSTRAINT):
        hint = _REINDEX_HINT if state.startswith(_CONSTRAINT) else RESTORE_HINT
        return CatalogCorrupt(f"not a sound catalog: {message}", at=at, hint=hint)
    return CatalogFailed(message, at=at, hint="see the log of the database")


def _server_message(error: psycopg.Error) -> str:
    """Return the first line of the server's message: the other lines quote the statement."""
    return (error.diag.message_primary or str(error) or type(error).__name__).splitlines()[0]


_FRESH_SCHEMA = "ctx_plain"

# Every part of a schema with its definition. `{0}` replaces the name of the schema wherever it occurs.
_SCHEMA_PARTS = """
  WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s),
  parts(name, said) AS (
    SELECT 'column ' || c.relname || '.' || a.attname,
           concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attcollation)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'constraint ' || c.relname || '.' || o.conname, concat_ws(' ', pg_get_constraintdef(o.oid), o.convalidated)
    FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid WHERE o.connamespace = (SELECT oid FROM here)
    UNION ALL
    SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = %(schema)s
    UNION ALL
    SELECT 'trigger ' || c.relname || '.' || t.tgname, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = (SELECT oid FROM here) AND NOT t.tgisinternal
    UNION ALL
    SELECT 'rule ' || tablename || '.' || rulename, definition FROM pg_rules WHERE schemaname = %(schema)s
    UNION ALL
    SELECT 'function ' || p.proname, pg_get_functiondef(p.oid)
    FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM here)
  )
  SELECT name, replace(said, %(schema)s, '{0}') FROM parts
"""


@cache
def migrations() -> tuple[Migration, ...]:
    return list_migrations(os.path.join(os.path.dirname(__file__), "migrations"))


def catalog_exists(db: DriverConnection, schema: str) -> bool:
    """Whether the schema holds a catalog: it must have the table `schema_version`."""
    row = db.execute("SELECT to_regclass(%s || '.schema_version') IS NOT NULL", (schema,)).fetchone()
    return bool(row and row[0])


def schema_version(db: DriverConnection, schema: str) -> int:
    if not catalog_exists(db, schema):
        return 0
    row = db.execute(f"SELECT version FROM {schema}.schema_version".encode()).fetchone()
    return int(row[0]) if row else 0


def refuse_newer(current: int, *, at: str) -> None:
    if current > len(migrations()):
        raise SchemaTooNew(
            f"the catalog has schema {current}, this contextplane knows {len(migrations())}",
            at=at,
            hint="upgrade contextplane",
        )


def migrate(db: DriverConnection, schema: str, *, at: str) -> int:
    """Migrate the schema to the newest version within the open transaction; return the version.

    The caller holds the write lock, and `schema` comes first in the search path.
    """
    current = schema_version(db, schema)
    refuse_newer(current, at=at)
    if current == 0:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    _run_migrations(db, current, len(migrations()))
    return len(migrations())


def _run_migrations(db: DriverConnection, current: int, goal: int) -> None:
    for step in migrations()[current:goal]:
        with open(step.path, "rb") as file:
            db.execute(file.read())
        db.execute("UPDATE schema_version SET version = %s", (step.number,))


def schema_problems(db: DriverConnection, schema: str) -> Iterator[str]:
    """List the differences from the schema that the migrations create: a missing trigger, a foreign one.

    The migrations run in a second schema, within the open transaction, which is never committed.
    """
    actual, goal = _schema_parts(db, schema), schema_version(db, schema)
    db.execute(f"CREATE SCHEMA {_FRESH_SCHEMA}; SET LOCAL search_path = {_FRESH_SCHEMA}, pg_temp".encode())
    _run_migrations(db, 0, goal)
    expected = _schema_parts(db, _FRESH_SCHEMA)
    for name in sorted(expected.keys() | actual.keys()):
        if name not in actual:
            yield f"schema: {name} is gone"
        elif name not in expected:
            yield f"schema: {name} is not ours"
        elif expected[name] != actual[name]:
            yield f"schema: {name} was changed"


def _schema_parts(db: DriverConnection, schema: str) -> dict[str, str]:
    return {str(name): str(definition) for name, definition in db.execute(_SCHEMA_PARTS, {"schema": schema})}
