"""The list of handoff packs in SQLite: the `HandoffIndex` port on `handoff`, `handoff_tally` and `handoff_text`."""

from contextplane.adapters.sql.handoffs import COLUMNS, SqlHandoffIndex, bounds, values_of
from contextplane.model.ids import HandoffId
from contextplane.ports.handoff_index import HandoffFilter, HandoffRow

__all__ = ["SqliteHandoffIndex"]

_TRIGRAM = 3
_MATCHED = 64
"""FTS5 finds so many characters of a long text quickly; whether the rest follows is then looked at one by one."""


class SqliteHandoffIndex(SqlHandoffIndex):
    """Lives within one transaction of the catalog."""

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        number = self._db.one(
            f"INSERT INTO handoff ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number", values_of(row)
        )
        self._db.execute("INSERT INTO handoff_text (rowid, text) VALUES (?, ?)", (*number, _whole(row.searched)))

    def remove(self, handoff_id: HandoffId) -> None:
        row = self._db.execute("SELECT number FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM handoff_text WHERE rowid = ?", row)
            self._db.execute("DELETE FROM handoff WHERE number = ?", row)

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff_text")
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def all_after(self, offset: int) -> tuple[str, tuple[object, ...]]:
        return "LIMIT -1 OFFSET ?", (offset,)

    def by_deadline(self) -> str:
        return "handoff INDEXED BY handoff_deadline"

    def meant(self, wanted: HandoffFilter) -> tuple[str, str, list[object]]:
        """As it says there. A deadline that is bounded above is near, so few have one."""
        where, values = bounds(wanted)
        if wanted.query:
            query = _whole(wanted.query.casefold())
            if len(query) >= _TRIGRAM:
                # One quoted string to FTS5: nothing that people type is an operator.
                where = f"handoff_text MATCH ? AND {where}"
                values.insert(0, '"' + query[:_MATCHED].replace('"', '""') + '"')
            if not _TRIGRAM <= len(query) <= _MATCHED:
                where += " AND instr(handoff_text.text, ?)"
                values.append(query)
            return "handoff JOIN handoff_text ON handoff_text.rowid = number", where, values
        newest = "handoff_newest" if wanted.status is None else "handoff_status"
        index = newest if wanted.until is None else "handoff_deadline"
        return f"handoff INDEXED BY {index}", where, values


def _whole(text: str) -> str:
    # FTS5 takes a NUL for the end of the text.
    return text.replace("\0", "\x01")
