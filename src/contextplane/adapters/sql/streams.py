"""Event streams: the `Streams` port on the table `event`, but for the list of their names."""

from collections.abc import Iterator, Sequence

from contextplane.adapters.sql.live import Live
from contextplane.ports.streams import MAX_INLINE, BodyTooLarge, Event, StoredEvent, StreamConflict

__all__ = ["SqlStreams"]


class SqlStreams:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def head(self, stream: str) -> int:
        return self._db.one("SELECT max(seq) FROM event WHERE stream = ?", (stream,))[0] or 0

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        rows = self._db.rows(
            "SELECT seq, kind, body FROM event WHERE stream = ? AND seq > ? ORDER BY seq", (stream, after)
        )
        for seq, kind, body in rows:
            yield StoredEvent(stream=stream, seq=seq, kind=kind, body=body)

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
