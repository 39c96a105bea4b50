"""Event streams in SQLite: the `Streams` port on the table `event`."""

from collections.abc import Iterator

from contextplane.adapters.sql.streams import SqlStreams

__all__ = ["SqliteStreams"]


class SqliteStreams(SqlStreams):
    """Lives within one transaction of the catalog."""

    def names(self, prefix: str = "") -> Iterator[str]:
        # One step down the key per stream: the cost does not grow with the number of events.
        row = self._db.one("SELECT min(stream) FROM event WHERE stream >= ?", (prefix,))
        while row[0] is not None and row[0].startswith(prefix):
            yield row[0]
            row = self._db.one("SELECT min(stream) FROM event WHERE stream > ?", (row[0],))
