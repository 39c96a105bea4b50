"""The list of execution packs: the `PackIndex` port on `pack` and `pack_tool`, but for how tools come as one column."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from contextplane.adapters.sql.live import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.pack_index import PackFilter, PackRow

__all__ = ["SqlPackIndex"]

_COLUMNS = "digest, created_seconds, created_nanos, packed_seconds, packed_nanos, model, steps, parent, problem"
_NEWEST = "created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest"


class SqlPackIndex(ABC):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str]
    """An expression: the tools of a pack as one value, in order."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def page(self, wanted: PackFilter, limit: int) -> tuple[PackRow, ...]:
        where, values = _where(wanted)
        rows = self._db.execute(
            f"SELECT {_COLUMNS}, {self.TOOLS} FROM pack WHERE {where} ORDER BY {_NEWEST} LIMIT ?", (*values, limit)
        )
        return tuple(map(self._row, rows))

    def row(self, digest: Digest) -> PackRow | None:
        row = self._db.execute(f"SELECT {_COLUMNS}, {self.TOOLS} FROM pack WHERE digest = ?", (digest.hex,)).fetchone()
        return self._row(row) if row else None

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM pack ORDER BY digest"):
            yield digest_in(self._db, digest)

    def add(self, row: PackRow) -> None:
        self.remove(row.digest)
        (number,) = self._db.one(
            f"INSERT INTO pack ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
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
        self._db.executemany("INSERT INTO pack_tool (tool, number) VALUES (?, ?)", tools)

    def remove(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM pack WHERE digest = ?", (digest.hex,))

    def clear(self) -> None:
        # Each by itself: rows of a pack that is not in the list any more would stay.
        for table in ("pack_tool", "text_part", "pack"):
            self._db.execute(f"DELETE FROM {table}")

    @abstractmethod
    def tools_in(self, value: Any) -> tuple[str, ...]:  # noqa: ANN401  what `TOOLS` gives
        """The tools in what `TOOLS` gave."""

    def _row(self, row: tuple[Any, ...]) -> PackRow:
        digest, created, created_nanos, packed, packed_nanos, model, steps, parent, problem, tools = row
        return PackRow(
            digest=digest_in(self._db, digest),
            created=Timestamp(seconds=created, nanos=created_nanos),
            packed=Timestamp(seconds=packed, nanos=packed_nanos),
            model=model,
            steps=steps,
            parent=digest_in(self._db, parent) if parent else None,
            tools=self.tools_in(tools),
            problem=problem,
        )


def _where(wanted: PackFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    if wanted.since is not None:
        clauses.append("(created_seconds, created_nanos) >= (?, ?)")
        values += [wanted.since.seconds, wanted.since.nanos]
    if wanted.model is not None:
        clauses.append("model = ?")
        values.append(wanted.model)
    if wanted.tool is not None:
        clauses.append("number IN (SELECT number FROM pack_tool WHERE tool = ?)")
        values.append(wanted.tool)
    if wanted.parent is not None:
        clauses.append("parent = ?")
        values.append(wanted.parent.hex)
    return " AND ".join(clauses), values
