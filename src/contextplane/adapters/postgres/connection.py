"""One connection to the database, set up the same way every time, with PostgreSQL's errors turned into ours.

The schema as numbered SQL files, run in order on open. A catalog newer than the files is refused.
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

from contextplane.adapters.sql.core import Migration, steps_in
from contextplane.errors import ContextPlaneError, Family
from contextplane.ports.catalog import CatalogBusy, CatalogCorrupt, CatalogFailed, CatalogReadOnly, SchemaTooNew
from contextplane.ports.objects import StorageFull

__all__ = [
    "BUSY_SECONDS",
    "RESTORE",
    "Connection",
    "DatabaseUrlInvalid",
    "Live",
    "catalog_errors",
    "connect",
    "exists",
    "lost",
    "migrate",
    "migrations",
    "place_of",
    "refuse_newer",
    "schema_problems",
    "version_of",
]

BUSY_SECONDS = 10.0
"""How long a writer waits for its turn before it gives up."""

RESTORE = "restore this database from a backup"

Connection = psycopg.Connection[tuple[Any, ...]]

_SCHEMES = ("postgresql://", "postgres://")
_CONNECT_SECONDS = 10
_AT_ONCE = 256
# A machine that vanished while it had its turn holds up nobody for hours. Sockets of one machine ignore it.
_ALIVE = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"

_BUSY = frozenset({"55P03", "40P01", "40001"})
_READ_ONLY = frozenset({"25006", "42501"})
_FULL = frozenset({"53100"})
# A table that is not there, for example, or a row that does not fit to the others: nothing that we run can cause it in
# a catalog of ours.
_CORRUPT = frozenset({"42P01", "42703", "42883", "3F000", "XX001", "XX002"})
_CONSTRAINT = "23"
_ANEW = f"'ctx fsck --rebuild' makes the index anew; where that does not help, {RESTORE}"
_LOST = frozenset({"57P01", "57P02", "57P03", "25P03"})


class DatabaseUrlInvalid(ContextPlaneError):
    """`CTX_DATABASE_URL` is not the address of a PostgreSQL database."""

    code: ClassVar[str] = "database_url_invalid"
    family: ClassVar[Family] = "usage"


class _Text(StrDumper):
    """PostgreSQL keeps no NUL in a text. It is written as two characters, so that texts still sort the same way."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or "\1" in obj:
            obj = obj.replace("\1", "\1\3").replace("\0", "\1\2")
        return super().dump(obj)


class _TextBack(TextLoader):
    """The way back."""

    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        if isinstance(text, str) and "\1" in text:
            return text.replace("\1\2", "\0").replace("\1\3", "\1")
        return text


