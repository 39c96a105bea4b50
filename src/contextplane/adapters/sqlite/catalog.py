"""The catalog in one SQLite file: the `Catalog` port for a single machine.

It hands out transactions and nothing more; each noun's SQL is in its own module.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from contextplane.adapters.sql.marks import SqlMarks
from contextplane.adapters.sql.pending import SqlPending
from contextplane.adapters.sqlite.connect import BUSY_SECONDS, MEMORY, Live, catalog_errors, connect
from contextplane.adapters.sqlite.migrate import migrate, schema_problems, version_of
from contextplane.adapters.sqlite.objects import SqliteObjectIndex
from contextplane.adapters.sqlite.packs import SqlitePackIndex
from contextplane.adapters.sqlite.streams import SqliteStreams
from contextplane.adapters.sqlite.texts import SqliteTextIndex
from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogForeign, CatalogMissing, CatalogReadOnly, Survives, Table

if TYPE_CHECKING:
    from contextplane.adapters.sqlite.handoffs import SqliteHandoffIndex

__all__ = ["SqliteCatalog", "SqliteTransaction"]

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
        from contextplane.adapters.sqlite.handoffs import SqliteHandoffIndex  # noqa: PLC0415

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
