"""A text as detectors read it, with the places of the original.

Digits, blanks, dashes and letters of other forms become plain ones, and invisible characters are removed: none of them
hides a secret. The tables are written down and not taken from `unicodedata`, whose tables differ between versions of
Python: the same text must be masked alike everywhere.
"""

from bisect import bisect_right
from functools import cache

from contextplane.model.invisible_characters import CONTROLS, EMOJI_STYLE, FORMATTING, JOINERS, LINE_SEPARATORS
from contextplane.policy.regex_safety import lazy_regex

__all__ = ["FoldedText", "fold"]

_ZEROS = (
    "660 6f0 7c0 966 9e6 a66 ae6 b66 be6 c66 ce6 d66 de6 e50 ed0 f20 1040 1090 17e0 1810 1946 19d0 1a80 1a90 1b50 1bb0 "
    "1c40 1c50 a620 a8d0 a900 a9d0 a9f0 aa50 abf0 104a0 10d30 11066 110f0 11136 111d0 112f0 11450 114d0 11650 116c0 "
    "11730 118e0 11950 11c50 11d50 11da0 16a60 16ac0 16b50 1d7ce 1d7d8 1d7e2 1d7ec 1d7f6 1e140 1e2f0 1e950 1fbf0"
)
"""The digit zero of every script; nine others follow each."""

_DASHES = "\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\u301c\u3030\u30a0\ufe58\ufe63"
_BLANKS = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_STOPS = "\u3002\uff61\u2024"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MATHEMATICAL = range(0x1D400, 0x1D6A4)


@cache
def _fold_table() -> dict[int, str]:
    table = {int(zero, 16) + digit: str(digit) for zero in _ZEROS.split() for digit in range(10)}
    table |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    table |= {code: _LETTERS[(code - _MATHEMATICAL.start) % len(_LETTERS)] for code in _MATHEMATICAL}
    table |= dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(map(ord, _BLANKS), " ")
    return table | dict.fromkeys(map(ord, _STOPS), ".") | dict.fromkeys(map(ord, LINE_SEPARATORS), "\n")


_VISIBLE = bytes([ord("\n"), *range(ord(" "), 0x7F)])
_INVISIBLE = lazy_regex(f"[{CONTROLS}{FORMATTING}{JOINERS}{EMOJI_STYLE}]+")


class FoldedText:
    """A folded text. `place` maps a position in it to one in the original."""

    __slots__ = ("_kept", "_starts", "text")

    def __init__(self, text: str, starts: list[int], kept: list[int]) -> None:
        self.text = text
        self._starts = starts
        self._kept = kept

    def place(self, position: int) -> int:
        """The position in the original of the character at this position."""
        if not self._starts:
            return position
        n = bisect_right(self._kept, position) - 1
        return self._starts[n] + position - self._kept[n]


def fold(text: str) -> FoldedText:
    """Fold a text. The cost is linear; a text without such characters is used as it is."""
    if not text.isascii():
        text = text.translate(_fold_table())
    elif not text.encode().translate(None, _VISIBLE):
        return FoldedText(text, [], [])
    if _INVISIBLE().search(text) is None:
        return FoldedText(text, [], [])
    pieces: list[str] = []
    starts: list[int] = []
    kept: list[int] = []
    start = length = 0
    for match in _INVISIBLE().finditer(text):
        if match.start() > start:
            pieces.append(text[start : match.start()])
            starts.append(start)
            kept.append(length)
            length += match.start() - start
        start = match.end()
    if start < len(text) or not pieces:
        pieces.append(text[start:])
        starts.append(start)
        kept.append(length)
    return FoldedText("".join(pieces), starts, kept)
