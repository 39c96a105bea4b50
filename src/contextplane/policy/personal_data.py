"""Shapes of personal data. Like the detector of secrets, it says what something looks like and never repeats it.

Texts are looked at as a reader takes them (`disguise.plain`): with the usual blanks, dashes and digits.
"""

import re
from collections.abc import Callable, Iterator

from contextplane.policy.expressions import expression
from contextplane.policy.national_numbers import national_numbers

__all__ = [
    "CARD",
    "IN_BULK",
    "OFFICIAL",
    "emails",
    "may_hold_number",
    "official_numbers",
    "persons_phone_numbers",
    "phone_numbers",
]

IN_BULK = 3
"""So many different addresses, or telephone numbers, are a list of people, not a contact."""

_EMAIL = expression(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_ALONE = r"(?<![0-9A-Za-z])(?<![0-9]\.)(?:{})(?![0-9A-Za-z])"
_GAP = r"[ .-]{0,3}"
# As they are printed, in groups, or in one piece: 4-4-4-4, 4-6-5, 13 to 19 digits, from 2 to 6 on, or with 81 or 82.
CARD = expression(
    _ALONE.format(
        rf"(?:[2-6][0-9]|8[12])[0-9]{{2}}(?:{_GAP}[0-9]{{4}}){{3}}(?:{_GAP}[0-9]{{3}})?"
        rf"|3[0-9]{{3}}{_GAP}[0-9]{{6}}{_GAP}[0-9]{{4,5}}|[3-6][0-9]{{12,18}}"
    )
)
"""Where the number of a payment card may stand."""

# Of an Aadhaar, of a PAN, of a social security number with its hyphens, of an IBAN: only these are asked about. In
# small letters a PAN has no year in it, or it would be a name, and an IBAN stands in one piece or in fours.
OFFICIAL = expression(
    _ALONE.format(
        r"[2-9][0-9]{3}[ .-]?[0-9]{4}[ .-]?[0-9]{4}|[A-Z]{3}[ABCEFGHJKLPT][A-Z][0-9]{4}[A-Z]"
        r"|(?<![_./-])[a-z]{3}[abcefghjklpt][a-z](?!19|20)[0-9]{4}[a-z](?![_./-])"
        r"|[0-9]{3}-[0-9]{2}-[0-9]{4}|[A-Z]{2}(?=[A-Z0-9 ]{0,30}(?:[0-9] ?){9})[0-9]{2}(?: ?[A-Z0-9]){11,30}"
        r"|(?<![_./-])[a-z]{2}(?=[a-z0-9 ]{0,30}(?:[0-9] ?){9})[0-9]{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?"
    )
)
"""Where the number of an account or of a person may stand."""

_SOCIAL_SECURITY = expression(
    r"\b(?:ssn|social[ -]security)\b[^0-9]{0,24}([0-9]{3})[ .-]?([0-9]{2})[ .-]?([0-9]{4})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_PHONE = expression(
    r"(?<![0-9A-Za-z])(?<![0-9]\.)(?:\+[0-9]{1,3}[ .-]?(?:\(?[0-9]{1,5}\)?[ .-]?){1,4}[0-9]{2,5}"
    r"|\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}|0[0-9]{2,4}[ /-][0-9]{6,8}|[6-9][0-9]{4}[ -]?[0-9]{5})(?![0-9A-Za-z])"
)
_PHONE_DIGITS = range(9, 16)
_INTERNATIONAL = expression(r"(?<![0-9A-Za-z+])\+[1-9](?:[ .-]?\(?[0-9]{1,5}\)?){2,8}(?![0-9A-Za-z])")
# By the digits alone: of North America and of Russia eleven, and an area that begins with 2 or more; nowhere many zeros
# at the end, as amounts have them.
_DIALLED = expression(r"(?!.*0{5}$)(?:1[2-9][0-9]{9}|7[3-9][0-9]{9}|[2-689][0-9]{8,14})")
# Free of charge, shared by all callers, or kept for films and examples.
_NOBODYS = expression(
    r"1(?:8(?:00|33|44|55|66|77|88)|[0-9]{3}55501)|800|[2-9][0-9]{0,2}1?80[08]|61(?:13|18)00|44(?:3|7700900|2079460)"
)

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_GAPS = b" .-()/+"
_OUTLINE = bytes.maketrans(b"0123456789" + _LETTERS, b"0" * 10 + b"A" * 52)
_MANY_DIGITS, _SOME_DIGITS, _LETTER, _BEFORE_LETTER = b"000000000", b"0000", ord("A"), (b"0000A", b"000000A")
"""Without what parts its groups, every one of those numbers holds many digits, or some between two letters."""

_DIGITS = 10


def may_hold_number(text: str) -> bool:
    """Whether a number may stand in a text: told fast, and rarely wrong."""
    outline = text.encode(errors="replace").translate(_OUTLINE, _GAPS)
    if _MANY_DIGITS in outline:
        return True
    at = outline.find(_SOME_DIGITS)
    while at >= 0:
        if outline[at - 1] == _LETTER and outline.startswith(_BEFORE_LETTER, at):
            return True
        at = outline.find(_SOME_DIGITS, at + len(_SOME_DIGITS))
    return False


def emails(text: str) -> frozenset[str]:
    """The addresses in a text."""
    return frozenset(_EMAIL().findall(text))


def phone_numbers(text: str) -> frozenset[str]:
    """The telephone numbers in a text, as their digits."""
    found = ("".join(filter(str.isdigit, match)) for match in _PHONE().findall(text))
    return frozenset(digits for digits in found if len(digits) in _PHONE_DIGITS)


def persons_phone_numbers(text: str) -> frozenset[str]:
    """The telephone numbers in international form that a person may have, as their digits."""
    found = ("".join(filter(str.isdigit, match)) for match in _INTERNATIONAL().findall(text))
    return frozenset(digits for digits in found if _DIALLED().fullmatch(digits) and not _NOBODYS().match(digits))


def official_numbers(
    text: str, identify: Callable[[str], str | None] | None, *, name: str = ""
) -> Iterator[str | None]:
    """What the official numbers in a text look to be. None: it may be one, and nobody is here who could tell.

    `name` is that of the field which the text is the value of.
    """
    rest = CARD().sub(lambda match: "," if _is_card(match[0]) else match[0], text)
    if rest != text:
        yield "payment card number"
    yield from national_numbers(rest, name=name)
    asked = [match[0].upper().replace(".", " ") for match in OFFICIAL().finditer(rest)]
    asked += ["-".join(groups) for groups in _SOCIAL_SECURITY().findall(rest)]
    for number in dict.fromkeys(asked):
        kind = identify(number) if identify is not None else None
        if kind is not None or identify is None:
            yield kind


def _is_card(text: str) -> bool:
    """Whether digits are a card number by the check digit of Luhn."""
    digits = [int(one) for one in text if one.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = [digit if n % 2 == 0 else sum(divmod(digit * 2, _DIGITS)) for n, digit in enumerate(reversed(digits))]
    return sum(doubled) % _DIGITS == 0
