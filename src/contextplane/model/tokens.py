"""Token counters. The name of the counter is part of a compiled context.

Another counter would keep other blocks. The two counters here need no table and work offline: they are estimates.
Exact ones are adapters.
"""

from typing import Final, Literal, Protocol

__all__ = ["APPROX4", "CALIBRATED1", "Approx4", "Calibrated1", "TokenCounterName", "Tokens"]

TokenCounterName = Literal["calibrated1", "approx4", "o200k_base", "cl100k_base"]
"""The counters that a pack can name. The last two are exact, for models that use these encodings."""


class Tokens(Protocol):
    """Counts the tokens of a text. Counters of the same name always agree."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...

    def __hash__(self) -> int: ...


class Approx4:
    """One token for every four characters, rounded up. It is far too low for logs, digests and Chinese."""

    name: Final = "approx4"

    def count(self, text: str) -> int:
        return -(-len(text) // 4)


APPROX4 = Approx4()


def _byte_classes() -> bytes:
    """The class of every byte of UTF-8: what it is in ASCII, or which script its lead byte begins."""
    high = ((0xC0, b"c"), (0xE0, b"l"), (0xE3, b"e"), (0xE4, b"j"), (0xEA, b"k"), (0xEE, b"h"), (0xF0, b"f"))
    classes = bytearray()
    for character in map(chr, range(0x80)):
        kinds = (character.islower(), character.isupper(), character.isdigit(), character in " \t", character in "\n\r")
        classes += next((kind for kind, holds in zip(b"aA0 n", kinds, strict=True) if holds), ord("p")).to_bytes()
    for byte in range(0x80, 0x100):
        classes += next((kind for limit, kind in high if byte < limit), b"m")
    return bytes(classes)


_CLASSES = _byte_classes()
_THOUSAND = 1000
_BYTES_PER_TOKEN = 8
# Thousandths of a token for each occurrence in the classes of a text: of a class, and of a class after another, where
# most tokens begin. Fitted by least squares to counts of o200k_base; bench/README.md has the figures.
_ASCII_WEIGHTS = (
    (b"a", 45),
    (b"A", 270),
    (b"0", 200),
    (b" ", 31),
    (b"n", 50),
    (b"p", 100),
    (b" a", 911),
    (b"pa", 1545),
    (b"0a", 1005),
    (b"Aa", 1072),
    (b"na", 1292),
    (b" 0", 1677),
    (b"p0", 1678),
    (b"a0", 851),
    (b"A0", 2999),
    (b"n ", 818),
    (b" p", 705),
    (b"p ", 298),
)
_OTHER_WEIGHTS = (
    (b"l", 200),
    (b" l", 550),
    (b"e", 395),
    (b"j", 727),
    (b"k", 733),
    (b"h", 740),
    (b"f", 1164),
    (b"m", 1555),
)


class Calibrated1:
    """Estimates the tokens of o200k_base from the kinds of characters and where they change.

    Within 15 % on prose, JSON, logs, code, base64, Chinese, Japanese and Korean of a few hundred characters or more. It
    never counts less than a token for eight bytes that are no blanks, so that no text passes for much shorter.
    """

    name: Final = "calibrated1"

    def count(self, text: str) -> int:
        classes = text.encode().translate(_CLASSES)
        count = classes.count
        thousandths = 0
        for pattern, weight in _ASCII_WEIGHTS:
            thousandths += count(pattern) * weight
        if not text.isascii():
            for pattern, weight in _OTHER_WEIGHTS:
                thousandths += count(pattern) * weight
        visible = len(classes) - count(b" ")
        return max(-(-thousandths // _THOUSAND), -(-visible // _BYTES_PER_TOKEN))


CALIBRATED1 = Calibrated1()
"""The default."""
