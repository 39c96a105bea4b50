"""What objects are and what refers to them: the `ObjectIndex` port, but for recording many at once.

The list of execution packs: the `PackIndex` port on `pack` and `pack_tool`, but for how tools come as one column.

The list of handoff packs: the `HandoffIndex` port on `handoff` and `handoff_tally`, but for how texts are found.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from contextplane.adapters.sql.core import Live, digest_in
from contextplane.model.catalog import (
    BLOB,
    ROOT,
    HandoffFilter,
    HandoffPage,
    HandoffRow,
    PackFilter,
    PackRow,
    Recorded,
    Tally,
)
from contextplane.model.ids import Digest, HandoffId, InvalidId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.ports.indexes import KindConflict

__all__ = ["COLUMNS", "REACHED", "SqlHandoffIndex", "SqlObjectIndex", "SqlPackIndex", "bounds", "values_of"]

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
        self._add_edges(number, last + 1, (fromkey for fromkey in dict.fromkeys(edges) if fromkey not in there))

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


_COLUMNS = "digest, created_seconds, created_nanos, packed_seconds, packed_nanos, model, steps, parent, problem"
_NEWEST_PACK = "created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest"


class SqlPackIndex(ABC):
    """Lives within one transaction of the catalog."""

    TOOLS: ClassVar[str]
    """An expression: the tools of a pack as one value, in order."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def page(self, wanted: PackFilter, limit: int) -> tuple[PackRow, ...]:
        where, values = _where(wanted)
        rows = self._db.execute(
            f"SELECT {_COLUMNS}, {self.TOOLS} FROM pack WHERE {where} ORDER BY {_NEWEST_PACK} LIMIT ?", (*values, limit)
        )
        return tuple(map(self._row, rows))

    def row(self, digest: Digest) -> PackRow | None:
        row = self._db.execute(f"SELECT {_COLUMNS}, {self.TOOLS} FROM pack WHERE digest = ?", (digest.hex,)).fetchone()
        return self._row(row) if row else None

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM pack ORDER BY digest"):
            yield digest_in(self._db, digest)

    def add(self, row: PackRow) -> None:
        self.remove(row.digest)
        (number,) = self._db.one(
            f"INSERT INTO pack ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (
                row.digest.hex,
                row.created.seconds,
                row.created.nanos,
                row.packed.seconds,
                row.packed.nanos,
                row.model,
                row.steps,
                row.parent.hex if row.parent else "",
                row.problem,
            ),
        )
        tools = ((tool, number) for tool in sorted(set(row.tools)))
        self._db.executemany("INSERT INTO pack_tool (tool, number) VALUES (?, ?)", tools)

    def remove(self, digest: Digest) -> None:
        self._db.execute("DELETE FROM pack WHERE digest = ?", (digest.hex,))

    def clear(self) -> None:
        # Each by itself: rows of a pack that is not in the list any more would stay.
        for table in ("pack_tool", "text_part", "pack"):
            self._db.execute(f"DELETE FROM {table}")

    @abstractmethod
    def tools_in(self, value: Any) -> tuple[str, ...]:  # noqa: ANN401  what `TOOLS` gives
        """The tools in what `TOOLS` gave."""

    def _row(self, row: tuple[Any, ...]) -> PackRow:
        digest, created, created_nanos, packed, packed_nanos, model, steps, parent, problem, tools = row
        return PackRow(
            digest=digest_in(self._db, digest),
            created=Timestamp(seconds=created, nanos=created_nanos),
            packed=Timestamp(seconds=packed, nanos=packed_nanos),
            model=model,
            steps=steps,
            parent=digest_in(self._db, parent) if parent else None,
            tools=self.tools_in(tools),
            problem=problem,
        )


