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


_CLASSES = _byte_classes()
_THOUSAND = 1000
_BYTES_PER_TOKEN = 8


class Calibrated1:
    """Estimates the tokens of o200k_base from the kinds of characters and where they change.

    Within 15 % on prose, JSON, logs, code, base64, Chinese, Japanese and Korean of a few hundred characters or more. It
    never counts less than a token for eight bytes that are no blanks, so that no text passes for much shorter.
    """

    name: Final = "calibrated1"

    def count(self, text: str) -> int:
        # Thousandths of a token for each occurrence of a class, and of a class after another, where most tokens begin.
        # Fitted by least squares to counts of o200k_base; bench/README.md has the figures. Written out, not as a table:
        # the loop over it would take longer than the counting.
        classes = text.encode().translate(_CLASSES)
        count = classes.count
        blanks, capitals, digits, breaks, signs = count(b" "), count(b"A"), count(b"0"), count(b"n"), count(b"p")
        # In ASCII, what is nothing else is a small letter.
        plain = text.isascii()
        small = len(classes) - blanks - capitals - digits - breaks - signs if plain else count(b"a")
        thousandths = (
            45 * small
            + 270 * capitals
            + 200 * digits
            + 31 * blanks
            + 50 * breaks
            + 100 * signs
            + 911 * count(b" a")
            + 1545 * count(b"pa")
            + 705 * count(b" p")
            + 298 * count(b"p ")
        )
        if digits:
            thousandths += 1005 * count(b"0a") + 1677 * count(b" 0") + 1678 * count(b"p0") + 851 * count(b"a0")
        if capitals:
            thousandths += 1072 * count(b"Aa") + 2999 * count(b"A0")
        # Most texts have one line break, at their end.
        if breaks > 1 or (breaks and classes[-1:] != b"n"):
            thousandths += 1292 * count(b"na") + 818 * count(b"n ")
        if not plain:
            thousandths += (
                200 * count(b"l")
                + 550 * count(b" l")
                + 395 * count(b"e")
                + 727 * count(b"j")
                + 690 * count(b"k")
                + 740 * count(b"h")
                + 1000 * count(b"f")
                + 1555 * count(b"m")
            )
        return max(-(-thousandths // _THOUSAND), -(-(len(classes) - blanks) // _BYTES_PER_TOKEN))


CALIBRATED1 = Calibrated1()
"""The default."""

OFFLINE: dict[str, Tokens] = {APPROX4.name: APPROX4, CALIBRATED1.name: CALIBRATED1}
"""The counters that are always there, by name."""
