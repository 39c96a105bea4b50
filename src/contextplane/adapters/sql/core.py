"""The connection of a SQL catalog, its migrations, and the ports that both databases implement alike.

- `SqlConnection`: what the classes here need of a connection, for one transaction.
- `Migration`: one step of the schema, a numbered SQL file.
- `SqlMarks`, `SqlPending`, `SqlStreams`: the ports on the tables `mark`, `pending` and `event`. Listing the names of
  streams is left to each database.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from contextplane.model.catalog import MAX_INLINE, Event, StoredEvent
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.value import Value
from contextplane.ports.catalog import BodyTooLarge, CatalogCorrupt, StreamConflict

__all__ = [
    "Migration",
    "SqlConnection",
    "SqlCursor",
    "SqlMarks",
    "SqlPending",
    "SqlStreams",
    "list_migrations",
    "stored_digest",
]

_AFTER_ANY_TEXT = "\U0010ffff"


class SqlCursor(Protocol):
    """The rows of a statement."""

    def fetchone(self) -> Any: ...  # noqa: ANN401  a row is what its statement says

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A connection for the length of one transaction.

    Used after the end of the transaction it fails, instead of writing outside of one.
    """

    @property
    def recovery_hint(self) -> str:
        """The hint for an error about rows that this program did not write."""
        ...

    def execute(self, sql: str, values: Sequence[object] = ()) -> SqlCursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> object: ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Yield the rows of a statement, never holding all of them in memory."""
        ...

    def single_row(self, sql: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401  as above
        """Return the row of a statement that always has exactly one."""
        ...


def stored_digest(db: SqlConnection, text: object) -> Digest:
    """Parse a digest from a row. Any other text there is damage: `CatalogCorrupt`."""
    try:
        return Digest(str(text))
    except InvalidId as error:
        raise CatalogCorrupt(f"a row holds no digest: {error.message}", hint=db.recovery_hint) from error


class Migration(Value, frozen=True):
    """One step of the schema: a SQL file."""

    number: int
    name: str
    path: str


def list_migrations(folder: str) -> tuple[Migration, ...]:
    """List the migrations in a folder, in order. Their numbers are 1, 2, 3 and so on."""
    # `0001_objects.sql`. Without a regular expression: every command lists them, and compiling one takes longer.
    parts = [(file, *file.removesuffix(".sql").partition("_")) for file in sorted(os.listdir(folder))]
    return tuple(
        Migration(number=int(number), name=name, path=os.path.join(folder, file))
        for file, number, _, name in parts
        if file.endswith(".sql") and number.isdecimal()
    )


class SqlMarks:
    """The `Marks` port on the table `mark`, within one transaction."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def get(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM mark WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def names(self, prefix: str) -> Iterator[str]:
        rows = self._db.rows(
            "SELECT name FROM mark WHERE name >= ? AND name < ? ORDER BY name", (prefix, prefix + _AFTER_ANY_TEXT)
        )
        return (name for (name,) in rows)

    def put(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def drop(self, prefix: str) -> None:
        self._db.execute("DELETE FROM mark WHERE name >= ? AND name < ?", (prefix, prefix + _AFTER_ANY_TEXT))

    def clear(self) -> None:
        self._db.execute("DELETE FROM mark")


class SqlPending:
    """The `Pending` port on the table `pending`, within one transaction."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def get(self, digest: Digest) -> bytes | None:
        row = self._db.execute("SELECT data FROM pending WHERE digest = ?", (digest.hex,)).fetchone()
        return row[0] if row else None

    def count(self) -> int:
        return int(self._db.single_row("SELECT count(*) FROM pending")[0])

    def some(self, limit: int) -> tuple[tuple[Digest, bytes], ...]:
        rows = self._db.execute("SELECT digest, data FROM pending ORDER BY digest LIMIT ?", (limit,))
        return tuple((stored_digest(self._db, digest), data) for digest, data in rows)

    def put(self, digest: Digest, data: bytes) -> None:
        if len(data) > MAX_INLINE:
            raise BodyTooLarge(f"{len(data)} bytes", at=str(digest), hint="put it into the object store at once")
        self._db.execute("INSERT INTO pending (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest.hex, data))

    def remove(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM pending WHERE digest = ?", (digest.hex,))


class SqlStreams:
    """The `Streams` port on the table `event`, within one transaction. Subclasses list the names."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def head(self, stream: str) -> int:
        return self._db.single_row("SELECT max(seq) FROM event WHERE stream = ?", (stream,))[0] or 0

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
                hint="read the stream again and try again",
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
