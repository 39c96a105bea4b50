"""One connection to the catalog's file, set up the same way every time, with SQLite's errors turned into ours.

The schema as numbered SQL files, run in order on open. A catalog newer than the files is refused.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from contextplane.adapters.sql.core import Migration, steps_in
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogBusy, CatalogCorrupt, CatalogFailed, CatalogReadOnly, SchemaTooNew
from contextplane.ports.objects import StorageFull

__all__ = [
    "BUSY_SECONDS",
    "MEMORY",
    "Live",
    "catalog_errors",
    "connect",
    "file_uri",
    "migrate",
    "migrations",
    "schema_problems",
    "version_of",
]

BUSY_SECONDS = 10.0
"""How long a writer waits for its turn before it gives up."""

_WAL = "PRAGMA journal_mode = WAL"
_ALONE = "PRAGMA locking_mode = EXCLUSIVE"
_READING = "PRAGMA query_only = ON"
_REBUILD = "'ctx fsck --rebuild' saves what can be read"
_ANEW = "'ctx fsck --rebuild' makes the index anew"
# A table that is not there, for example, or a row that does not fit to the others: nothing that we run can cause it in
# a catalog of ours.
_UNSOUND = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT})
_ROUND = 0.02
_SOME = 64 << 10
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

MEMORY = ":memory:"
"""Instead of a path: a catalog that lives as long as the process, for a store that cannot be written."""


class Live:
    """A connection for the length of one transaction. Used after its end it fails, instead of writing on its own."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db: sqlite3.Connection | None = db

    @property
    def way_out(self) -> str:
        return _REBUILD

    def execute(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        return self._open().execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> sqlite3.Cursor:
        return self._open().executemany(sql, rows)

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        return self.execute(sql, values)

    def one(self, sql: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401  a row is what its statement says
        return self.execute(sql, values).fetchone()

    def end(self) -> None:
        self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise CatalogFailed("used after the end of its transaction", hint="this is a defect of the caller")
        return self._db


def connect(path: str, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open an existing file, or make a new one, in write-ahead mode; where nothing can be written, open it to read."""
    with catalog_errors(path):
        if path == MEMORY:
            return sqlite3.connect(path, isolation_level=None)
        if _writable(path):
            return _opened_to_write(path, busy_seconds)
        try:
            return _opened(file_uri(path, "mode=ro"), busy_seconds, _READING)
        except sqlite3.OperationalError:
            # Readers of a write-ahead database share a file beside it. Where that cannot be made, the database may be
            # read as it stands, but only when no log holds newer pages.
            log = f"{path}-wal"
            if os.path.exists(log) and os.path.getsize(log):
                raise
            return _opened(file_uri(path, "mode=ro&immutable=1"), busy_seconds, _READING)


def _opened_to_write(path: str, busy_seconds: float) -> sqlite3.Connection:
    try:
        return _patiently(lambda: _opened(file_uri(path, "mode=rwc"), busy_seconds, _WAL), busy_seconds)
    except sqlite3.OperationalError as error:
        if _primary(error) != sqlite3.SQLITE_IOERR:
            raise
        # Those who have it open share a file beside it. On a full disk that cannot be made, and one alone does without:
        # everything can be read then, and whoever frees some room by what it does can also write it down.
        return _patiently(lambda: _opened(file_uri(path, "mode=rw"), busy_seconds, _ALONE, _WAL), busy_seconds)


def _patiently(attempt: Callable[[], sqlite3.Connection], seconds: float) -> sqlite3.Connection:
    """Try again while another process opens or closes the same file: SQLite does not wait for its turn there."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(_ROUND)


def _opened(uri: str, busy_seconds: float, *modes: str) -> sqlite3.Connection:
    # Threads that take turns may share it: a recorder in an agent loop, for example.
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


def _writable(path: str) -> bool:
    folder = os.path.dirname(path) or "."
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def file_uri(path: str, options: str) -> str:
    """A path as SQLite takes it with options: the characters that end or escape a path there are written otherwise."""
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}?{options}"


@contextmanager
def catalog_errors(path: str) -> Iterator[None]:
    """Turn what SQLite raises into an error with a code, a place and a way out."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _translated(error: sqlite3.Error, path: str) -> ContextPlaneError:
    primary = _primary(error)
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return CatalogBusy("another process is writing to the catalog", at=path, hint="try again when it has finished")
    if primary in _UNSOUND:
        hint = _ANEW if primary == sqlite3.SQLITE_CONSTRAINT else _REBUILD
        return CatalogCorrupt(f"not a sound catalog: {error}", at=path, hint=hint)
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return CatalogReadOnly(f"cannot be written: {error}", at=path, hint="check the mount and the permissions")
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and _no_room(path)):
        return StorageFull(
            f"no room to write: {error}", at=path, hint="free some space, then run the same command again"
        )
    if primary == sqlite3.SQLITE_CANTOPEN and os.path.isdir(path):
        return CatalogCorrupt("a folder stands in its place", at=path, hint=_REBUILD)
    return CatalogFailed(f"{error}", at=path, hint="check the disk, and the permissions of this file and its folder")


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _no_room(path: str) -> bool:
    """Whether a few more bytes find no room here, or no file may be larger: SQLite does not say why a write failed."""
    sizes = [os.path.getsize(one) for one in (path, f"{path}-wal") if os.path.isfile(one)]
    probe = f"{path}.{os.getpid()}"
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return error.errno in _FULL
    try:
        os.lseek(fd, max(sizes, default=0), os.SEEK_SET)
        some = memoryview(bytes(_SOME))
        while some:
            some = some[os.write(fd, some) :]
    except OSError as error:
        return error.errno in _FULL
    finally:
        os.close(fd)
        with suppress(OSError):
            os.unlink(probe)
    return False


@cache
def migrations() -> tuple[Migration, ...]:
    return steps_in(os.path.join(os.path.dirname(__file__), "migrations"))


def version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, *, at: str, upto: int | None = None) -> int:
    """Bring the schema to `upto` (the newest by default), each step in a transaction of its own; return the version."""
    steps = migrations()
    newest = len(steps)
    have = version_of(db)
    if have > newest:
        raise SchemaTooNew(
            f"the catalog has schema {have}, this contextplane knows {newest}", at=at, hint="upgrade contextplane"
        )
    goal = newest if upto is None else upto
    if have < goal and db.execute("PRAGMA query_only").fetchone()[0]:
        raise CatalogReadOnly(
            f"schema {have} must be brought to {goal}, which needs writing", at=at, hint="make it writable once"
        )
    for step in steps[have:goal]:
        _run(db, step)
    return max(have, goal)


def schema_problems(db: sqlite3.Connection) -> Iterator[str]:
    """What differs from the schema that the migrations make: a trigger that is gone, or one that nobody of us wrote."""
    plain = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(plain, at=":memory:", upto=version_of(db))
        wanted, found = _schema(plain), _schema(db)
    finally:
        plain.close()
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            yield f"schema: {name} is gone"
        elif name not in wanted:
            yield f"schema: {name} is not ours"
        elif wanted[name] != found[name]:
            yield f"schema: {name} was changed"


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    rows = db.execute(
        "SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
    )
    return dict(rows.fetchall())


def _run(db: sqlite3.Connection, step: Migration) -> None:
    with open(step.path, encoding="utf-8") as file:
        script = file.read()
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have run this step while we waited for our turn.
        if version_of(db) < step.number:
            for statement in _statements(script):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {step.number}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has ended it already
            db.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """Single statements, because `executescript` would commit our transaction first."""
    found = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
