"""What objects are and what refers to them, in PostgreSQL: the `ObjectIndex` port."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import ClassVar

from contextplane.adapters.sql.objects import SqlObjectIndex
from contextplane.model.ids import Digest
from contextplane.ports.object_index import BLOB

__all__ = ["PostgresObjectIndex"]

_AT_ONCE = 4096


class PostgresObjectIndex(SqlObjectIndex):
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, strpos(name, '/'))"
    NOT_REACHED: ClassVar[str] = "NOT EXISTS (SELECT 1 FROM reached WHERE reached.digest = object.digest)"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        left = iter(blobs)
        # Many in one statement, each once: a statement may not change a row twice.
        while some := {digest.hex: size for digest, size in islice(left, _AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT digest, ?, size, TRUE FROM unnest(?::text[], ?::bigint[]) AS blob(digest, size)"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE object.kind = excluded.kind AND object.size <> excluded.size",
                (BLOB, list(some), list(some.values())),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while some := list(islice(edges, _AT_ONCE)):
            self._db.execute(
                "INSERT INTO edge (source, position, role, target)"
                " SELECT ?, ? + ordinality - 1, role, target"
                " FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS new(role, target, ordinality)",
                (source, position, [role for role, _ in some], [target.hex for _, target in some]),
            )
            position += len(some)
