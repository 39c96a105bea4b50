"""Full text in PostgreSQL: the `TextIndex` port on `text_part`.

The index knows which texts have all the words; that they follow each other is seen in the texts themselves, because
what the server keeps of positions ends at 256 for each word.
"""

from collections.abc import Iterable
from itertools import islice

from contextplane.adapters.postgres.connect import Live
from contextplane.adapters.postgres.words import Phrase, lexeme, phrases, places, snippet, words_in
from contextplane.adapters.sql.live import digest_in
from contextplane.model.ids import Digest
from contextplane.ports.pack_index import Hit, TextPart
from contextplane.ports.text_query import terms

__all__ = ["PostgresTextIndex"]


class PostgresTextIndex:
    """Lives within one transaction of the catalog."""

    def __init__(self, db: Live) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[Hit, ...]:
        wanted = phrases(terms(words))
        if not wanted:
            return ()
        # By number and not by rank: the last one first, and no more are looked at than are asked for.
        rows = self._db.rows(
            "SELECT pack.digest, text_part.part, text_part.body FROM text_part JOIN pack USING (number)"
            " WHERE text_part.lexemes @@ ?::tsquery ORDER BY text_part.id DESC",
            (" & ".join(_asked(phrase) for phrase in wanted),),
            at_once=max(limit, 1),
        )
        hits = (hit for digest, part, body in rows if (hit := self._hit(digest, part, body, wanted)) is not None)
        return tuple(islice(hits, limit))

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        (number,) = self._db.one("SELECT number FROM pack WHERE digest = ?", (pack.hex,))
        self._db.executemany(
            "INSERT INTO text_part (number, part, body, lexemes) VALUES (?, ?, ?, array_to_tsvector(?::text[]))",
            ((number, part.part, part.text, _lexemes(part.text)) for part in parts),
        )

    def _hit(self, digest: str, part: str, body: str, wanted: tuple[Phrase, ...]) -> Hit | None:
        words = tuple(words_in(body))
        found = places(words, wanted)
        return Hit(pack=digest_in(self._db, digest), part=part, snippet=snippet(body, words, found)) if found else None


def _lexemes(text: str) -> list[str]:
    return sorted({lexeme(word.text) for word in words_in(text)})


def _asked(phrase: Phrase) -> str:
    """All words of a phrase as the server takes them: quoted, so that nothing in them is an operator."""
    quoted = [f"'{lexeme(word)}'" for word in phrase.words]
    # A cut word is the beginning of what it was cut from, in the index as here.
    return " & ".join([*quoted[:-1], quoted[-1] + ":*" * phrase.prefix])
