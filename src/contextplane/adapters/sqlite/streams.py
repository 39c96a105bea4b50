"""Event streams in SQLite: the `Streams` port on the table `event`."""

from collections.abc import Iterator, Sequence

from contextplane.adapters.sqlite.connect import Live
from contextplane.ports.catalog import MAX_INLINE, BodyTooLarge, Event, StoredEvent, StreamConflict

__all__ = ["SqliteStreams"]


class SqliteStreams:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def head(self, stream: str) -> int:
        row = self._db.execute("SELECT max(seq) FROM event WHERE stream = ?", (stream,)).fetchone()
        return row[0] or 0

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        rows = self._db.execute(
            "SELECT seq, kind, body FROM event WHERE stream = ? AND seq > ? ORDER BY seq", (stream, after)
        )
        for seq, kind, body in rows:
            yield StoredEvent(stream=stream, seq=seq, kind=kind, body=body)

    def names(self, prefix: str = "") -> Iterator[str]:
        # One step down the key per stream: the cost does not grow with the number of events.
        row = self._db.execute("SELECT min(stream) FROM event WHERE stream >= ?", (prefix,)).fetchone()
        while row[0] is not None and row[0].startswith(prefix):
            yield row[0]
            row = self._db.execute("SELECT min(stream) FROM event WHERE stream > ?", (row[0],)).fetchone()

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
            "INSERT INTO event (stream, seq, kind, body) VALUES (?, ?, ?, ?)",
            ((stream, head + n, event.kind, event.body) for n, event in enumerate(events, 1)),
        )
        return head + len(events)
