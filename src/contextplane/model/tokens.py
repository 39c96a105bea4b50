"""Token counters. The name of the counter is part of a compiled context.

Another counter would keep other blocks. The two counters here need no table and work offline: they are estimates.
Exact ones are adapters.
"""

from typing import Final, Literal, Protocol

__all__ = ["APPROX4", "CALIBRATED1", "OFFLINE", "Approx4", "Calibrated1", "TokenCounterName", "Tokens"]

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


# Thousandths of a token for each occurrence of a class, and of a class after another, where most tokens begin.
# Fitted by least squares to counts of o200k_base; bench/README.md has the figures.
_WEIGHTS = {
    "a": 45, "A": 270, "0": 200, " ": 31, "n": 50, "p": 100,
    " a": 911, "pa": 1545, "0a": 1005, "Aa": 1072, "na": 1292,
    " 0": 1677, "p0": 1678, "a0": 851, "A0": 2999,
    "n ": 818, " p": 705, "p ": 298,
    "l": 200, "e": 395, "j": 727, "k": 690, "h": 740, "f": 1000, "m": 1555, " l": 550,
}  # fmt: skip
_KINDS = "caA0 npljekhfm"
"""The classes by their codes of four bits. The first has no weight, also not after another."""

_CODES = _byte_classes().translate(bytes(max(0, _KINDS.find(chr(kind))) for kind in range(0x100)))
_BLANK_CODE = _KINDS.index(" ").to_bytes()
_PAIR_WEIGHTS = tuple(
    _WEIGHTS.get(first, 0) + _WEIGHTS.get(first + second, 0)
    for first in _KINDS.ljust(16, "c")
    for second in _KINDS.ljust(16, "c")
)
_LOW_BYTES = bytes(weight % 0x100 for weight in _PAIR_WEIGHTS)
_HIGH_BYTES = bytes(weight // 0x100 for weight in _PAIR_WEIGHTS)
_SMALL = _WEIGHTS["a"]
_SMALL_LETTERS = bytes(pair for pair, weight in enumerate(_PAIR_WEIGHTS) if weight == _SMALL)
"""The pairs that are most of nearly every text. They are counted by their number."""

_THOUSAND = 1000
_BYTES_PER_TOKEN = 8


class Calibrated1:
    """Estimates the tokens of o200k_base from the kinds of characters and where they change.

    Within 15 % on prose, JSON, logs, code, base64, Chinese, Japanese and Korean of a few hundred characters or more. It
    never counts less than a token for eight bytes that are no blanks, so that no text passes for much shorter.
    """

    name: Final = "calibrated1"

    def count(self, text: str) -> int:
        codes = text.encode().translate(_CODES)
        size = len(codes)
        # As one number, so that each byte gets its own code and that of the byte after it, at once.
        number = int.from_bytes(codes, "little")
        pairs = (number << 4 | number >> 8).to_bytes(size, "little")
        others = pairs.translate(None, _SMALL_LETTERS)
        thousandths = (
            _SMALL * (size - len(others))
            + sum(others.translate(_LOW_BYTES))
            + sum(others.translate(_HIGH_BYTES)) * 0x100
        )
        return max(-(-thousandths // _THOUSAND), -(-(size - codes.count(_BLANK_CODE)) // _BYTES_PER_TOKEN))


CALIBRATED1 = Calibrated1()
"""The default."""

OFFLINE: dict[str, Tokens] = {APPROX4.name: APPROX4, CALIBRATED1.name: CALIBRATED1}
"""The counters that are always there, by name."""
