"""The list of execution packs in PostgreSQL: the `PackIndex` port on `pack` and `pack_tool`."""

from typing import ClassVar

from contextplane.adapters.sql.packs import SqlPackIndex

__all__ = ["PostgresPackIndex"]


class PostgresPackIndex(SqlPackIndex):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str] = "ARRAY(SELECT tool FROM pack_tool WHERE pack_tool.number = pack.number ORDER BY tool)"

    def tools_in(self, value: list[str]) -> tuple[str, ...]:
        return tuple(value)
