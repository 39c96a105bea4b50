"""Connections to the catalog's SQLite file, its migrations, and the translation of SQLite's errors.

Every connection is set up the same way. The schema is a list of numbered SQL files that run in order on open; a
catalog newer than the files is refused.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from contextplane.adapters.sql.core import Migration, list_migrations
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogBusy, CatalogCorrupt, CatalogFailed, CatalogReadOnly, SchemaTooNew
from contextplane.ports.objects import StorageFull

__all__ = [
    "BUSY_SECONDS",
    "MEMORY",
    "SqliteConnection",
    "catalog_errors",
    "connect",
    "file_uri",
    "migrate",
    "migrations",
    "schema_problems",
    "schema_version",
]

BUSY_SECONDS = 10.0
"""How long a writer waits for the lock before it gives up."""

_WAL = "PRAGMA journal_mode = WAL"
_EXCLUSIVE = "PRAGMA locking_mode = EXCLUSIVE"
_QUERY_ONLY = "PRAGMA query_only = ON"
_REBUILD_HINT = "'ctx fsck --rebuild' saves what can be read"
_REINDEX_HINT = "'ctx fsck --rebuild' makes the index again"
# A missing table, for example, or a row that breaks a constraint: no statement of this program causes these in a sound
# catalog.
_CORRUPT_CODES = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}
)
_RETRY_SECONDS = 0.02
_PROBE_BYTES = 64 << 10
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

MEMORY = ":memory:"
"""Instead of a path: a catalog in memory, for a store that cannot be written."""


class SqliteConnection:
    """The `SqlConnection` of SQLite. After `end` every call fails with `CatalogFailed`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db: sqlite3.Connection | None = db

    @property
    def recovery_hint(self) -> str:
        return _REBUILD_HINT

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        return self._open().execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> sqlite3.Cursor:
        return self._open().executemany(sql, rows)

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        return self.execute(sql, values)

    def single_row(self, sql: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401  a row is what its statement says
        return self.execute(sql, values).fetchone()

    def end(self) -> None:
        self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise CatalogFailed("used after the end of its transaction", hint="this is a defect of the caller")
        return self._db


def connect(path: str, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open or create a file in write-ahead mode; where it cannot be written, open it read-only."""
    with catalog_errors(path):
        if path == MEMORY:
            return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if _is_writable(path):
            return _open_writable(path, busy_seconds)
        try:
            return _open(file_uri(path, "mode=ro"), busy_seconds, _QUERY_ONLY)
        except sqlite3.OperationalError:
            # Readers of a write-ahead database share a second file next to it. Where that file cannot be made, the
            # database can be read as immutable, but only when no log holds newer pages.
            log = f"{path}-wal"
            if os.path.exists(log) and os.path.getsize(log):
                raise
            return _open(file_uri(path, "mode=ro&immutable=1"), busy_seconds, _QUERY_ONLY)


def _open_writable(path: str, busy_seconds: float) -> sqlite3.Connection:
    try:
        return _retry_while_busy(lambda: _open(file_uri(path, "mode=rwc"), busy_seconds, _WAL), busy_seconds)
    except sqlite3.OperationalError as error:
        if _primary(error) != sqlite3.SQLITE_IOERR:
            raise
        # Processes that have it open share a second file next to it. On a full disk that file cannot be made, and an
        # exclusive connection needs none: everything can be read, and a command that frees space can record it.
        return _retry_while_busy(lambda: _open(file_uri(path, "mode=rw"), busy_seconds, _EXCLUSIVE, _WAL), busy_seconds)


def _retry_while_busy(attempt: Callable[[], sqlite3.Connection], seconds: float) -> sqlite3.Connection:
    """Retry while another process opens or closes the file: there SQLite does not wait by itself."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(_RETRY_SECONDS)


def _open(uri: str, busy_seconds: float, *modes: str) -> sqlite3.Connection:
    # Threads may share it one after another: a recorder in an agent loop, for example.
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy_seconds, check_same_thread=False)
    try:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        for mode in modes:
            db.execute(mode).fetchone()
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _is_writable(path: str) -> bool:
    folder = os.path.dirname(path) or "."
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def file_uri(path: str, options: str) -> str:
    """Return the `file:` URI of a path, with the characters escaped that have a meaning in a URI."""
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}?{options}"


