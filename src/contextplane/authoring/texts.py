"""Every text of a document with its place, for laws about content that may not be written anywhere.

Almost every document keeps these laws, and is passed fast: it is encoded as JSON once, and searched as a whole. Only
where something may be wrong are its texts checked one by one, with their places.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar, overload

import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.policy.detect.invisible_text import normalize
from contextplane.policy.detect.personal_data import may_hold_number
from contextplane.policy.detect.secrets import LONG_PIECE
from contextplane.policy.regex_safety import LazyPattern

__all__ = ["DocumentTexts", "Identify", "lazy_property"]

T = TypeVar("T")
O = TypeVar("O")  # noqa: E741  an owner


class lazy_property(Generic[O, T]):  # noqa: N801  it reads like `property`
    """A property that is computed on first access, then stored on its owner.

    As `functools.cached_property`, without its lock: the lock takes longer than most properties here.
    """

    def __init__(self, make: Callable[[O], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Any]) -> "lazy_property[O, T]": ...
    @overload
    def __get__(self, owner: O, kind: type[Any]) -> T: ...
    def __get__(self, owner: O | None, kind: type[Any]) -> "T | lazy_property[O, T]":
        if owner is None:
            return self
        value = owner.__dict__[self.name] = self.make(owner)
        return value


Identify = Callable[[str], str | None]
"""Returns the kind of official number that a text is, such as an Aadhaar or a PAN; None when it is none."""

_LONG_NAME = 20
"""A shorter identifier is the name of a field and no secret; a longer name is checked like a text."""

_LONG_NUMBER = 10**11
"""From here on a number may be that of a card or a person, and is checked like a text."""

# A text with one of these signs is more than a name: a character anywhere, or a character in a certain context. Colons
# and equals signs count after a letter only, which excludes addresses, times, ranges and the ends of names in JSON.
# Each pattern begins with its character: such a search is several times as fast as any other. What a text without
# any match lacks stands before it.
_BARE = (" ", "(")
_SIGNS = tuple(
    (need, re.compile(pattern))
    for need, pattern in (
        *((":", r":(?<=[A-Za-z]:)(?!//)"), ("=", r"=(?:(?<=[A-Za-z]=)|(?=>))"), ("<", r"<(?=\w)"), ("#", "#(?=!)")),
        *(("TODO", "O(?<=TODO)"), ("X", "X(?:(?<=FIX)(?=ME)|(?<=XXX))")),
    )
)
_MASK = bytes(ord("x") if bytes([byte]).isalnum() else ord(" ") for byte in range(256))
"""Turns each letter and digit of ASCII into an x, and every other byte into a blank."""

_LONG = b"x" * LONG_PIECE
_ENCODER = msgspec.json.Encoder()


class DocumentTexts:
    """The texts of a document, and those names of members that may hold content.

    `identify` recognises official numbers. It is passed in, because the library that knows them is slow to load.
    """

    def __init__(self, value: Json, *, identify: Identify | None = None) -> None:
        self.value = value
        self.identify = identify

    @lazy_property
    def _encoded(self) -> bytes:
        return _ENCODER.encode(self.value)

    @lazy_property
    def _json(self) -> str:
        return self._encoded.decode()

    @lazy_property
    def is_simple(self) -> bool:
        """Whether the JSON of the document is plain ASCII without escapes, so that it holds every text as is."""
        return self._json.isascii() and "\\" not in self._json and "\x7f" not in self._json

    @property
    def has_special_characters(self) -> bool:
        """Whether a text may hold a character that is escaped in JSON, or is not ASCII."""
        return not self.is_simple

    @lazy_property
    def may_hold_null(self) -> bool:
        """Whether a member of the document may be null."""
        return ":null" in self._json

    @lazy_property
    def full_text(self) -> str:
        """The whole document as a reader sees it, each text in quotes. What it lacks, every text lacks."""
        if self.is_simple:
            return self._json
        return "".join(f'"{at.rpartition("/")[2]}":"{text}"' for at, text in self.texts)

    @lazy_property
    def full_bytes(self) -> bytes:
        """The same whole document as bytes."""
        return self._encoded if self.is_simple else self.full_text.encode(errors="replace")

    @lazy_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Each text as a reader sees it, after its JSON Pointer, in the order of the document."""
        if self.is_simple:
            return self.raw_texts
        return tuple((at, normalize(text)) for at, text in self.raw_texts)

    @lazy_property
    def raw_texts(self) -> tuple[tuple[str, str], ...]:
        """The same texts with every character that was written, invisible ones included."""
        return tuple(_texts_with_places(self.value))

    @lazy_property
    def sentences(self) -> tuple[str, ...]:
        """The texts that are more than a name, without their places."""
        if self.is_simple:
            return tuple(_quoted_with_signs(self.full_text))
        return tuple(text for _, text in self.texts if not text.isprintable() or _is_sentence(text))

    @lazy_property
    def prose(self) -> str:
        """All sentences in small letters, one per line."""
        return "\n".join(self.sentences).lower()

    @lazy_property
    def pieces(self) -> tuple[str, ...]:
        """The long runs of letters and digits."""
        data = self.full_bytes
        mask, pieces = data.translate(_MASK), []
        at = mask.find(_LONG)
        while at >= 0:
            end = mask.find(b" ", at)
            end = end if end >= 0 else len(mask)
            pieces.append(data[at:end].decode())
            at = mask.find(_LONG, end)
        return tuple(pieces)

    @lazy_property
    def may_hold_number(self) -> bool:
        """Whether a text may hold the number of a card, an account, a person or a telephone."""
        return may_hold_number(self.full_bytes)

    def sentences_with(self, pattern: LazyPattern, *needs: str) -> Iterator[tuple[str, str]]:
        """Yield the sentences that match a pattern, each after its place.

        `needs` are texts in small letters of which every match holds one. Searching them is fast and a pattern is slow:
        a document without mistakes pays for `needs` only.
        """
        if any(map(self.prose.__contains__, needs)):
            return self.places_of({text for text in self.sentences if pattern().search(text)})
        return iter(())

    def places_of(self, texts: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield every occurrence of these texts, each after its place."""
        return ((at, text) for at, text in self.texts if text in texts) if texts else iter(())


def _is_sentence(text: str) -> bool:
    return any(char in text for char in _BARE) or any(sign.search(text) for _, sign in _SIGNS)


def _quoted_with_signs(json: str) -> dict[str, None]:
    """Return the texts between quotes that hold a sign, each once."""
    quoted: dict[str, None] = {}
    for char in _BARE:
        at = json.find(char)
        while at >= 0:
            end = json.index('"', at)
            quoted[json[json.rindex('"', 0, at) + 1 : end]] = None
            at = json.find(char, end)
    for need, sign in _SIGNS:
        match = sign.search(json) if need in json else None
        while match:
            end = json.index('"', match.start())
            quoted[json[json.rindex('"', 0, match.start()) + 1 : end]] = None
            match = sign.search(json, end)
    return quoted


def _texts_with_places(value: Json) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, Json]] = [("", value)]
    while todo:
        at, part = todo.pop()
        if isinstance(part, str):
            yield at, part
        elif isinstance(part, dict):
            names = (name for name in part if len(name) >= _LONG_NAME or not name.isidentifier() or not name.isascii())
            yield from ((at + pointer([name]), name) for name in names)
            todo += [(at + pointer([key]), member) for key, member in reversed(part.items())]
        elif isinstance(part, list | tuple):
            todo += [(f"{at}/{n}", element) for n, element in reversed(list(enumerate(part)))]
        elif isinstance(part, int | float) and abs(part) >= _LONG_NUMBER:
            yield at, f"{part:.0f}"
