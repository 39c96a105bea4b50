"""Full text in PostgreSQL: the `TextIndex` port on `text_part`.

The index knows which texts have all the words; that they follow each other is seen in the texts themselves, because
what the server keeps of positions ends at 256 for each word.

What a word is, and where the words that somebody asked for stand in a text.

Letters, digits and underscores make words; case and accents do not count. That is how the other index reads texts, so
that a search finds the same in both.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from contextplane.adapters.postgres.connection import Live
from contextplane.adapters.sql.core import digest_in
from contextplane.model.catalog import Hit, Term, TextPart, terms
from contextplane.model.ids import Digest
from contextplane.model.value import Value

__all__ = ["Phrase", "PostgresTextIndex", "Word", "lexeme", "phrases", "places", "snippet", "words_in"]

_SNIPPET_WORDS = 16
_LEXEME = 200
_BEGIN, _END, _MORE = "\2", "\3", "..."


class Word(Value, frozen=True):
    """A word of a text, folded, and where it stands there."""

    text: str
    start: int
    end: int


class Phrase(Value, frozen=True):
    """Words that follow each other. `prefix`: the last one may go on."""

    words: tuple[str, ...]
    prefix: bool


def words_in(text: str) -> Iterator[Word]:
    """The words of a text, in order."""
    start, folded = -1, ""
    for at, one in enumerate(text):
        part = _part(one)
        if part is None or (start < 0 and not part):
            if start >= 0:
                yield Word(text=folded, start=start, end=at)
            start, folded = -1, ""
            continue
        if start < 0:
            start = at
        folded += part
    if start >= 0:
        yield Word(text=folded, start=start, end=len(text))


@lru_cache(maxsize=4096)
def _part(one: str) -> str | None:
    """What a character adds to a word: nothing when it is an accent, None when it ends the word."""
    category = unicodedata.category(one)
    if category == "Mn":
        return ""
    if one == "_" or category[0] in "LN" or category == "Co":
        return "".join(c for c in unicodedata.normalize("NFD", one.casefold()) if unicodedata.category(c) != "Mn")
    return None


def lexeme(word: str) -> str:
    """What the index holds of a word: the beginning of one that is longer than a row of an index may be."""
    return word[:_LEXEME]


def phrases(terms: Sequence[Term]) -> tuple[Phrase, ...]:
    """What was asked for, word by word."""
    split = ((tuple(word.text for word in words_in(term.text)), term.prefix) for term in terms)
    return tuple(Phrase(words=words, prefix=prefix) for words, prefix in split if words)


def places(words: Sequence[Word], wanted: Sequence[Phrase]) -> list[tuple[int, int]]:
    """From which word to which each place goes where one of the phrases stands; nothing when one stands nowhere."""
    found: list[tuple[int, int]] = []
    for phrase in wanted:
        here = [
            (at, at + len(phrase.words))
            for at in range(len(words) - len(phrase.words) + 1)
            if _stands(words, at, phrase)
        ]
        if not here:
            return []
        found += here
    return sorted(found)


def _stands(words: Sequence[Word], at: int, phrase: Phrase) -> bool:
    last = len(phrase.words) - 1
    if any(words[at + n].text != phrase.words[n] for n in range(last)):
        return False
    word = words[at + last].text
    return word.startswith(phrase.words[last]) if phrase.prefix else word == phrase.words[last]


def snippet(text: str, words: Sequence[Word], found: Sequence[tuple[int, int]]) -> str:
    """At most 16 words around the first place, with every place among them between U+0002 and U+0003."""
    first = max(0, min(found[0][0] - _SNIPPET_WORDS // 4, len(words) - _SNIPPET_WORDS))
    beyond = min(first + _SNIPPET_WORDS, len(words))
    start = words[first].start if first else 0
    end = words[beyond - 1].end if beyond < len(words) else len(text)
    shown, at = [_MORE] if first else [], start
    for low, high in found:
        begin, stop = words[low].start, words[min(high, beyond) - 1].end
        if begin < at or low >= beyond:
            continue
        shown += [text[at:begin], _BEGIN, text[begin:stop], _END]
        at = stop
    return "".join([*shown, text[at:end], *([_MORE] if beyond < len(words) else [])])


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
