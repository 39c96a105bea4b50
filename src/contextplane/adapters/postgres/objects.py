"""What objects are and what refers to them, in PostgreSQL: the `ObjectIndex` port."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from contextplane.adapters.postgres.connect import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.ports.catalog import BLOB, KindConflict, Recorded, Tally

__all__ = ["PostgresObjectIndex"]

_REACHED = """
  WITH RECURSIVE reached(digest) AS (
    SELECT target FROM root
    UNION
    SELECT edge.target FROM edge JOIN reached ON edge.source = reached.digest
  )
"""
_END = "\U0010ffff"
_AT_ONCE = 4096


class PostgresObjectIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def recorded(self, digest: Digest) -> Recorded | None:
        row = self._db.execute(
            "SELECT digest, kind, size, traced FROM object WHERE digest = %s", (digest.hex,)
        ).fetchone()
        return _recorded(row) if row else None

    def of_kind(self, kind: str) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM object WHERE kind = %s ORDER BY digest", (kind,)):
            yield digest_in(digest)

    def tallies(self) -> tuple[Tally, ...]:
        rows = self._db.execute(
            "SELECT kind, objects, size FROM tally WHERE what = 'object' AND objects > 0 ORDER BY kind"
        )
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def counted(self) -> tuple[Tally, ...]:
        rows = self._db.execute("SELECT kind, count(*), sum(size)::bigint FROM object GROUP BY kind ORDER BY kind")
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        rows = self._db.execute("SELECT role, target FROM edge WHERE source = %s ORDER BY position", (source.hex,))
        return tuple((role, digest_in(target)) for role, target in rows)

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        rows = self._db.rows(
            "SELECT name, target FROM root WHERE name >= %s AND name < %s ORDER BY name", (prefix, prefix + _END)
        )
        for name, target in rows:
            yield name, digest_in(target)

    def root_count(self, prefix: str = "") -> int:
        if prefix.endswith("/") and prefix.count("/") == 1:
            row = self._db.execute("SELECT objects FROM tally WHERE what = 'root' AND kind = %s", (prefix,)).fetchone()
            return row[0] if row else 0
        return sum(1 for _ in self.roots(prefix))

    def wanted(self) -> Iterator[Digest]:
        rows = self._db.rows("SELECT target FROM root UNION SELECT target FROM edge ORDER BY 1")
        for (target,) in rows:
            yield digest_in(target)

    def reached(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows(f"{_REACHED} SELECT digest FROM reached ORDER BY digest"):
            yield digest_in(digest)

    def referrers(self, target: Digest) -> tuple[str, ...]:
        rows = self._db.execute(
            "SELECT name FROM root WHERE target = %(target)s"
            " UNION ALL SELECT 'sha256:' || source FROM edge WHERE target = %(target)s LIMIT 5",
            {"target": target.hex},
        )
        return tuple(name for (name,) in rows)

    def untraced(self) -> Iterator[Recorded]:
        rows = self._db.rows(
            f"{_REACHED} SELECT digest, kind, size, traced FROM object"
            " WHERE NOT traced AND digest IN (SELECT digest FROM reached) ORDER BY digest"
        )
        return map(_recorded, rows)

    def unreachable(self) -> Iterator[Recorded]:
        rows = self._db.rows(
            f"{_REACHED} SELECT digest, kind, size, traced FROM object WHERE NOT EXISTS"
            " (SELECT 1 FROM reached WHERE reached.digest = object.digest) ORDER BY digest"
        )
        return map(_recorded, rows)

    def record(self, recorded: Recorded) -> None:
        before = self.recorded(recorded.digest)
        if before is not None and before.kind != recorded.kind:
            if recorded.kind == BLOB:
                return
            if before.kind != BLOB:
                raise KindConflict(
                    f"recorded as {before.kind!r} before, now as {recorded.kind!r}",
                    at=str(recorded.digest),
                    hint="'ctx fsck --rebuild' makes the index anew",
                )
            self._db.execute("DELETE FROM object WHERE digest = %s", (recorded.digest.hex,))
        self._db.execute(
            "INSERT INTO object (digest, kind, size, traced) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (digest) DO UPDATE SET size = excluded.size, traced = object.traced OR excluded.traced",
            (recorded.digest.hex, recorded.kind, recorded.size, recorded.traced),
        )

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        left = iter(blobs)
        # Many in one statement, each once: a statement may not change a row twice.
        while some := {digest.hex: size for digest, size in islice(left, _AT_ONCE)}:
            self._db.execute(
                "INSERT INTO object (digest, kind, size, traced)"
                " SELECT digest, %s, size, TRUE FROM unnest(%s::text[], %s::bigint[]) AS blob(digest, size)"
                " ON CONFLICT (digest) DO UPDATE SET size = excluded.size"
                " WHERE object.kind = excluded.kind AND object.size <> excluded.size",
                (BLOB, list(some), list(some.values())),
            )

    def link(self, source: Digest, role: str, target: Digest) -> None:
        self.link_all(source, [(role, target)])

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        last = self._db.one("SELECT max(position) FROM edge WHERE source = %s", (source.hex,))[0] or 0
        self._db.executemany(
            "INSERT INTO edge (source, position, role, target) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (source, role, target) DO NOTHING",
            ((source.hex, n, role, target.hex) for n, (role, target) in enumerate(edges, last + 1)),
        )

    def keep(self, name: str, target: Digest) -> None:
        self._db.execute(
            "INSERT INTO root (name, target) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET target = excluded.target",
            (name, target.hex),
        )

    def release(self, name: str) -> None:
        self._db.execute("DELETE FROM root WHERE name = %s", (name,))

    def forget(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM edge WHERE source = %s", (digest.hex,))
        self._db.execute("DELETE FROM object WHERE digest = %s", (digest.hex,))

    def unlink_all(self, prefix: str) -> None:
        self._db.execute("DELETE FROM edge")
        self._db.execute("DELETE FROM root WHERE name >= %s AND name < %s", (prefix, prefix + _END))
        self._db.execute("DELETE FROM tally")
        self._db.execute(
            "UPDATE object SET traced = (kind = %(blob)s) WHERE traced <> (kind = %(blob)s)", {"blob": BLOB}
        )
        self._db.execute(
            "INSERT INTO tally SELECT 'root', substr(name, 1, strpos(name, '/')), count(*), 0 FROM root GROUP BY 2"
        )
        self._db.execute("INSERT INTO tally SELECT 'object', kind, count(*), sum(size) FROM object GROUP BY kind")


def _recorded(row: tuple[str, str, int, bool]) -> Recorded:
    digest, kind, size, traced = row
    return Recorded(digest=digest_in(digest), kind=kind, size=size, traced=traced)
