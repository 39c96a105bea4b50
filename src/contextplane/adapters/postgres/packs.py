"""The list of execution packs in PostgreSQL: the `PackIndex` port on `pack` and `pack_tool`."""

from collections.abc import Iterator

from contextplane.adapters.postgres.connect import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.pack_index import PackFilter, PackRow

__all__ = ["PostgresPackIndex"]

_COLUMNS = (
    "digest, created_seconds, created_nanos, packed_seconds, packed_nanos, model, steps, parent, problem,"
    " ARRAY(SELECT tool FROM pack_tool WHERE pack_tool.number = pack.number ORDER BY tool)"
)
_NEWEST = "created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest"


class PostgresPackIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def page(self, wanted: PackFilter, limit: int) -> tuple[PackRow, ...]:
        where, values = _where(wanted)
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM pack WHERE {where} ORDER BY {_NEWEST} LIMIT %s", (*values, limit)
        )
        return tuple(map(_row, rows))

    def row(self, digest: Digest) -> PackRow | None:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM pack WHERE digest = %s", (digest.hex,)).fetchone()
        return _row(row) if row else None

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM pack ORDER BY digest"):
            yield digest_in(digest)

    def add(self, row: PackRow) -> None:
        self.remove(row.digest)
        (number,) = self._db.one(
            "INSERT INTO pack (digest, created_seconds, created_nanos, packed_seconds, packed_nanos,"
            " model, steps, parent, problem) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING number",
            (
                row.digest.hex,
                row.created.seconds,
                row.created.nanos,
                row.packed.seconds,
                row.packed.nanos,
                row.model,
                row.steps,
                row.parent.hex if row.parent else "",
                row.problem,
            ),
        )
        tools = ((tool, number) for tool in sorted(set(row.tools)))
        self._db.executemany("INSERT INTO pack_tool (tool, number) VALUES (%s, %s)", tools)

    def remove(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM pack WHERE digest = %s", (digest.hex,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM pack")


def _where(wanted: PackFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    if wanted.since is not None:
        clauses.append("(created_seconds, created_nanos) >= (%s, %s)")
        values += [wanted.since.seconds, wanted.since.nanos]
    if wanted.model is not None:
        clauses.append("model = %s")
        values.append(wanted.model)
    if wanted.tool is not None:
        clauses.append("number IN (SELECT number FROM pack_tool WHERE tool = %s)")
        values.append(wanted.tool)
    if wanted.parent is not None:
        clauses.append("parent = %s")
        values.append(wanted.parent.hex)
    return " AND ".join(clauses), values


def _row(row: tuple[str, int, int, int, int, str, int, str, str, list[str]]) -> PackRow:
    digest, created, created_nanos, packed, packed_nanos, model, steps, parent, problem, tools = row
    return PackRow(
        digest=digest_in(digest),
        created=Timestamp(seconds=created, nanos=created_nanos),
        packed=Timestamp(seconds=packed, nanos=packed_nanos),
        model=model,
        steps=steps,
        parent=digest_in(parent) if parent else None,
        tools=tuple(tools),
        problem=problem,
    )