class Live:
    """A connection for the length of one transaction. Used after its end it fails, instead of writing on its own."""

    def __init__(self, db: Connection) -> None:
        self._db: Connection | None = db
        self._cursors = 0

    @property
    def way_out(self) -> str:
        return RESTORE

    def execute(self, sql: str, values: Sequence[object] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._open().execute(_spelled(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._open().cursor() as cursor:
            cursor.executemany(_spelled(sql), rows)

    def one(self, sql: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """The row of a statement that always has exactly one."""
        row = self.execute(sql, values).fetchone()
        if row is None:
            raise CatalogCorrupt("a statement that always has a row had none", hint=RESTORE)
        return row

    def rows(self, sql: str, values: Sequence[object] = (), *, at_once: int = _AT_ONCE) -> Iterator[tuple[Any, ...]]:
        """The rows of an answer that may be long: they stay with the server, and come some at a time.

        What is not asked for any more goes with the transaction: whoever drops an iterator causes no call.
        """
        self._cursors += 1
        name = f"rows_{self._cursors}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values)
        while some := self.execute(f"FETCH {at_once} FROM {name}").fetchall():
            for row in some:
                yield row
                self._open()
        self.execute(f"CLOSE {name}")

    def end(self) -> None:
        self._db = None

    def _open(self) -> Connection:
        if self._db is None:
            raise CatalogFailed("used after the end of its transaction", hint="this is a defect of the caller")
        return self._db


def _spelled(sql: str) -> bytes:
    """A statement as the driver takes it. None of ours has a question mark in a text."""
    return sql.replace("?", "%s").encode()


def connect(url: str) -> Connection:
    """Connect. Every statement is its own transaction until one is begun."""
    at = place_of(url)
    with catalog_errors(at):
        db: Connection = psycopg.Connection.connect(
            url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_SECONDS, client_encoding="utf8"
        )
        try:
            _set_up(db, at)
        except BaseException:
            db.close()
            raise
    return db


def _set_up(db: Connection, at: str) -> None:
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise CatalogFailed(f"the database keeps its texts as {encoding}", at=at, hint="make one with ENCODING 'UTF8'")
    db.execute(_ALIVE)
    db.adapters.register_dumper(str, _Text)
    db.adapters.register_loader("text", _TextBack)


def place_of(url: str) -> str:
    """The database as people may see it: no password, no option."""
    # Without the reason that the driver gives: it quotes the address, password and all.
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
    """Turn what PostgreSQL raises into an error with a code, a place and a way out."""
    try:
        yield
    except psycopg.Error as error:
        raise _translated(error, at) from error


def lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, not only this statement refused."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state in _LOST or state.startswith("08")


def _translated(error: psycopg.Error, at: str) -> ContextPlaneError:
    state, said = error.sqlstate or "", _said(error)
    if lost(error):
        return CatalogFailed(
            f"the database is out of reach, and what was not committed did not happen: {said}",
            at=at,
            hint="check that the server runs, then do it again",
        )
    if state in _BUSY:
        return CatalogBusy("another process is writing to the catalog", at=at, hint="try again when it has finished")
    if state in _READ_ONLY:
        return CatalogReadOnly(
            f"cannot be written: {said}", at=at, hint="check the server, and the rights of this user"
        )
    if state in _FULL:
        return StorageFull(f"no room to write: {said}", at=at, hint="free some space, then run the same command again")
    if state in _CORRUPT or state.startswith(_CONSTRAINT):
        hint = _ANEW if state.startswith(_CONSTRAINT) else RESTORE
        return CatalogCorrupt(f"not a sound catalog: {said}", at=at, hint=hint)
    return CatalogFailed(said, at=at, hint="the log of the database says more")


def _said(error: psycopg.Error) -> str:
    """The first line of what the server said: the rest quotes what was asked."""
    return (error.diag.message_primary or str(error) or type(error).__name__).splitlines()[0]


_PLAIN = "ctx_plain"

# Every part of a schema with what it says, in one list. `{0}` stands for the schema wherever its name occurs.
_PARTS = """
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
    return steps_in(os.path.join(os.path.dirname(__file__), "migrations"))


def exists(db: Connection, schema: str) -> bool:
    """Whether the catalog was made: a schema without the table that says its version is none of ours."""
    row = db.execute("SELECT to_regclass(%s || '.schema_version') IS NOT NULL", (schema,)).fetchone()
    return bool(row and row[0])


def version_of(db: Connection, schema: str) -> int:
    if not exists(db, schema):
        return 0
    row = db.execute(f"SELECT version FROM {schema}.schema_version".encode()).fetchone()
    return int(row[0]) if row else 0


def refuse_newer(have: int, *, at: str) -> None:
    if have > len(migrations()):
        raise SchemaTooNew(
            f"the catalog has schema {have}, this contextplane knows {len(migrations())}",
            at=at,
            hint="upgrade contextplane",
        )


def migrate(db: Connection, schema: str, *, at: str) -> int:
    """Bring the schema to the newest version within the transaction that is open; return the version.

    Whoever calls has its turn to write, and `schema` is where names without a schema are looked for and made.
    """
    have = version_of(db, schema)
    refuse_newer(have, at=at)
    if have == 0:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    _run(db, have, len(migrations()))
    return len(migrations())


def _run(db: Connection, have: int, goal: int) -> None:
    for step in migrations()[have:goal]:
        with open(step.path, "rb") as file:
            db.execute(file.read())
        db.execute("UPDATE schema_version SET version = %s", (step.number,))


def schema_problems(db: Connection, schema: str) -> Iterator[str]:
    """What differs from the schema that the migrations make: a trigger that is gone, or one that nobody of us wrote.

    The migrations run beside it, in the transaction that is open, which is never committed.
    """
    found, goal = _parts(db, schema), version_of(db, schema)
    db.execute(f"CREATE SCHEMA {_PLAIN}; SET LOCAL search_path = {_PLAIN}, pg_temp".encode())
    _run(db, 0, goal)
    wanted = _parts(db, _PLAIN)
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            yield f"schema: {name} is gone"
        elif name not in wanted:
            yield f"schema: {name} is not ours"
        elif wanted[name] != found[name]:
            yield f"schema: {name} was changed"


def _parts(db: Connection, schema: str) -> dict[str, str]:
    return {str(name): str(said) for name, said in db.execute(_PARTS, {"schema": schema})}
