"""The list of handoff packs in SQLite: the `HandoffIndex` port on `handoff`, `handoff_tally` and `handoff_text`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.adapters.sqlite.connect import Live, digest_in
from contextplane.model.ids import HandoffId, InvalidId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.ports.handoff_index import HandoffFilter, HandoffPage, HandoffRow

if TYPE_CHECKING:
    from contextplane.model.handoff import Status

__all__ = ["SqliteHandoffIndex"]

_COLUMNS = (
    "id, name, title, brief, status, revision, digest, updated_seconds, updated_nanos, expires_seconds, expires_nanos"
)
_NEWEST = "updated_seconds DESC, updated_nanos DESC, revision DESC, id"
_SPAN_BITS = 12
_TRIGRAM = 3
_MATCHED = 64
"""FTS5 finds so many characters of a long text quickly; whether the rest follows is then looked at one by one."""
_ALL = -1


class SqliteHandoffIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def row(self, handoff_id: HandoffId) -> HandoffRow | None:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        return _row(row) if row else None

    def named(self, name: str) -> tuple[HandoffRow, ...]:
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM handoff WHERE name = ? ORDER BY id", (name,))
        return tuple(map(_row, rows))

    def page(self, wanted: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        source, where, values = _meant(wanted)
        # The numbers first, from an index alone; only what the page shows is looked up.
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM handoff WHERE number IN"
            f" (SELECT number FROM {source} WHERE {where} ORDER BY {_NEWEST} LIMIT ? OFFSET ?) ORDER BY {_NEWEST}",
            (*values, _ALL if limit is None else limit, offset),
        )
        found = tuple(map(_row, rows))
        if wanted.query:
            total = self._db.execute(f"SELECT count(*) FROM {source} WHERE {where}", tuple(values)).fetchone()[0]
        else:
            total = self._counted(wanted)
        return HandoffPage(rows=found, total=total)

    def ids(self) -> Iterator[HandoffId]:
        for (text,) in self._db.execute("SELECT id FROM handoff ORDER BY id"):
            yield _id_in(text)

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        cursor = self._db.execute(
            f"INSERT INTO handoff ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
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
            ),
        )
        self._db.execute(
            "INSERT INTO handoff_text (rowid, text) VALUES (?, ?)", (cursor.lastrowid, _whole(row.searched))
        )

    def remove(self, handoff_id: HandoffId) -> None:
        row = self._db.execute("SELECT number FROM handoff WHERE id = ?", (handoff_id.text,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM handoff_text WHERE rowid = ?", row)
            self._db.execute("DELETE FROM handoff WHERE number = ?", row)

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff_text")
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

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
        counted = int(self._db.execute(whole, tuple(values)).fetchone()[0])
        for span in {low, high} - {None}:
            counted += self._in_span(wanted, span or 0)
        return counted

    def _in_span(self, wanted: HandoffFilter, span: int) -> int:
        where, values = _bounds(wanted)
        row = self._db.execute(
            "SELECT count(*) FROM handoff INDEXED BY handoff_deadline"
            f" WHERE expires_seconds >= ? AND expires_seconds < ? AND {where}",
            (span << _SPAN_BITS, span + 1 << _SPAN_BITS, *values),
        ).fetchone()
        return int(row[0])


def _meant(wanted: HandoffFilter) -> tuple[str, str, list[object]]:
    """Where to look, and for what. A deadline that is bounded above is near, so few have one."""
    where, values = _bounds(wanted)
    if wanted.query:
        source = "handoff JOIN handoff_text ON handoff_text.rowid = number"
        query = _whole(wanted.query.casefold())
        if len(query) >= _TRIGRAM:
            # One quoted string to FTS5: nothing that people type is an operator.
            where = f"handoff_text MATCH ? AND {where}"
            values.insert(0, '"' + query[:_MATCHED].replace('"', '""') + '"')
        if not _TRIGRAM <= len(query) <= _MATCHED:
            where += " AND instr(handoff_text.text, ?)"
            values.append(query)
        return source, where, values
    newest = "handoff_newest" if wanted.status is None else "handoff_status"
    index = newest if wanted.until is None else "handoff_deadline"
    return f"handoff INDEXED BY {index}", where, values


def _bounds(wanted: HandoffFilter) -> tuple[str, list[object]]:
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


def _whole(text: str) -> str:
    # FTS5 takes a NUL for the end of the text.
    return text.replace("\0", "\x01")


def _id_in(text: object) -> HandoffId:
    try:
        return HandoffId(str(text))
    except InvalidId as error:
        raise CatalogCorrupt(
            f"a row holds no handoff pack: {error.message}", hint="'ctx fsck --rebuild' saves what can be read"
        ) from error


def _row(
    row: tuple[str, str | None, str | None, str | None, "Status", int, str, int, int, int, int],
) -> HandoffRow:
    text, name, title, brief, status, revision, digest, updated, updated_nanos, expires, expires_nanos = row
    return HandoffRow(
        id=_id_in(text),
        name=name,
        title=title,
        brief=brief,
        status=status,
        revision=revision,
        digest=digest_in(digest),
        updated=Timestamp(seconds=updated, nanos=updated_nanos),
        expires=Timestamp(seconds=expires, nanos=expires_nanos),
    )
