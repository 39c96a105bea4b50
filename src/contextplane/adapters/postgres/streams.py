"""Event streams in PostgreSQL: the `Streams` port on the table `event`."""

from collections.abc import Iterator, Sequence

from contextplane.adapters.postgres.connect import Live
from contextplane.ports.catalog import MAX_INLINE, BodyTooLarge, Event, StoredEvent, StreamConflict

__all__ = ["PostgresStreams"]

# One step down the key per stream: the cost does not grow with the number of events.
_NAMES = """
  WITH RECURSIVE found(stream) AS (
    (SELECT stream FROM event WHERE stream >= %(prefix)s ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (SELECT event.stream FROM event WHERE event.stream > found.stream ORDER BY event.stream LIMIT 1)
    FROM found WHERE starts_with(found.stream, %(prefix)s)
  )
  SELECT stream FROM found WHERE starts_with(stream, %(prefix)s)
"""


class PostgresStreams:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def head(self, stream: str) -> int:
        return self._db.one("SELECT max(seq) FROM event WHERE stream = %s", (stream,))[0] or 0

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        rows = self._db.rows(
            "SELECT seq, kind, body FROM event WHERE stream = %s AND seq > %s ORDER BY seq", (stream, after)
        )
        for seq, kind, body in rows:
            yield StoredEvent(stream=stream, seq=seq, kind=kind, body=body)

    def names(self, prefix: str = "") -> Iterator[str]:
        for (stream,) in self._db.rows(_NAMES, {"prefix": prefix}):
            yield stream

    def append(self, stream: str, expected_seq: int, events: Sequence[Event]) -> int:
        head = self.head(stream)
        if head != expected_seq:
            raise StreamConflict(
                f"expected {expected_seq} events, found {head}",
                at=stream,
                hint="read the stream again and decide anew",
                details={"expected_seq": expected_seq, "head": head},
            )
        for event in events:
            if len(event.body) > MAX_INLINE:
                raise BodyTooLarge(
                    f"{len(event.body)} bytes", at=stream, hint="put it into the object store and refer to it"
                )
        self._db.executemany(
            "INSERT INTO event (stream, seq, kind, body) VALUES (%s, %s, %s, %s)",
            ((stream, head + n, event.kind, event.body) for n, event in enumerate(events, 1)),
        )
        return head + len(events)
