"""The list of handoff packs in PostgreSQL: the `HandoffIndex` port on `handoff` and `handoff_tally`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.adapters.postgres.connect import RESTORE, Live, digest_in
from contextplane.model.ids import HandoffId, InvalidId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.ports.handoff_index import HandoffFilter, HandoffPage, HandoffRow

if TYPE_CHECKING:
    from contextplane.model.handoff import Status

__all__ = ["PostgresHandoffIndex"]

_COLUMNS = (
    "id, name, title, brief, status, revision, digest, updated_seconds, updated_nanos, expires_seconds, expires_nanos"
)
_NEWEST = "updated_seconds DESC, updated_nanos DESC, revision DESC, id"
_SPAN_BITS = 12
_TRIGRAM = 3
_MATCHED = 64
"""So many characters of a long text are looked up in the index; whether the rest follows is looked at one by one."""


class PostgresHandoffIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def row(self, handoff_id: HandoffId) -> HandoffRow | None:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM handoff WHERE id = %s", (handoff_id.text,)).fetchone()
        return _row(row) if row else None

    def named(self, name: str) -> tuple[HandoffRow, ...]:
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM handoff WHERE name = %s ORDER BY id", (name,))
        return tuple(map(_row, rows))

    def page(self, wanted: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        where, values = _meant(wanted)
        # The numbers first, from an index alone; only what the page shows is looked up.
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM handoff WHERE number IN"
            f" (SELECT number FROM handoff WHERE {where} ORDER BY {_NEWEST} LIMIT %s OFFSET %s) ORDER BY {_NEWEST}",
            (*values, limit, offset),
        )
        found = tuple(map(_row, rows))
        if wanted.query:
            total = int(self._db.one(f"SELECT count(*) FROM handoff WHERE {where}", values)[0])
        else:
            total = self._counted(wanted)
        return HandoffPage(rows=found, total=total)

    def ids(self) -> Iterator[HandoffId]:
        for (text,) in self._db.rows("SELECT id FROM handoff ORDER BY id"):
            yield _id_in(text)

    def put(self, row: HandoffRow) -> None:
        self.remove(row.id)
        self._db.execute(
            f"INSERT INTO handoff ({_COLUMNS}, searched, trigrams)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::text[])",
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
                row.searched,
                sorted(set(_trigrams(row.searched))),
            ),
        )

    def remove(self, handoff_id: HandoffId) -> None:
        self._db.execute("DELETE FROM handoff WHERE id = %s", (handoff_id.text,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM handoff")
        self._db.execute("DELETE FROM handoff_tally")

    def _counted(self, wanted: HandoffFilter) -> int:
        """How many are meant: whole spans from the tally, and one by one only where a bound falls within a span."""
        low = wanted.after.seconds >> _SPAN_BITS if wanted.after else None
        high = wanted.until.seconds >> _SPAN_BITS if wanted.until else None
        clauses, values = ["TRUE"], list[object]()
        if low is not None:
            clauses.append("span > %s")
            values.append(low)
        if high is not None:
            clauses.append("span < %s")
            values.append(high)
        if wanted.status is not None:
            clauses.append("status = %s")
            values.append(wanted.status)
        whole = f"SELECT coalesce(sum(packs), 0) FROM handoff_tally WHERE {' AND '.join(clauses)}"
        counted = int(self._db.one(whole, values)[0])
        for span in {low, high} - {None}:
            counted += self._in_span(wanted, span or 0)
        return counted

    def _in_span(self, wanted: HandoffFilter, span: int) -> int:
        where, values = _bounds(wanted)
        row = self._db.one(
            f"SELECT count(*) FROM handoff WHERE expires_seconds >= %s AND expires_seconds < %s AND {where}",
            (span << _SPAN_BITS, span + 1 << _SPAN_BITS, *values),
        )
        return int(row[0])


def _meant(wanted: HandoffFilter) -> tuple[str, list[object]]:
    where, values = _bounds(wanted)
    if wanted.query:
        query = wanted.query.casefold()
        if len(query) >= _TRIGRAM:
            where += " AND trigrams @> %s::text[]"
            values.append(_trigrams(query[:_MATCHED]))
        # All parts of it may be there and not the whole: the index only says where to look.
        where += " AND strpos(searched, %s) > 0"
        values.append(query)
    return where, values


def _bounds(wanted: HandoffFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    if wanted.status is not None:
        clauses.append("status = %s")
        values.append(wanted.status)
    if wanted.after is not None:
        clauses.append("(expires_seconds, expires_nanos) > (%s, %s)")
        values += [wanted.after.seconds, wanted.after.nanos]
    if wanted.until is not None:
        clauses.append("(expires_seconds, expires_nanos) <= (%s, %s)")
        values += [wanted.until.seconds, wanted.until.nanos]
    return " AND ".join(clauses), values


def _trigrams(text: str) -> list[str]:
    return [text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)]


def _id_in(text: object) -> HandoffId:
    try:
        return HandoffId(str(text))
    except InvalidId as error:
        raise CatalogCorrupt(f"a row holds no handoff pack: {error.message}", hint=RESTORE) from error


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
