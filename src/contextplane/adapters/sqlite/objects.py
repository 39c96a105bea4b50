"""What objects are and what refers to them, in SQLite: the `ObjectIndex` port.

Many rows go into one statement, which reads them from a JSON text: calling SQLite for each of them takes longer.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import ClassVar

import msgspec

from contextplane.adapters.sql.objects import SqlObjectIndex
from contextplane.model.ids import Digest
from contextplane.ports.object_index import BLOB

__all__ = ["SqliteObjectIndex"]

_AT_ONCE = 4096


class SqliteObjectIndex(SqlObjectIndex):
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, instr(name, '/'))"
    NOT_REACHED: ClassVar[str] = "digest NOT IN reached"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        left = iter(blobs)
        while some := {digest.hex: size for digest, size in islice(left, _AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT key, ?, value, 1 FROM json_each(?) WHERE true"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE kind = excluded.kind AND size <> excluded.size",
                (BLOB, _json(some)),
            )

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        while some := list(islice(edges, _AT_ONCE)):
            for role, group in groupby(some, itemgetter(0)):
                targets = [target.hex for _, target in group]
                self._db.execute(
                    "INSERT INTO edge (source, position, role, target) SELECT ?, ? + key, ?, value FROM json_each(?)",
                    (source, position, role, _json(targets)),
                )
                position += len(targets)


def _json(value: dict[str, int] | Sequence[str]) -> str:
    return msgspec.json.encode(value).decode()
