"""Small objects that are not files yet: the `Pending` port on the table `pending`."""

from contextplane.adapters.sql.live import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.ports.streams import MAX_INLINE, BodyTooLarge

__all__ = ["SqlPending"]


class SqlPending:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def get(self, digest: Digest) -> bytes | None:
        row = self._db.execute("SELECT data FROM pending WHERE digest = ?", (digest.hex,)).fetchone()
        return row[0] if row else None

    def count(self) -> int:
        return int(self._db.one("SELECT count(*) FROM pending")[0])

    def some(self, limit: int) -> tuple[tuple[Digest, bytes], ...]:
        rows = self._db.execute("SELECT digest, data FROM pending ORDER BY digest LIMIT ?", (limit,))
        return tuple((digest_in(self._db, digest), data) for digest, data in rows)

    def put(self, digest: Digest, data: bytes) -> None:
        if len(data) > MAX_INLINE:
            raise BodyTooLarge(f"{len(data)} bytes", at=str(digest), hint="put it into the object store at once")
        self._db.execute("INSERT INTO pending (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest.hex, data))

    def remove(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM pending WHERE digest = ?", (digest.hex,))
