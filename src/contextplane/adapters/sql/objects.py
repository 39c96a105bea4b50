"""What objects are and what refers to them: the `ObjectIndex` port, but for recording many at once."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from contextplane.adapters.sql.live import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.ports.object_index import BLOB, ROOT, KindConflict, Recorded, Tally

__all__ = ["REACHED", "SqlObjectIndex"]

REACHED = """
  WITH RECURSIVE reached(digest) AS (
    SELECT target FROM root
    UNION
    SELECT edge.target
    FROM reached JOIN source ON source.digest = reached.digest JOIN edge ON edge.source = source.number
  )
"""
_END = "\U0010ffff"
_RECORDED = "SELECT digest, kind, size, traced FROM object"


class SqlObjectIndex:
    """Lives within one transaction of the catalog."""

    FIRST_PART: ClassVar[str]
    """An expression: the name of a root up to its first slash."""

    NOT_REACHED: ClassVar[str]
    """A condition: that an object is not among `reached`."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def recorded(self, digest: Digest) -> Recorded | None:
        row = self._db.execute(f"{_RECORDED} WHERE digest = ?", (digest.hex,)).fetchone()
        return self._recorded(row) if row else None

    def of_kind(self, kind: str) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM object WHERE kind = ? ORDER BY digest", (kind,)):
            yield digest_in(self._db, digest)

    def tallies(self) -> tuple[Tally, ...]:
        rows = self._db.execute(
            "SELECT kind, objects, size FROM tally WHERE what = 'object' AND objects > 0 ORDER BY kind"
        )
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def counted(self) -> tuple[Tally, ...]:
        rows = self._db.execute("SELECT kind, count(*), CAST(sum(size) AS bigint) FROM object GROUP BY kind ORDER BY 1")
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        rows = self._db.execute(
            "SELECT role, target FROM edge JOIN source ON source.number = edge.source"
            " WHERE source.digest = ? ORDER BY position",
            (source.hex,),
        )
        return tuple((role, digest_in(self._db, target)) for role, target in rows)

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        rows = self._db.rows(
            "SELECT name, target FROM root WHERE name >= ? AND name < ? ORDER BY name", (prefix, prefix + _END)
        )
        for name, target in rows:
            yield name, digest_in(self._db, target)

    def root_count(self, prefix: str = "") -> int:
        if prefix.endswith("/") and prefix.count("/") == 1:
            row = self._db.execute("SELECT objects FROM tally WHERE what = 'root' AND kind = ?", (prefix,)).fetchone()
            return row[0] if row else 0
        return sum(1 for _ in self.roots(prefix))

    def wanted(self) -> Iterator[Digest]:
        for (target,) in self._db.rows("SELECT target FROM root UNION SELECT target FROM edge ORDER BY 1"):
            yield digest_in(self._db, target)

    def reached(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows(f"{REACHED} SELECT digest FROM reached ORDER BY digest"):
            yield digest_in(self._db, digest)

    def referrers(self, target: Digest) -> tuple[str, ...]:
        rows = self._db.execute(
            "SELECT name FROM root WHERE target = ?"
            " UNION ALL SELECT 'sha256:' || source.digest FROM edge JOIN source ON source.number = edge.source"
            " WHERE substr(edge.target, 1, 12) = ? AND edge.target = ? LIMIT 5",
            (target.hex, target.hex[:12], target.hex),
        )
        return tuple(name for (name,) in rows)

    def wanted_as(self, target: Digest) -> frozenset[str]:
        rows = self._db.execute(
            "SELECT DISTINCT role FROM edge WHERE substr(target, 1, 12) = ? AND target = ?",
            (target.hex[:12], target.hex),
        )
        root = self._db.execute("SELECT 1 FROM root WHERE target = ? LIMIT 1", (target.hex,)).fetchone()
        return frozenset(role for (role,) in rows) | ({ROOT} if root else set())

    def untraced(self) -> Iterator[Recorded]:
        rows = self._db.rows(
            f"{REACHED} {_RECORDED} WHERE NOT traced AND digest IN (SELECT digest FROM reached) ORDER BY digest"
        )
        return map(self._recorded, rows)

    def unreachable(self) -> Iterator[Recorded]:
        rows = self._db.rows(f"{REACHED} {_RECORDED} WHERE {self.NOT_REACHED} ORDER BY digest")
        return map(self._recorded, rows)

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
            self._db.execute("DELETE FROM object WHERE digest = ?", (recorded.digest.hex,))
        self._db.execute(
            "INSERT INTO object (digest, kind, size, traced) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (digest) DO UPDATE SET size = excluded.size, traced = object.traced OR excluded.traced",
            (recorded.digest.hex, recorded.kind, recorded.size, recorded.traced),
        )

    def link(self, source: Digest, role: str, target: Digest) -> None:
        self.link_all(source, [(role, target)])

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        self._db.execute("INSERT INTO source (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING", (source.hex,))
        (number,) = self._db.one("SELECT number FROM source WHERE digest = ?", (source.hex,))
        last = self._db.one("SELECT max(position) FROM edge WHERE source = ?", (number,))[0] or 0
        there = set(self.targets(source)) if last else frozenset()
        self._add_edges(number, last + 1, (one for one in dict.fromkeys(edges) if one not in there))

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        """Add edges that are not there yet, the first of them at this position."""
        raise NotImplementedError

    def keep(self, name: str, target: Digest) -> None:
        self._db.execute(
            "INSERT INTO root (name, target) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET target = excluded.target",
            (name, target.hex),
        )

    def release(self, name: str) -> None:
        self._db.execute("DELETE FROM root WHERE name = ?", (name,))

    def forget(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM source WHERE digest = ?", (digest.hex,))
        self._db.execute("DELETE FROM object WHERE digest = ?", (digest.hex,))

    def unlink_all(self, prefix: str) -> None:
        self._db.execute("DELETE FROM edge")
        self._db.execute("DELETE FROM source")
        self._db.execute("DELETE FROM root WHERE name >= ? AND name < ?", (prefix, prefix + _END))
        self._db.execute("DELETE FROM tally")
        self._db.execute("UPDATE object SET traced = (kind = ?) WHERE traced <> (kind = ?)", (BLOB, BLOB))
        self._db.execute(f"INSERT INTO tally SELECT 'root', {self.FIRST_PART}, count(*), 0 FROM root GROUP BY 2")
        self._db.execute("INSERT INTO tally SELECT 'object', kind, count(*), sum(size) FROM object GROUP BY kind")

    def _recorded(self, row: tuple[str, str, int, int]) -> Recorded:
        digest, kind, size, traced = row
        return Recorded(digest=digest_in(self._db, digest), kind=kind, size=size, traced=bool(traced))
