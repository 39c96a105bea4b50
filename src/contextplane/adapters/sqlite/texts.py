"""Full text in SQLite's FTS5: the `TextIndex` port on `text_part` and `words`."""

from collections.abc import Iterable

from contextplane.adapters.sqlite.connect import Live, digest_in
from contextplane.model.ids import Digest
from contextplane.ports.pack_index import Hit, TextPart

__all__ = ["SqliteTextIndex"]

_SNIPPET_WORDS = 16


class SqliteTextIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[Hit, ...]:
        # Each word is a quoted string to FTS5: nothing that people type is an operator.
        query = " ".join('"' + word.replace('"', '""') + '"' for word in words.split())
        if not query:
            return ()
        # By number and not by rank: ranking reads every match, and the cost would grow with what is stored.
        rows = self._db.execute(
            "SELECT pack.digest, text_part.part, snippet(words, 0, char(2), char(3), '...', ?)"
            " FROM words JOIN text_part ON text_part.id = words.rowid JOIN pack ON pack.number = text_part.number"
            " WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?",
            (_SNIPPET_WORDS, query, limit),
        )
        return tuple(Hit(pack=digest_in(digest), part=part, snippet=snippet) for digest, part, snippet in rows)

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        number = self._db.execute("SELECT number FROM pack WHERE digest = ?", (pack.hex,)).fetchone()[0]
        for part in parts:
            cursor = self._db.execute("INSERT INTO text_part (number, part) VALUES (?, ?)", (number, part.part))
            self._db.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (cursor.lastrowid, part.text))
