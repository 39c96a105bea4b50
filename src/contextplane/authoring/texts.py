"""Every text of a document with its place, for laws about what may not be written anywhere in it."""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import msgspec

from contextplane.model.canonical import Json
from contextplane.model.pointer import pointer

__all__ = ["Identify", "Texts"]

Identify = Callable[[str], str | None]
"""Which official number a text is, such as an Aadhaar or a PAN; None when it is none."""

_LONG_TOKEN = 14
_REACH = 64
_TELLING = frozenset("0123456789")
_LONG_NAME = 20
"""No name of a field that we know is so long and a secret; from here on a name is looked at like a text."""


class Texts:
    """The texts of a document.

    `identify` tells which official number a text is; handed in, because whoever knows them all is slow to load.
    """

    def __init__(self, value: Json, *, identify: Identify | None = None) -> None:
        self.value = value
        self.identify = identify

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """All of them, without their places, and the names that are as long as a text."""
        # Written as JSON and taken apart at the quotes: this is where judging a pack spends its time.
        quoted = msgspec.json.encode(self.value).decode()
        if "\\" in quoted:
            return tuple(text for _, text in self.texts)
        parts = quoted.split('"')
        ends = zip(parts[1::2], parts[2::2], strict=True)
        return tuple([text for text, after in ends if after[0] != ":" or len(text) >= _LONG_NAME])

    @cached_property
    def joined(self) -> str:
        """All of them, one after the other: what is not in it is in none of them."""
        return "\n".join(self.strings)

    @cached_property
    def all_text(self) -> str:
        """The same in lower case."""
        return self.joined.lower()

    @cached_property
    def _starts(self) -> list[int]:
        """Where each of them begins in the text of them all."""
        return list(accumulate((len(text) + 1 for text in self.strings), initial=0))

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Each with its JSON Pointer, in the order of the document."""
        return tuple(_placed(self.value))

    def texts_with(self, pattern: re.Pattern[str], *needs: str) -> Iterator[tuple[str, str]]:
        """The texts in which a pattern is found. What `needs` lists is in lower case: without any of it, none is.

        A pattern is slow and a needle fast: a document without mistakes pays for needles.
        """
        return self.placed({text for text in self.strings_with(*needs) if pattern.search(text)})

    def strings_with(self, *needs: str) -> Sequence[str]:
        """The texts that hold one of these, which are in lower case, however they are written there."""
        needles = [one for one in needs if one in self.all_text]
        if not needles:
            return ()
        if len(self.all_text) != len(self.joined):  # a letter whose small form is longer: the places do not agree
            return [text for text in dict.fromkeys(self.strings) if any(one in text.lower() for one in needles)]
        return list(dict.fromkeys(self.strings[n] for one in needles for n in self._holding(one)))

    def _holding(self, needle: str) -> Iterator[int]:
        """Which of the texts hold a needle. One that reaches over the end of a text is in none."""
        found = self.all_text.find(needle)
        while found >= 0:
            n = bisect_right(self._starts, found) - 1
            if found + len(needle) < self._starts[n + 1]:
                yield n
                found = self.all_text.find(needle, self._starts[n + 1])
            else:
                found = self.all_text.find(needle, found + 1)

    def placed(self, found: Collection[str]) -> Iterator[tuple[str, str]]:
        """These texts, each with every place where it stands."""
        return ((at, text) for at, text in self.texts if text in found) if found else iter(())

    def texts_near(self, anchor: re.Pattern[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        """The texts in which a pattern is found. What it matches holds the anchor, and is no longer than `_REACH`."""
        for match in anchor.finditer(self.joined):
            if pattern.search(self.joined, max(0, match.start() - _REACH), match.end() + _REACH):
                return self.placed({text for text in self.strings if pattern.search(text)})
        return iter(())

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """What stands between blanks, is as long as a key, and is not written in small letters alone."""
        long_ones = [one for one in self.joined.split() if len(one) >= _LONG_TOKEN]
        return tuple(one for one in long_ones if not (one.islower() and _TELLING.isdisjoint(one)))


def _placed(value: Json) -> Iterator[tuple[str, str]]:
    todo: list[tuple[str, Json]] = [("", value)]
    while todo:
        at, one = todo.pop()
        if isinstance(one, str):
            yield at, one
        elif isinstance(one, dict):
            yield from ((at + pointer([name]), name) for name in one if len(name) >= _LONG_NAME)
            todo += [(at + pointer([key]), part) for key, part in reversed(one.items())]
        elif isinstance(one, list | tuple):
            todo += [(f"{at}/{n}", part) for n, part in reversed(list(enumerate(one)))]
