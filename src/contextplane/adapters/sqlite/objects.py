"""What objects are and what refers to them, in SQLite: the `ObjectIndex` port."""

from collections.abc import Iterable
from typing import ClassVar

from contextplane.adapters.sql.objects import SqlObjectIndex
from contextplane.model.ids import Digest
from contextplane.ports.object_index import BLOB

__all__ = ["SqliteObjectIndex"]


class SqliteObjectIndex(SqlObjectIndex):
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str] = "substr(name, 1, instr(name, '/'))"
    NOT_REACHED: ClassVar[str] = "digest NOT IN reached"

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        self._db.executemany(
            "INSERT INTO object (digest, kind, size, traced) VALUES (?, ?, ?, 1)"
            " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
            " WHERE kind = excluded.kind AND size <> excluded.size",
            ((digest.hex, BLOB, size) for digest, size in blobs),
        )
