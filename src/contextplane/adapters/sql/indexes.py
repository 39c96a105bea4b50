"""The index ports on SQL tables, except for what SQLite and PostgreSQL express differently.

- `SqlObjectIndex`: objects, the edges between them, and roots. Bulk inserts are left to each database.
- `SqlPackIndex`: the list of execution packs. Reading the tools of a pack as one column is left.
- `SqlHandoffIndex`: the list of handoff packs. Full-text search is left.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from contextplane.adapters.sql.core import SqlConnection, stored_digest
from contextplane.model.catalog import (
    BLOB,
    ROOT,
    HandoffFilter,
    HandoffPage,
    HandoffRow,
    IndexedObject,
    PackFilter,
    PackRow,
    Tally,
)
from contextplane.model.ids import Digest, HandoffId, InvalidId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.ports.indexes import KindConflict

__all__ = [
    "HANDOFF_COLUMNS",
    "REACHED",
    "SqlHandoffIndex",
    "SqlObjectIndex",
    "SqlPackIndex",
    "filter_conditions",
    "handoff_values",
]

REACHED = """
  WITH RECURSIVE reached(digest) AS (
    SELECT target FROM root
    UNION
    SELECT edge.target
    FROM reached JOIN source ON source.digest = reached.digest JOIN edge ON edge.source = source.number
  )