def _where(wanted: PackFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    if wanted.since is not None:
        clauses.append("(created_seconds, created_nanos) >= (?, ?)")
        values += [wanted.since.seconds, wanted.since.nanos]
    if wanted.model is not None:
        clauses.append("model = ?")
        values.append(wanted.model)
    if wanted.tool is not None:
        clauses.append("number IN (SELECT number FROM pack_tool WHERE tool = ?)")
        values.append(wanted.tool)
    if wanted.parent is not None:
        clauses.append("parent = ?")
        values.append(wanted.parent.hex)
    return " AND ".join(clauses), values


COLUMNS = (
    "id, name, title, brief, status, revision, digest, updated_seconds, updated_nanos, expires_seconds, expires_nanos"
)
_NEWEST_HANDOFF = "updated_seconds DESC, updated_nanos DESC, revision DESC, id"
_SPAN_BITS = 12


class SqlHandoffIndex(ABC):
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    @abstractmethod
    def meant(self, wanted: HandoffFilter) -> tuple[str, str, list[object]]:
        """Where to look, and for what."""

    @abstractmethod
    def by_deadline(self) -> str:
        """Where to look for packs by their deadline alone."""

    def row(self, handoff_id: HandoffId) -> HandoffRow | None:
        row = self._db.execute(f"SELECT {COLUMNS} FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        return self._row(row) if row else None

    def named(self, name: str) -> tuple[HandoffRow, ...]:
        rows = self._db.execute(f"SELECT {COLUMNS} FROM handoff WHERE name = ? ORDER BY id", (name,))
        return tuple(map(self._row, rows))

    def page(self, wanted: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        source, where, values = self.meant(wanted)
        cut, bounded = ("LIMIT ? OFFSET ?", (limit, offset)) if limit is not None else self.all_after(offset)
        # The numbers first, from an index alone; only what the page shows is looked up.
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM handoff WHERE number IN"
            f" (SELECT number FROM {source} WHERE {where} ORDER BY {_NEWEST_HANDOFF} {cut}) ORDER BY {_NEWEST_HANDOFF}",
            (*values, *bounded),
        )
        found = tuple(map(self._row, rows))
        if wanted.query:
            total = int(self._db.one(f"SELECT count(*) FROM {source} WHERE {where}", values)[0])
        else:
            total = self._counted(wanted)
        return HandoffPage(rows=found, total=total)

    @abstractmethod
    def all_after(self, offset: int) -> tuple[str, tuple[object, ...]]:
        """How a statement says that all rows are meant but the first ones."""

    def ids(self) -> Iterator[HandoffId]:
        for (text,) in self._db.rows("SELECT id FROM handoff ORDER BY id"):
            yield self._id_in(text)

    def _counted(self, wanted: HandoffFilter) -> int:
        """How many are meant: whole spans from the tally, and one by one only where a bound falls within a span."""
        low = wanted.after.seconds >> _SPAN_BITS if wanted.after else None
        high = wanted.until.seconds >> _SPAN_BITS if wanted.until else None
        clauses, values = ["TRUE"], list[object]()
        if low is not None:
            clauses.append("span > ?")
            values.append(low)
        if high is not None:
            clauses.append("span < ?")
            values.append(high)
        if wanted.status is not None:
            clauses.append("status = ?")
            values.append(wanted.status)
        whole = f"SELECT coalesce(sum(packs), 0) FROM handoff_tally WHERE {' AND '.join(clauses)}"
        counted = int(self._db.one(whole, values)[0])
        for span in {low, high} - {None}:
            counted += self._in_span(wanted, span or 0)
        return counted

    def _in_span(self, wanted: HandoffFilter, span: int) -> int:
        where, values = bounds(wanted)
        row = self._db.one(
            f"SELECT count(*) FROM {self.by_deadline()} WHERE expires_seconds >= ? AND expires_seconds < ? AND {where}",
            (span << _SPAN_BITS, span + 1 << _SPAN_BITS, *values),
        )
        return int(row[0])

    def _id_in(self, text: object) -> HandoffId:
        try:
            return HandoffId(str(text))
        except InvalidId as error:
            raise CatalogCorrupt(f"a row holds no handoff pack: {error.message}", hint=self._db.way_out) from error

    def _row(self, row: tuple[Any, ...]) -> HandoffRow:
        text, name, title, brief, status, revision, digest, updated, updated_nanos, expires, expires_nanos = row
        return HandoffRow(
            id=self._id_in(text),
            name=name,
            title=title,
            brief=brief,
            status=status,
            revision=revision,
            digest=digest_in(self._db, digest),
            updated=Timestamp(seconds=updated, nanos=updated_nanos),
            expires=Timestamp(seconds=expires, nanos=expires_nanos),
        )


def values_of(row: HandoffRow) -> tuple[object, ...]:
    """What a row holds in `COLUMNS`."""
    return (
        row.id.text,
        row.name,
        row.title,
        row.brief,
        row.status,
        row.revision,
        row.digest.hex,
        row.updated.seconds,
        row.updated.nanos,
        row.expires.seconds,
        row.expires.nanos,
    )


def bounds(wanted: HandoffFilter) -> tuple[str, list[object]]:
    """What is asked of a pack's status and deadline."""
    clauses, values = ["TRUE"], list[object]()
    if wanted.status is not None:
        clauses.append("status = ?")
        values.append(wanted.status)
    if wanted.after is not None:
        clauses.append("(expires_seconds, expires_nanos) > (?, ?)")
        values += [wanted.after.seconds, wanted.after.nanos]
    if wanted.until is not None:
        clauses.append("(expires_seconds, expires_nanos) <= (?, ?)")
        values += [wanted.until.seconds, wanted.until.nanos]
    return " AND ".join(clauses), values
