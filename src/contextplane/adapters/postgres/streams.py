"""Event streams in PostgreSQL: the `Streams` port on the table `event`."""

from collections.abc import Iterator

from contextplane.adapters.sql.streams import SqlStreams

__all__ = ["PostgresStreams"]

# One step down the key per stream: the cost does not grow with the number of events.
_NAMES = """
  WITH RECURSIVE found(stream) AS (
    (SELECT stream FROM event WHERE stream >= ? ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (SELECT event.stream FROM event WHERE event.stream > found.stream ORDER BY event.stream LIMIT 1)
    FROM found WHERE starts_with(found.stream, ?)
  )
  SELECT stream FROM found WHERE starts_with(stream, ?)
"""


class PostgresStreams(SqlStreams):
    """Lives within one transaction of the catalog."""

    def names(self, prefix: str = "") -> Iterator[str]:
        for (stream,) in self._db.rows(_NAMES, (prefix, prefix, prefix)):
            yield stream