"""
_AFTER_ANY_TEXT = "\U0010ffff"
_SELECT_OBJECT = "SELECT digest, kind, size, traced FROM object"


class SqlObjectIndex:
    """The `ObjectIndex` port, within one transaction."""

    FIRST_PART: ClassVar[str]
    """SQL expression: the name of a root up to and including its first slash."""

    NOT_REACHED: ClassVar[str]
    """SQL condition: the object is not in `reached`."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def lookup(self, digest: Digest) -> IndexedObject | None:
        row = self._db.execute(f"{_SELECT_OBJECT} WHERE digest = ?", (digest.hex,)).fetchone()
        return self._indexed_object(row) if row else None

    def of_kind(self, kind: str) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM object WHERE kind = ? ORDER BY digest", (kind,)):
            yield stored_digest(self._db, digest)

    def tallies(self) -> tuple[Tally, ...]:
        rows = self._db.execute(
            "SELECT kind, objects, size FROM tally WHERE what = 'object' AND objects > 0 ORDER BY kind"
        )
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def recount(self) -> tuple[Tally, ...]:
        rows = self._db.execute("SELECT kind, count(*), CAST(sum(size) AS bigint) FROM object GROUP BY kind ORDER BY 1")
        return tuple(Tally(kind=kind, objects=objects, size=size) for kind, objects, size in rows)

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        rows = self._db.execute(
            "SELECT role, target FROM edge JOIN source ON source.number = edge.source"
            " WHERE source.digest = ? ORDER BY position",
            (source.hex,),
        )
        return tuple((role, stored_digest(self._db, target)) for role, target in rows)

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        rows = self._db.rows(
            "SELECT name, target FROM root WHERE name >= ? AND name < ? ORDER BY name",
            (prefix, prefix + _AFTER_ANY_TEXT),
        )
        for name, target in rows:
            yield name, stored_digest(self._db, target)

    def root_count(self, prefix: str = "") -> int:
        if prefix.endswith("/") and prefix.count("/") == 1:
            row = self._db.execute("SELECT objects FROM tally WHERE what = 'root' AND kind = ?", (prefix,)).fetchone()
            return row[0] if row else 0
        return sum(1 for _ in self.roots(prefix))

    def referenced_digests(self) -> Iterator[Digest]:
        for (target,) in self._db.rows("SELECT target FROM root UNION SELECT target FROM edge ORDER BY 1"):
            yield stored_digest(self._db, target)

    def reachable(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows(f"{REACHED} SELECT digest FROM reached ORDER BY digest"):
            yield stored_digest(self._db, digest)

    def referrers(self, target: Digest) -> tuple[str, ...]:
        rows = self._db.execute(
            "SELECT name FROM root WHERE target = ?"
            " UNION ALL SELECT 'sha256:' || source.digest FROM edge JOIN source ON source.number = edge.source"
            " WHERE substr(edge.target, 1, 12) = ? AND edge.target = ? LIMIT 5",
            (target.hex, target.hex[:12], target.hex),
        )
        return tuple(name for (name,) in rows)

    def roles_of(self, target: Digest) -> frozenset[str]:
        rows = self._db.execute(
            "SELECT DISTINCT role FROM edge WHERE substr(target, 1, 12) = ? AND target = ?",
            (target.hex[:12], target.hex),
        )
        root = self._db.execute("SELECT 1 FROM root WHERE target = ? LIMIT 1", (target.hex,)).fetchone()
        return frozenset(role for (role,) in rows) | ({ROOT} if root else set())

    def untraced_objects(self) -> Iterator[IndexedObject]:
        rows = self._db.rows(
            f"{REACHED} {_SELECT_OBJECT} WHERE NOT traced AND digest IN (SELECT digest FROM reached) ORDER BY digest"
        )
        return map(self._indexed_object, rows)

    def unreachable(self) -> Iterator[IndexedObject]:
        rows = self._db.rows(f"{REACHED} {_SELECT_OBJECT} WHERE {self.NOT_REACHED} ORDER BY digest")
        return map(self._indexed_object, rows)

    def record(self, entry: IndexedObject) -> None:
        before = self.lookup(entry.digest)
        if before is not None and before.kind != entry.kind:
            if entry.kind == BLOB:
                return
            if before.kind != BLOB:
                raise KindConflict(
                    f"recorded as {before.kind!r} before, now as {entry.kind!r}",
                    at=str(entry.digest),
                    hint="'ctx fsck --rebuild' makes the index again",
                )
            self._db.execute("DELETE FROM object WHERE digest = ?", (entry.digest.hex,))
        self._db.execute(
            "INSERT INTO object (digest, kind, size, traced) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (digest) DO UPDATE SET size = excluded.size, traced = object.traced OR excluded.traced",
            (entry.digest.hex, entry.kind, entry.size, entry.traced),
        )

    def link(self, source: Digest, role: str, target: Digest) -> None:
        self.link_all(source, [(role, target)])

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        self._db.execute("INSERT INTO source (digest) VALUES (?) ON CONFLICT (digest) DO NOTHING", (source.hex,))
        (number,) = self._db.single_row("SELECT number FROM source WHERE digest = ?", (source.hex,))
        last = self._db.single_row("SELECT max(position) FROM edge WHERE source = ?", (number,))[0] or 0
        present = set(self.targets(source)) if last else frozenset()
        self._add_edges(number, last + 1, (edge for edge in dict.fromkeys(edges) if edge not in present))

    def _add_edges(self, source: int, position: int, edges: Iterator[tuple[str, Digest]]) -> None:
        """Insert edges that are not stored yet, the first of them at this position."""
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
        self._db.execute("DELETE FROM root WHERE name >= ? AND name < ?", (prefix, prefix + _AFTER_ANY_TEXT))
        self._db.execute("DELETE FROM tally")
        self._db.execute("UPDATE object SET traced = (kind = ?) WHERE traced <> (kind = ?)", (BLOB, BLOB))
        self._db.execute(f"INSERT INTO tally SELECT 'root', {self.FIRST_PART}, count(*), 0 FROM root GROUP BY 2")
        self._db.execute("INSERT INTO tally SELECT 'object', kind, count(*), sum(size) FROM object GROUP BY kind")

    def _indexed_object(self, row: tuple[str, str, int, int]) -> IndexedObject:
        digest, kind, size, traced = row
        return IndexedObject(digest=stored_digest(self._db, digest), kind=kind, size=size, traced=bool(traced))


_PACK_COLUMNS = "digest, created_seconds, created_nanos, packed_seconds, packed_nanos, model, steps, parent, problem"
_NEWEST_PACK = "created_seconds DESC, created_nanos DESC, packed_seconds DESC, packed_nanos DESC, digest"


class SqlPackIndex(ABC):
    """The `PackIndex` port on `pack` and `pack_tool`, within one transaction."""

    TOOLS: ClassVar[str]
    """SQL expression: the tools of a pack as one value, in order."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def page(self, pack_filter: PackFilter, limit: int) -> tuple[PackRow, ...]:
        where, values = _pack_conditions(pack_filter)
        rows = self._db.execute(
            f"SELECT {_PACK_COLUMNS}, {self.TOOLS} FROM pack WHERE {where} ORDER BY {_NEWEST_PACK} LIMIT ?",
            (*values, limit),
        )
        return tuple(map(self._row, rows))

    def row(self, digest: Digest) -> PackRow | None:
        row = self._db.execute(
            f"SELECT {_PACK_COLUMNS}, {self.TOOLS} FROM pack WHERE digest = ?", (digest.hex,)
        ).fetchone()
        return self._row(row) if row else None

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._db.rows("SELECT digest FROM pack ORDER BY digest"):
            yield stored_digest(self._db, digest)

    def add(self, row: PackRow) -> None:
        self.remove(row.digest)
        (number,) = self._db.single_row(
            f"INSERT INTO pack ({_PACK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
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
        # Table by table: rows of a pack that has left the list would stay otherwise.
        for table in ("pack_tool", "text_part", "pack"):
            self._db.execute(f"DELETE FROM {table}")

    @abstractmethod
    def decode_tools(self, value: Any) -> tuple[str, ...]:  # noqa: ANN401  the type depends on `TOOLS`
        """Decode the value of `TOOLS`."""

    def _row(self, row: tuple[Any, ...]) -> PackRow:
        digest, created, created_nanos, packed, packed_nanos, model, steps, parent, problem, tools = row
        return PackRow(
            digest=stored_digest(self._db, digest),
            created=Timestamp(seconds=created, nanos=created_nanos),
            packed=Timestamp(seconds=packed, nanos=packed_nanos),
            model=model,
            steps=steps,
            parent=stored_digest(self._db, parent) if parent else None,
            tools=self.decode_tools(tools),
            problem=problem,
        )


def _pack_conditions(pack_filter: PackFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    if pack_filter.since is not None:
        clauses.append("(created_seconds, created_nanos) >= (?, ?)")
        values += [pack_filter.since.seconds, pack_filter.since.nanos]
    if pack_filter.model is not None:
        clauses.append("model = ?")
        values.append(pack_filter.model)
    if pack_filter.tool is not None:
        clauses.append("number IN (SELECT number FROM pack_tool WHERE tool = ?)")
        values.append(pack_filter.tool)
    if pack_filter.parent is not None:
        clauses.append("parent = ?")
        values.append(pack_filter.parent.hex)
    return " AND ".join(clauses), values


HANDOFF_COLUMNS = (
    "id, name, title, brief, status, revision, digest, updated_seconds, updated_nanos, expires_seconds, expires_nanos"
)
_NEWEST_HANDOFF = "updated_seconds DESC, updated_nanos DESC, revision DESC, id"
_SPAN_BITS = 12


class SqlHandoffIndex(ABC):
    """The `HandoffIndex` port on `handoff` and `handoff_tally`, within one transaction."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    @abstractmethod
    def filter_query(self, handoff_filter: HandoffFilter) -> tuple[str, str, list[object]]:
        """Return the FROM source, the WHERE condition and its values for a filter."""

    @abstractmethod
    def deadline_source(self) -> str:
        """Return the FROM source for a search by deadline alone."""

    def row(self, handoff_id: HandoffId) -> HandoffRow | None:
        row = self._db.execute(f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        return self._row(row) if row else None

    def find_by_name(self, name: str) -> tuple[HandoffRow, ...]:
        rows = self._db.execute(f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE name = ? ORDER BY id", (name,))
        return tuple(map(self._row, rows))

    def page(self, handoff_filter: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        source, where, values = self.filter_query(handoff_filter)
        paging, paging_values = (
            ("LIMIT ? OFFSET ?", (limit, offset)) if limit is not None else self.offset_clause(offset)
        )
        # Select the numbers first, from an index alone, and look up only the rows of the page.
        rows = self._db.execute(
            f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE number IN"
            f" (SELECT number FROM {source} WHERE {where} ORDER BY {_NEWEST_HANDOFF} {paging})"
            f" ORDER BY {_NEWEST_HANDOFF}",
            (*values, *paging_values),
        )
        page_rows = tuple(map(self._row, rows))
        if handoff_filter.query:
            total = int(self._db.single_row(f"SELECT count(*) FROM {source} WHERE {where}", values)[0])
        else:
            total = self._count(handoff_filter)
        return HandoffPage(rows=page_rows, total=total)

    @abstractmethod
    def offset_clause(self, offset: int) -> tuple[str, tuple[object, ...]]:
        """Return the SQL clause, and its values, that skips `offset` rows and takes all others."""

    def ids(self) -> Iterator[HandoffId]:
        for (text,) in self._db.rows("SELECT id FROM handoff ORDER BY id"):
            yield self._stored_id(text)

    def _count(self, handoff_filter: HandoffFilter) -> int:
        """Count the packs that match a filter without a query.

        Whole spans come from the tally. Rows are counted only in a span that a bound falls into.
        """
        low = handoff_filter.after.seconds >> _SPAN_BITS if handoff_filter.after else None
        high = handoff_filter.until.seconds >> _SPAN_BITS if handoff_filter.until else None
        clauses, values = ["TRUE"], list[object]()
        if low is not None:
            clauses.append("span > ?")
            values.append(low)
        if high is not None:
            clauses.append("span < ?")
            values.append(high)
        if handoff_filter.status is not None:
            clauses.append("status = ?")
            values.append(handoff_filter.status)
        tallied = f"SELECT coalesce(sum(packs), 0) FROM handoff_tally WHERE {' AND '.join(clauses)}"
        count = int(self._db.single_row(tallied, values)[0])
        for span in {low, high} - {None}:
            count += self._count_in_span(handoff_filter, span or 0)
        return count

    def _count_in_span(self, handoff_filter: HandoffFilter, span: int) -> int:
        where, values = filter_conditions(handoff_filter)
        row = self._db.single_row(
            f"SELECT count(*) FROM {self.deadline_source()}"
            f" WHERE expires_seconds >= ? AND expires_seconds < ? AND {where}",
            (span << _SPAN_BITS, span + 1 << _SPAN_BITS, *values),
        )
        return int(row[0])

    def _stored_id(self, text: object) -> HandoffId:
        try:
            return HandoffId(str(text))
        except InvalidId as error:
            raise CatalogCorrupt(
                f"a row holds no handoff pack: {error.message}", hint=self._db.recovery_hint
            ) from error

    def _row(self, row: tuple[Any, ...]) -> HandoffRow:
        text, name, title, brief, status, revision, digest, updated, updated_nanos, expires, expires_nanos = row
        return HandoffRow(
            id=self._stored_id(text),
            name=name,
            title=title,
            brief=brief,
            status=status,
            revision=revision,
            digest=stored_digest(self._db, digest),
            updated=Timestamp(seconds=updated, nanos=updated_nanos),
            expires=Timestamp(seconds=expires, nanos=expires_nanos),
        )


def handoff_values(row: HandoffRow) -> tuple[object, ...]:
    """Return the values of a row in the order of `HANDOFF_COLUMNS`."""
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


def filter_conditions(handoff_filter: HandoffFilter) -> tuple[str, list[object]]:
    """Return the WHERE condition of a filter's status and deadline, and its values."""
    clauses, values = ["TRUE"], list[object]()
    if handoff_filter.status is not None:
        clauses.append("status = ?")
        values.append(handoff_filter.status)
    if handoff_filter.after is not None:
        clauses.append("(expires_seconds, expires_nanos) > (?, ?)")
        values += [handoff_filter.after.seconds, handoff_filter.after.nanos]
    if handoff_filter.until is not None:
        clauses.append("(expires_seconds, expires_nanos) <= (?, ?)")
        values += [handoff_filter.until.seconds, handoff_filter.until.nanos]
    return " AND ".join(clauses), values
