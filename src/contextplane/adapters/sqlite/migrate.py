"""The schema as numbered SQL files, run in order on open. A catalog newer than the files is refused."""

import os
import sqlite3
from collections.abc import Iterator
from functools import cache

from contextplane.adapters.sql.steps import Migration, steps_in
from contextplane.ports.catalog import CatalogReadOnly, SchemaTooNew

__all__ = ["migrate", "migrations", "schema_problems", "version_of"]


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
