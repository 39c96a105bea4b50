"""Full-text search in PostgreSQL: the `TextIndex` port on `text_part`.

Letters, digits and underscores make words; case and accents are ignored. FTS5 splits texts in the same way, so a
search finds the same in both databases.

The index of the server finds the texts that have all the words. Whether the words of a phrase follow each other is
checked here, because the server keeps at most 256 positions of a word.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from contextplane.adapters.postgres.connection import PostgresConnection
from contextplane.adapters.sql.core import stored_digest
from contextplane.model.catalog import SearchHit, SearchTerm, TextPart, search_terms
from contextplane.model.ids import Digest
from contextplane.model.value import Value

__all__ = ["Phrase", "PostgresTextIndex", "Word", "lexeme", "match_positions", "phrases", "snippet", "words_in"]

_SNIPPET_WORDS = 16
_MAX_LEXEME = 200
_BEGIN, _END, _ELLIPSIS = "\2", "\3", "..."


class Word(Value, frozen=True):
    """A word of a text, case-folded, with its position in the text."""

    text: str
    start: int
    end: int


class Phrase(Value, frozen=True):
    """Words that follow each other. `prefix`: the last word may be longer in the text."""

    words: tuple[str, ...]
    prefix: bool


def words_in(text: str) -> Iterator[Word]:
    """Yield the words of a text, in order."""
    start, folded = -1, ""
    for at, character in enumerate(text):
        letters = _fold_character(character)
        if letters is None or (start < 0 and not letters):
            if start >= 0:
                yield Word(text=folded, start=start, end=at)
            start, folded = -1, ""
            continue
        if start < 0:
            start = at
        folded += letters
    if start >= 0:
        yield Word(text=folded, start=start, end=len(text))


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str | None:
    """Return what a character adds to a word: "" for an accent, None for a character that ends the word."""
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    if character == "_" or category[0] in "LN" or category == "Co":
        return "".join(c for c in unicodedata.normalize("NFD", character.casefold()) if unicodedata.category(c) != "Mn")
    return None


def lexeme(word: str) -> str:
    """Return what the index holds of a word: its beginning, because a row of an index is limited."""
    return word[:_MAX_LEXEME]


def phrases(terms: Sequence[SearchTerm]) -> tuple[Phrase, ...]:
    """Split search terms into phrases; a term without a word is left out."""
    split = ((tuple(word.text for word in words_in(term.text)), term.prefix) for term in terms)
    return tuple(Phrase(words=words, prefix=prefix) for words, prefix in split if words)


def match_positions(words: Sequence[Word], phrases: Sequence[Phrase]) -> list[tuple[int, int]]:
    """Return the word ranges where a phrase matches, sorted; empty unless every phrase matches."""
    ranges: list[tuple[int, int]] = []
    for phrase in phrases:
        matches = [
            (at, at + len(phrase.words))
            for at in range(len(words) - len(phrase.words) + 1)
            if _matches_at(words, at, phrase)
        ]
        if not matches:
            return []
        ranges += matches
    return sorted(ranges)


def _matches_at(words: Sequence[Word], at: int, phrase: Phrase) -> bool:
    last = len(phrase.words) - 1
    if any(words[at + n].text != phrase.words[n] for n in range(last)):
        return False
    word = words[at + last].text
    return word.startswith(phrase.words[last]) if phrase.prefix else word == phrase.words[last]


def snippet(text: str, words: Sequence[Word], ranges: Sequence[tuple[int, int]]) -> str:
    """Return at most 16 words around the first range, each range between U+0002 and U+0003."""
    first = max(0, min(ranges[0][0] - _SNIPPET_WORDS // 4, len(words) - _SNIPPET_WORDS))
    beyond = min(first + _SNIPPET_WORDS, len(words))
    start = words[first].start if first else 0
    end = words[beyond - 1].end if beyond < len(words) else len(text)
    pieces, at = [_ELLIPSIS] if first else [], start
    for low, high in ranges:
        begin, stop = words[low].start, words[min(high, beyond) - 1].end
        if begin < at or low >= beyond:
            continue
        pieces += [text[at:begin], _BEGIN, text[begin:stop], _END]
        at = stop
    return "".join([*pieces, text[at:end], *([_ELLIPSIS] if beyond < len(words) else [])])


class PostgresTextIndex:
    """The `TextIndex` port on `text_part`, within one transaction."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def search(self, words: str, limit: int) -> tuple[SearchHit, ...]:
        query = phrases(search_terms(words))
        if not query:
            return ()
        # Ordered by number, not by rank: the newest first, and no more rows are read than needed.
        rows = self._db.rows(
            "SELECT pack.digest, text_part.part, text_part.body FROM text_part JOIN pack USING (number)"
            " WHERE text_part.lexemes @@ ?::tsquery ORDER BY text_part.id DESC",
            (" & ".join(_tsquery(phrase) for phrase in query),),
            at_once=max(limit, 1),
        )
        hits = (hit for digest, part, body in rows if (hit := self._hit(digest, part, body, query)) is not None)
        return tuple(islice(hits, limit))

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        (number,) = self._db.single_row("SELECT number FROM pack WHERE digest = ?", (pack.hex,))
        self._db.executemany(
            "INSERT INTO text_part (number, part, body, lexemes) VALUES (?, ?, ?, array_to_tsvector(?::text[]))",
            ((number, part.part, part.text, _lexemes(part.text)) for part in parts),
        )

    def _hit(self, digest: str, part: str, body: str, query: tuple[Phrase, ...]) -> SearchHit | None:
        words = tuple(words_in(body))
        ranges = match_positions(words, query)
        return (
            SearchHit(pack=stored_digest(self._db, digest), part=part, snippet=snippet(body, words, ranges))
            if ranges
            else None
        )


def _lexemes(text: str) -> list[str]:
    return sorted({lexeme(word.text) for word in words_in(text)})


def _tsquery(phrase: Phrase) -> str:
    """Return the words of a phrase in the syntax of `tsquery`, quoted, so that no input is an operator."""
    quoted = [f"'{lexeme(word)}'" for word in phrase.words]
    # A long word is cut here as in the index, so both still match.
    return " & ".join([*quoted[:-1], quoted[-1] + ":*" * phrase.prefix])
