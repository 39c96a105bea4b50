"""Texts that are not what they look like: invisible characters, and words of two scripts."""

from contextplane.model.invisible_characters import CONTROLS, EMOJI_STYLE, FORMATTING, JOINERS, LINE_SEPARATORS
from contextplane.policy.regex_safety import lazy_regex

__all__ = ["invisible_characters", "mixed_words", "normalize"]

_INVISIBLE = lazy_regex(f"[{CONTROLS}{FORMATTING}{LINE_SEPARATORS}{JOINERS}{EMOJI_STYLE}]")
_SEPARATORS = lazy_regex(f"[{LINE_SEPARATORS}]")
_STYLES = frozenset(f"\ufe0e{EMOJI_STYLE}")
_JOINABLE = lazy_regex("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]")
"""Where joiners belong: letters of Arabic, of the scripts of India, Burma and Cambodia, and emoji."""

_PICTURE = lazy_regex("[#*0-9\u00a9\u00ae\u2000-\u2bff\u3000-\u33ff\U0001f000-\U0001faff]")
_WORD = lazy_regex(r"\w+")
_LOOKALIKE_SCRIPTS = frozenset(
    {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL"}
)
"""Scripts with letters that look the same: no word is written in two of them."""

_DISTINCT_GREEK = frozenset("ΓΔΘΛΞΠΣΦΨΩβδεζηθλμξπσςφψ")
"""Greek letters of formulas and units that look like no other letter."""


def invisible_characters(text: str) -> tuple[str, ...]:
    """The invisible characters in a text, as U+XXXX, each once.

    A joiner or an emoji style is not reported where a script or an emoji needs it.
    """
    if text.isascii() and text.isprintable():
        return ()
    matches = (match for match in _INVISIBLE().finditer(text) if not _is_legitimate(text, match.start()))
    return tuple(dict.fromkeys(f"U+{ord(match[0]):04X}" for match in matches))


def _is_legitimate(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in _STYLES:
        return bool(_PICTURE().match(before))
    return text[at] in JOINERS and bool(_JOINABLE().match(before)) and bool(_JOINABLE().match(after))


def mixed_words(text: str) -> tuple[str, ...]:
    """The words with letters of two scripts that look alike, escaped to ASCII."""
    if text.isascii():
        return ()
    words = (word for word in _WORD().findall(text) if not word.isascii() and len(_scripts(word)) > 1)
    return tuple(ascii(word)[1:-1] for word in dict.fromkeys(words))


def _scripts(word: str) -> frozenset[str]:
    # Imported here: almost every document is ASCII and does not need it.
    from unicodedata import name  # noqa: PLC0415

    letters = (letter for letter in word if letter.isalpha() and letter not in _DISTINCT_GREEK)
    return frozenset(name(letter, "").partition(" ")[0] for letter in letters) & _LOOKALIKE_SCRIPTS


def normalize(text: str) -> str:
    """A text as a reader sees it: without invisible characters, with plain blanks, dashes and digits."""
    if text.isascii():
        return _INVISIBLE().sub("", text)
    import unicodedata  # noqa: PLC0415

    def usual(character: str) -> str:
        if character.isascii():
            return character
        if character.isdecimal():
            return str(unicodedata.decimal(character))
        return {"Zs": " ", "Pd": "-"}.get(unicodedata.category(character), character)

    # Removed, a separator would join the words that it parts.
    visible = _INVISIBLE().sub("", _SEPARATORS().sub("\n", text))
    return "".join(map(usual, unicodedata.normalize("NFKC", visible)))
