"""The list of execution packs in SQLite: the `PackIndex` port on `pack` and `pack_tool`."""

from typing import ClassVar

import msgspec

from contextplane.adapters.sql.packs import SqlPackIndex
from contextplane.model.ids import Digest

__all__ = ["SqlitePackIndex"]

_tools = msgspec.json.Decoder(tuple[str, ...])


class SqlitePackIndex(SqlPackIndex):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str] = (
        "(SELECT json_group_array(tool) FROM (SELECT tool FROM pack_tool WHERE number = pack.number ORDER BY tool))"
    )

    def tools_in(self, value: str) -> tuple[str, ...]:
        return _tools.decode(value)

    def remove(self, digest: Digest) -> None:
        self._db.execute(
            "DELETE FROM words WHERE rowid IN"
            " (SELECT id FROM text_part JOIN pack USING (number) WHERE pack.digest = ?)",
            (digest.hex,),
        )
        super().remove(digest)

    def clear(self) -> None:
        self._db.execute("DELETE FROM words")
        super().clear()
