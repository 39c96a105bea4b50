"""The list of handoff packs: the `HandoffIndex` port on `handoff` and `handoff_tally`, but for how texts are found."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from contextplane.adapters.sql.live import Live, digest_in
from contextplane.model.ids import HandoffId, InvalidId
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogCorrupt
from contextplane.ports.handoff_index import HandoffFilter, HandoffPage, HandoffRow

__all__ = ["COLUMNS", "SqlHandoffIndex", "bounds", "values_of"]

COLUMNS = (
    "id, name, title, brief, status, revision, digest, updated_seconds, updated_nanos, expires_seconds, expires_nanos"
)
_NEWEST = "updated_seconds DESC, updated_nanos DESC, revision DESC, id"
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
            f" (SELECT number FROM {source} WHERE {where} ORDER BY {_NEWEST} {cut}) ORDER BY {_NEWEST}",
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
