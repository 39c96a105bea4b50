"""Full text in SQLite's FTS5: the `TextIndex` port on `text_part` and `words`."""

from collections.abc import Iterable
from itertools import islice

from contextplane.adapters.sql.live import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.ports.pack_index import Hit, TextPart
from contextplane.ports.text_query import terms

__all__ = ["SqliteTextIndex"]

_SNIPPET_WORDS = 16
_AT_ONCE = 256


class SqliteTextIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[Hit, ...]:
        # Each term is a quoted string to FTS5: nothing that people type is an operator of it.
        query = " ".join('"' + one.text.replace('"', '""') + '"' + "*" * one.prefix for one in terms(words))
        # By number and not by rank: ranking reads every match, and the cost would grow with what is stored.
        rows = self._db.execute(
            "SELECT pack.digest, text_part.part, snippet(words, 0, char(2), char(3), '...', ?)"
            " FROM words JOIN text_part ON text_part.id = words.rowid JOIN pack ON pack.number = text_part.number"
            " WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?",
            (_SNIPPET_WORDS, query, limit),
        )
        return tuple(
            Hit(pack=digest_in(self._db, digest), part=part, snippet=snippet) for digest, part, snippet in rows
        )

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        number = self._db.one("SELECT number FROM pack WHERE digest = ?", (pack.hex,))[0]
        last = self._db.one("SELECT max(id) FROM text_part")[0] or 0
        numbered = enumerate(parts, last + 1)
        # Some at a time: all the texts of a pack may be more than fits.
        while some := list(islice(numbered, _AT_ONCE)):
            places = ((id_, number, part.part) for id_, part in some)
            self._db.executemany("INSERT INTO text_part (id, number, part) VALUES (?, ?, ?)", places)
            words = ((id_, part.text) for id_, part in some)
            self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", words)
