"""Where each index last stood: the `Marks` port on the table `mark`."""

from collections.abc import Iterator

from contextplane.adapters.sql.live import Live

__all__ = ["SqlMarks"]

_END = "\U0010ffff"


class SqlMarks:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def get(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM mark WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def names(self, prefix: str) -> Iterator[str]:
        rows = self._db.rows(
            "SELECT name FROM mark WHERE name >= ? AND name < ? ORDER BY name", (prefix, prefix + _END)
        )
        return (name for (name,) in rows)

    def put(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def drop(self, prefix: str) -> None:
        self._db.execute("DELETE FROM mark WHERE name >= ? AND name < ?", (prefix, prefix + _END))

    def clear(self) -> None:
        self._db.execute("DELETE FROM mark")
