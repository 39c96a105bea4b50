"""The list of handoff packs in PostgreSQL: the `HandoffIndex` port on `handoff` and `handoff_tally`."""

from contextplane.adapters.sql.handoffs import COLUMNS, SqlHandoffIndex, bounds, values_of
from contextplane.model.ids import HandoffId
from contextplane.ports.handoff_index import HandoffFilter, HandoffRow

__all__ = ["PostgresHandoffIndex"]

_TRIGRAM = 3
_MATCHED = 64
"""So many characters of a long text are looked up in the index; whether the rest follows is looked at one by one."""


class PostgresHandoffIndex(SqlHandoffIndex):
    """Lives within one transaction of the catalog."""

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        self._db.execute(
            f"INSERT INTO handoff ({COLUMNS}, searched, trigrams)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::text[])",
            (*values_of(row), row.searched, sorted(set(_trigrams(row.searched)))),
        )

    def remove(self, handoff_id: HandoffId) -> None:
        self._db.execute("DELETE FROM handoff WHERE id = ?", (handoff_id.text,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def all_after(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "OFFSET ?", (offset,)

    def by_deadline(self) -> str:
        return "handoff"

    def meant(self, wanted: HandoffFilter) -> tuple[str, str, list[object]]:
        where, values = bounds(wanted)
        if wanted.query:
            query = wanted.query.casefold()
            if len(query) >= _TRIGRAM:
                where += " AND trigrams @> ?::text[]"
                values.append(_trigrams(query[:_MATCHED]))
            # All parts of it may be there and not the whole: the index only says where to look.
            where += " AND strpos(searched, ?) > 0"
            values.append(query)
        return "handoff", where, values


def _trigrams(text: str) -> list[str]:
    return [text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)]
