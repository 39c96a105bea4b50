"""Shapes of personal data. Like the detector of secrets, it says what something looks like and never repeats it."""

import re
from collections.abc import Callable, Iterator

__all__ = ["EMAIL", "EMAILS_IN_BULK", "NUMBER", "emails", "may_hold_number", "official_numbers"]

EMAILS_IN_BULK = 3
"""So many different addresses are a list of people, not a contact."""

EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_ALONE = r"(?<![0-9A-Za-z])(?:{})(?![0-9A-Za-z])"
# As they are printed, in groups, or in one piece: 4-4-4-4, 4-6-5, 13 to 19 digits.
_CARD = _ALONE.format(r"[3-6][0-9]{3}(?:[ -]?[0-9]{4}){3}|3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}|[3-6][0-9]{12,18}")
# Of an Aadhaar, of a PAN, of a social security number with its hyphens, of an IBAN: only these are asked about.
_OFFICIAL = _ALONE.format(
    r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}|[A-Z]{3}[ABCEFGHJKLPT][A-Z][0-9]{4}[A-Z]"
    r"|[0-9]{3}-[0-9]{2}-[0-9]{4}|[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}"
)
NUMBER = re.compile(f"{_CARD}|{_OFFICIAL}")
"""Where the number of a card, of an account or of a person may stand."""

_OUTLINE = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    b"0000000000AAAAAAAAAAAAAAAAAAAAAAAAAA",
)
_OUTLINES = (b"0" * 9, b"AAAAA0000A", b"AA00")
"""Without blanks and hyphens, every one of those numbers holds one of these."""

_CARDS, _OFFICIALS = re.compile(_CARD), re.compile(_OFFICIAL)
_DIGITS = 10


def may_hold_number(text: str) -> bool:
    """Whether a number may stand in a text: told fast, and rarely wrong."""
    outline = text.encode(errors="replace").translate(_OUTLINE, b" -")
    return any(one in outline for one in _OUTLINES)


def emails(text: str) -> frozenset[str]:
    """The addresses in a text."""
    return frozenset(EMAIL.findall(text))


def official_numbers(text: str, identify: Callable[[str], str | None] | None) -> Iterator[str | None]:
    """What the official numbers in a text look to be. None: it may be one, and nobody is here who could tell."""
    rest = _CARDS.sub(lambda match: "," if _is_card(match[0]) else match[0], text)
    if rest != text:
        yield "payment card number"
    for match in _OFFICIALS.finditer(rest):
        kind = identify(match[0]) if identify is not None else None
        if kind is not None or identify is None:
            yield kind


def _is_card(text: str) -> bool:
    """Whether digits are a card number by the check digit of Luhn."""
    digits = [int(one) for one in text if one.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = [digit if n % 2 == 0 else sum(divmod(digit * 2, _DIGITS)) for n, digit in enumerate(reversed(digits))]
    return sum(doubled) % _DIGITS == 0
