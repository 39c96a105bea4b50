"""Every text of a document with its place, for laws about what may not be written anywhere in it.

Almost every document holds nothing of the kind, and is told so fast: it is written as JSON once, and looked at as a
whole. Only where something may be wrong are its texts looked at one by one, with their places.

A property that is worked out once.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, TypeVar, overload

import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.policy.detect.invisible_text import plain
from contextplane.policy.detect.personal_data import may_hold_number
from contextplane.policy.detect.secrets import LONG_PIECE
from contextplane.policy.lazy_regex import Expression

__all__ = ["Identify", "Texts", "kept"]

T = TypeVar("T")
O = TypeVar("O")  # noqa: E741  an owner


class kept(Generic[O, T]):  # noqa: N801  it reads like `property`
    """A property that is worked out when it is first asked for, and kept.

    As `functools.cached_property`, without its lock: that takes longer than most of what is kept here.
    """

    def __init__(self, make: Callable[[O], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Any]) -> "kept[O, T]": ...
    @overload
    def __get__(self, owner: O, kind: type[Any]) -> T: ...
    def __get__(self, owner: O | None, kind: type[Any]) -> "T | kept[O, T]":
        if owner is None:
            return self
        value = owner.__dict__[self.name] = self.make(owner)
        return value


Identify = Callable[[str], str | None]
"""Which official number a text is, such as an Aadhaar or a PAN; None when it is none."""

_LONG_NAME = 20
"""No name of a field that we know is so long and a secret; from here on a name is looked at like a text."""

_LONG_NUMBER = 10**11
"""From here on a number may be one that stands for a card or a person, and is looked at like a text."""

# A text with one of these is more than a name: a character that tells it anywhere, or one and how it stands there. That
# colons and equals signs follow a letter keeps addresses, times and ranges out, and the ends of names in JSON. Such an
# expression begins with its character: it is searched for several times as fast as any other.
_BARE = (" ", "(")
_SIGNS = tuple(
    (char, re.compile(pattern))
    for char, pattern in (
        *((":", r":(?<=[A-Za-z]:)(?!//)"), ("=", r"=(?:(?<=[A-Za-z]=)|(?=>))"), ("<", r"<(?=\w)"), ("#", "#(?=!)")),
        *(("O", "O(?<=TODO)"), ("X", "X(?:(?<=FIX)(?=ME)|(?<=XXX))")),
    )
)
_MASK = bytes(ord("x") if bytes([byte]).isalnum() else ord(" ") for byte in range(256))
"""Letters and digits of ASCII, and all else."""

_LONG = b"x" * LONG_PIECE
_ENCODER = msgspec.json.Encoder()


class Texts:
    """The texts of a document, and the names in it that are no plain names.

    `identify` tells which official number a text is; handed in, because whoever knows them all is slow to load.
    """

    def __init__(self, value: Json, *, identify: Identify | None = None) -> None:
        self.value = value
        self.identify = identify

    @kept
    def _json(self) -> str:
        return _ENCODER.encode(self.value).decode()

    @kept
    def is_simple(self) -> bool:
        """Whether every text stands in the JSON of the document as it is: all is ASCII, and nothing is escaped."""
        return self._json.isascii() and "\\" not in self._json and "\x7f" not in self._json

    @kept
    def written(self) -> str:
        """The whole document as a reader takes it, each text in quotes: what is not in it is in none of them."""
        if self.is_simple:
            return self._json
        return "".join(f'"{at.rpartition("/")[2]}":"{text}"' for at, text in self.texts)

    @kept
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Each as a reader takes it, with its JSON Pointer, in the order of the document."""
        if self.is_simple:
            return self.as_written
        return tuple((at, plain(text)) for at, text in self.as_written)

    @kept
    def as_written(self) -> tuple[tuple[str, str], ...]:
        """The same, with every character that was written."""
        return tuple(_placed(self.value))

    @kept
    def sentences(self) -> tuple[str, ...]:
        """The texts that are more than a name, without their places."""
        if self.is_simple:
            return tuple(_quoted_with_signs(self.written))
        return tuple(text for _, text in self.texts if not text.isprintable() or _is_sentence(text))

    @kept
    def prose(self) -> str:
        """All of these in small letters, one after the other."""
        return "\n".join(self.sentences).lower()

    @kept
    def pieces(self) -> tuple[str, ...]:
        """What is of letters and digits without a break, and long."""
        data = self.written.encode(errors="replace")
        mask, found = data.translate(_MASK), []
        at = mask.find(_LONG)
        while at >= 0:
            end = mask.find(b" ", at)
            end = end if end >= 0 else len(mask)
            found.append(data[at:end].decode())
            at = mask.find(_LONG, end)
        return tuple(found)

    @kept
    def may_hold_number(self) -> bool:
        """Whether the number of a card, of an account, of a person or of a telephone may stand in one of them."""
        return may_hold_number(self.written)

    def sentences_with(self, pattern: Expression, *needs: str) -> Iterator[tuple[str, str]]:
        """The sentences in which a pattern is found. What `needs` lists is in small letters: without any, none is.

        A pattern is slow and a needle fast: a document without mistakes pays for needles.
        """
        prose = self.prose
        for need in needs:
            if need in prose:
                return self.placed({text for text in self.sentences if pattern().search(text)})
        return iter(())

    def placed(self, found: Collection[str]) -> Iterator[tuple[str, str]]:
        """These texts, each with every place where it stands."""
        return ((at, text) for at, text in self.texts if text in found) if found else iter(())


def _is_sentence(text: str) -> bool:
    return any(char in text for char in _BARE) or any(sign.search(text) for _, sign in _SIGNS)


def _quoted_with_signs(json: str) -> dict[str, None]:
    """The texts between quotes that hold a sign, each once."""
    found: dict[str, None] = {}
    for char in _BARE:
        at = json.find(char)
        while at >= 0:
            end = json.index('"', at)
            found[json[json.rindex('"', 0, at) + 1 : end]] = None
            at = json.find(char, end)
    for char, sign in _SIGNS:
        match = sign.search(json) if char in json else None
        while match:
            end = json.index('"', match.start())
            found[json[json.rindex('"', 0, match.start()) + 1 : end]] = None
            match = sign.search(json, end)
    return found


def _placed(value: Json) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, Json]] = [("", value)]
    while todo:
        at, one = todo.pop()
        if isinstance(one, str):
            yield at, one
        elif isinstance(one, dict):
            names = (name for name in one if len(name) >= _LONG_NAME or not name.isidentifier() or not name.isascii())
            yield from ((at + pointer([name]), name) for name in names)
            todo += [(at + pointer([key]), part) for key, part in reversed(one.items())]
        elif isinstance(one, list | tuple):
            todo += [(f"{at}/{n}", part) for n, part in reversed(list(enumerate(one)))]
        elif isinstance(one, int | float) and abs(one) >= _LONG_NUMBER:
            yield at, f"{one:.0f}"
