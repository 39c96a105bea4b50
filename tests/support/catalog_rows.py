"""The rows of a store's catalog, read and changed by SQL as an intruder does: without the program, and past its guards.

The same statements work for both databases; `?` stands for a value.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from contextplane.adapters.postgres.connection import connect

__all__ = ["CatalogRows", "PostgresRows", "Row", "SqliteRows", "Statement", "Table", "open_rows"]

Row = tuple[Any, ...]
Statement = tuple[str, tuple[Any, ...]]
"""SQL with its values."""


class Table(NamedTuple):
    """A table: the names and types of its columns, and which of them are the key."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]


class CatalogRows(Protocol):
    """A catalog that is open for an intruder."""

    def tables(self) -> list[Table]:
        """All tables that the program made, without those of a search index."""
        ...

    def ask(self, sql: str, *values: object) -> list[Row]: ...

    def run(self, sql: str, *values: object) -> int:
        """Change something; return the number of rows that were changed."""
        ...

    def run_all(self, statements: Sequence[Statement]) -> int:
        """Change several things at once; return the number of rows that were changed."""
        ...


_INTERNAL = ("sqlite_", "words", "handoff_text")


class SqliteRows:
    """The rows of a SQLite file. Triggers that guard the tables are removed while something is changed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tables(self) -> list[Table]:
        names = [name for (name,) in self.ask("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return [self._table(name) for name in names if not name.startswith(_INTERNAL)]

    def ask(self, sql: str, *values: object) -> list[Row]:
        with closing(sqlite3.connect(self.path)) as database:
            return database.execute(sql, values).fetchall()

    def run(self, sql: str, *values: object) -> int:
        return self.run_all([(sql, values)])

    def run_all(self, statements: Sequence[Statement]) -> int:
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA ignore_check_constraints = ON")
            guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                database.execute(f"DROP TRIGGER {name}")
            count = sum(database.execute(sql, values).rowcount for sql, values in statements)
            for _, guard in guards:
                database.execute(guard)
            database.commit()
            return count

    def _table(self, name: str) -> Table:
        rows = self.ask("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", name)
        key = tuple(column for column, _, number in sorted(rows, key=lambda row: row[2]) if number)
        return Table(name, tuple(row[0] for row in rows), tuple(row[1].lower() for row in rows), key)


class PostgresRows:
    """The rows of one store in PostgreSQL. Triggers do not fire for this session."""

    def __init__(self, url: str, store_id: str) -> None:
        self._url = url
        self.schema = store_id.replace("store_", "ctx_")

    def tables(self) -> list[Table]:
        columns = self.ask(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = ? ORDER BY table_name, ordinal_position",
            self.schema,
        )
        keys = self.ask(
            "SELECT k.table_name, k.column_name FROM information_schema.key_column_usage k"
            " JOIN information_schema.table_constraints c USING (constraint_schema, constraint_name)"
            " WHERE k.table_schema = ? AND c.constraint_type = 'PRIMARY KEY' ORDER BY k.ordinal_position",
            self.schema,
        )
        names = sorted({name for name, _, _ in columns})
        return [
            Table(
                name,
                tuple(column for table, column, _ in columns if table == name),
                tuple(type_ for table, _, type_ in columns if table == name),
                tuple(column for table, column in keys if table == name),
            )
            for name in names
            if not name.startswith(_INTERNAL)
        ]

    def ask(self, sql: str, *values: object) -> list[Row]:
        with self._session() as database:
            rows: list[Row] = database.execute(sql.replace("?", "%s").encode(), values).fetchall()
            return rows

    def run(self, sql: str, *values: object) -> int:
        return self.run_all([(sql, values)])

    def run_all(self, statements: Sequence[Statement]) -> int:
        with self._session() as database, database.transaction():
            return sum(database.execute(sql.replace("?", "%s").encode(), values).rowcount for sql, values in statements)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        with connect(self._url) as database:
            database.execute(f"SET search_path = {self.schema}; SET session_replication_role = replica".encode())
            yield database


def open_rows(store: Path, database_url: str | None = None) -> CatalogRows:
    """The catalog of the store in this folder."""
    if database_url is None:
        return SqliteRows(store / "catalog.db")
    store_id = json.loads((store / "config.json").read_text(encoding="utf-8"))["store_id"]
    return PostgresRows(database_url, store_id)
