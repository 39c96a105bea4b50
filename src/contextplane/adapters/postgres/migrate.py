"""The schema as numbered SQL files, run in order on open. A catalog newer than the files is refused."""

import os
from collections.abc import Iterator
from functools import cache

from contextplane.adapters.postgres.connect import Connection
from contextplane.adapters.sql.steps import Migration, steps_in
from contextplane.ports.catalog import SchemaTooNew

__all__ = ["exists", "migrate", "migrations", "refuse_newer", "schema_problems", "version_of"]

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
