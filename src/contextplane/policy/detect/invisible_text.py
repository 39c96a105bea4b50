"""Texts that are not what they look like: characters that nobody sees, and words with letters of two scripts."""

from contextplane.policy.lazy_regex import expression

__all__ = ["mixed_words", "plain", "unseen"]

# Controls except for tabs and line ends, soft hyphens, marks that turn the direction, blanks without width, marks of
# shorthand and of music that only format, tags.
_UNSEEN = expression(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = frozenset("\u200c\u200d")
_STYLES = frozenset("\ufe0e\ufe0f")
_JOINED = expression("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]")
"""Where joiners belong: letters of Arabic and of the scripts of India, Burma and Cambodia, and pictures."""

_PICTURE = expression("[#*0-9\u00a9\u00ae\u2000-\u2bff\u3000-\u33ff\U0001f000-\U0001faff]")
_WORD = expression(r"\w+")
_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL"})
"""Scripts with letters that look the same: nobody writes one word in two of them."""

_UNLIKE = frozenset("ΓΔΘΛΞΠΣΦΨΩβδεζηθλμξπσςφψ")
"""Greek letters that stand in formulas and units, and look like no other."""


def unseen(text: str) -> tuple[str, ...]:
    """The characters in a text that nobody sees, as their numbers, each once. A joiner where it belongs is none."""
    if text.isascii() and text.isprintable():
        return ()
    found = (match for match in _UNSEEN().finditer(text) if not _belongs(text, match.start()))
    return tuple(dict.fromkeys(f"U+{ord(match[0]):04X}" for match in found))


def _belongs(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in _STYLES:
        return bool(_PICTURE().match(before))
    return text[at] in _JOINERS and bool(_JOINED().match(before)) and bool(_JOINED().match(after))


def mixed_words(text: str) -> tuple[str, ...]:
    """The words of a text with letters of two scripts that look alike; the letters that are not ASCII as numbers."""
    if text.isascii():
        return ()
    words = (word for word in _WORD().findall(text) if not word.isascii() and len(_scripts(word)) > 1)
    return tuple(ascii(word)[1:-1] for word in dict.fromkeys(words))


def _scripts(word: str) -> frozenset[str]:
    # Here and not above: almost every document is ASCII, and does not load it.
    from unicodedata import name  # noqa: PLC0415

    letters = (one for one in word if one.isalpha() and one not in _UNLIKE)
    return frozenset(name(letter, "").partition(" ")[0] for letter in letters) & _ALIKE


def plain(text: str) -> str:
    """A text as a reader takes it: without what is unseen, every blank and every dash the usual one, digits ASCII."""
    if text.isascii():
        return _UNSEEN().sub("", text)
    from unicodedata import category, decimal, normalize  # noqa: PLC0415

    def usual(one: str) -> str:
        if one.isascii():
            return one
        if one.isdecimal():
            return str(decimal(one))
        return {"Zs": " ", "Pd": "-"}.get(category(one), one)

    return "".join(map(usual, normalize("NFKC", _UNSEEN().sub("", text))))