@contextmanager
def catalog_errors(path: str) -> Iterator[None]:
    """Turn an error of SQLite into one with a code, a place and a hint."""
    try:
        yield
    except sqlite3.Error as error:
        raise _catalog_error(error, path) from error


def _catalog_error(error: sqlite3.Error, path: str) -> ContextPlaneError:
    primary = _primary(error)
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return CatalogBusy("another process is writing to the catalog", at=path, hint="try again when it has finished")
    if primary in _CORRUPT_CODES:
        hint = _REINDEX_HINT if primary == sqlite3.SQLITE_CONSTRAINT else _REBUILD_HINT
        return CatalogCorrupt(f"not a sound catalog: {error}", at=path, hint=hint)
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return CatalogReadOnly(f"cannot be written: {error}", at=path, hint="check the mount and the permissions")
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and _is_disk_full(path)):
        return StorageFull(
            f"no room to write: {error}", at=path, hint="free some space, then run the same command again"
        )
    if primary == sqlite3.SQLITE_CANTOPEN and os.path.isdir(path):
        return CatalogCorrupt("a folder is in its place", at=path, hint=_REBUILD_HINT)
    return CatalogFailed(f"{error}", at=path, hint="check the disk, and the permissions of this file and its folder")


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _is_disk_full(path: str) -> bool:
    """Whether the disk is full or a file-size limit is reached: SQLite does not say why a write failed.

    Found out by writing a few bytes to another file, behind the size of the largest.
    """
    sizes = [os.path.getsize(name) for name in (path, f"{path}-wal") if os.path.isfile(name)]
    probe = f"{path}.{os.getpid()}"
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return error.errno in _DISK_FULL
    try:
        os.lseek(fd, max(sizes, default=0), os.SEEK_SET)
        unwritten = memoryview(bytes(_PROBE_BYTES))
        while unwritten:
            unwritten = unwritten[os.write(fd, unwritten) :]
    except OSError as error:
        return error.errno in _DISK_FULL
    finally:
        os.close(fd)
        with suppress(OSError):
            os.unlink(probe)
    return False


@cache
def migrations() -> tuple[Migration, ...]:
    return list_migrations(os.path.join(os.path.dirname(__file__), "migrations"))


def schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, *, at: str, upto: int | None = None) -> int:
    """Migrate the schema to `upto` (default: the newest) and return the version.

    Each migration runs in its own transaction.
    """
    steps = migrations()
    newest = len(steps)
    current = schema_version(db)
    if current > newest:
        raise SchemaTooNew(
            f"the catalog has schema {current}, this contextplane knows {newest}", at=at, hint="upgrade contextplane"
        )
    goal = newest if upto is None else upto
    if current < goal and db.execute("PRAGMA query_only").fetchone()[0]:
        raise CatalogReadOnly(
            f"schema {current} must be brought to {goal}, which needs writing", at=at, hint="make it writable once"
        )
    for step in steps[current:goal]:
        _run_migration(db, step)
    return max(current, goal)


def schema_problems(db: sqlite3.Connection) -> Iterator[str]:
    """List the differences from the schema that the migrations create: a missing trigger, a foreign one."""
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(fresh, at=":memory:", upto=schema_version(db))
        expected, actual = _schema(fresh), _schema(db)
    finally:
        fresh.close()
    for name in sorted(expected.keys() | actual.keys()):
        if name not in actual:
            yield f"schema: {name} is gone"
        elif name not in expected:
            yield f"schema: {name} is not ours"
        elif expected[name] != actual[name]:
            yield f"schema: {name} was changed"


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    rows = db.execute(
        "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
    )
    return dict(rows.fetchall())


def _run_migration(db: sqlite3.Connection, step: Migration) -> None:
    with open(step.path, encoding="utf-8") as file:
        script = file.read()
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have run this migration while we waited for the lock.
        if schema_version(db) < step.number:
            for statement in _split_statements(script):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {step.number}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk ends it by itself
            db.execute("ROLLBACK")
        raise


def _split_statements(script: str) -> list[str]:
    """Split a script into statements, because `executescript` would commit our transaction first."""
    statements = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
