"""Shapes of personal data. Like the detector of secrets, it says what something looks like and never repeats it.

Texts are looked at as a reader takes them (`disguise.plain`): with the usual blanks, dashes and digits.

Numbers that a country gives to a person, told by their check digits and by the words beside them.

A row of nine or ten digits is most often something else, and by chance one in eleven keeps the check digit: such a row
counts only beside its name. What is written in a way of its own counts anywhere.

What the redactor can find, by the names that packs use. What is not here would be named and never redacted.
"""

import re
from collections.abc import Callable, Iterator

from contextplane.model.value import Value
from contextplane.policy.lazy_regex import Expression, expression

__all__ = [
    "CARD",
    "IN_BULK",
    "OFFICIAL",
    "REDACTIONS",
    "SHAPES",
    "emails",
    "may_hold_number",
    "national_numbers",
    "official_numbers",
    "persons_phone_numbers",
    "phone_numbers",
]

_STANDALONE_NUMBER = r"(?<![0-9A-Za-z])(?<![0-9][ .-])(?:{})(?![0-9A-Za-z])"
_NEAR, _SEEN = 24, 80
"""So far from a number its name stands at most, with no other number between; so much is looked at for it."""

_ELEVEN, _TEN = 11, 10

# No first letter D, F, I, Q, U or V, no second O; some pairs are given to nobody.
_PREFIX = r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"


class _Number(Value, frozen=True):
    """A kind of number: how it stands anywhere, how it stands beside its name, and whether it is one."""

    kind: str
    anywhere: Expression | None
    beside: Expression
    name: Expression
    is_one: Callable[[str], bool]


def _is_cpf(digits: str) -> bool:
    """Brazil: two check digits, each over all that stand before it."""
    return len(set(digits)) > 1 and all(
        int(digits[end]) == -sum(int(one) * (end + 1 - n) for n, one in enumerate(digits[:end])) % _ELEVEN % _TEN
        for end in (9, 10)
    )


def _is_nhs(digits: str) -> bool:
    """England and its neighbours: the ten digits, each times its place from behind, come to a multiple of eleven."""
    return len(set(digits)) > 1 and not sum(int(one) * (_TEN - n) for n, one in enumerate(digits)) % _ELEVEN


def _is_bsn(digits: str) -> bool:
    """The Netherlands: the same of nine, and the last one is taken off."""
    weighed = sum(int(one) * (9 - n) for n, one in enumerate(digits[:-1])) - int(digits[-1])
    return len(set(digits)) > 1 and not weighed % _ELEVEN


_NUMBERS = (
    _Number(
        kind="CPF of a taxpayer",
        anywhere=expression(_STANDALONE_NUMBER.format(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}")),
        beside=expression(_STANDALONE_NUMBER.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}[ .-]?[0-9]{2}")),
        name=expression(r"\bcpf\b|\bcadastro de pessoas? f[i\u00ed]sicas?\b", re.IGNORECASE),
        is_one=_is_cpf,
    ),
    _Number(
        kind="National Insurance number",
        anywhere=expression(_STANDALONE_NUMBER.format(_PREFIX + r"(?:(?: [0-9]{2}){3} |(?:-[0-9]{2}){3}-)[A-D]")),
        beside=expression(_STANDALONE_NUMBER.format(_PREFIX + r"[ -]?(?:[0-9]{2}[ -]?){3}[A-D]"), re.IGNORECASE),
        name=expression(r"\bnino\b|\bnational insurance\b|\bNI (?:number|no\b)", re.IGNORECASE),
        is_one=lambda _: True,
    ),
    _Number(
        kind="NHS number",
        anywhere=None,
        beside=expression(_STANDALONE_NUMBER.format(r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}")),
        name=expression(r"\bnhs\b", re.IGNORECASE),
        is_one=_is_nhs,
    ),
    _Number(
        kind="citizen service number",
        anywhere=None,
        beside=expression(
            _STANDALONE_NUMBER.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}|[0-9]{4}[ .][0-9]{2}[ .][0-9]{3}")
        ),
        name=expression(r"\bbsn\b|\bburgerservicenummer\b|\bsofi-?nummer\b|\bcitizen service number\b", re.IGNORECASE),
        is_one=_is_bsn,
    ),
)
SHAPES = tuple(number.beside for number in _NUMBERS)
"""Where one of them may stand."""


def national_numbers(text: str, *, name: str = "") -> Iterator[str]:
    """The kinds of numbers of persons that a text holds. `name` is that of the field which the text is the value of."""
    said = name.replace("_", " ").replace("-", " ")
    for number in _NUMBERS:
        if any(map(number.is_one, _digits(number, text, named=bool(number.name().search(said))))):
            yield number.kind


def _digits(number: _Number, text: str, *, named: bool) -> Iterator[str]:
    """The digits of all that has the form of a number, and stands in its own way, or beside its name."""
    if number.anywhere is not None:
        yield from map(_only_digits, number.anywhere().findall(text))
    if named or number.name().search(text):
        yield from (
            _only_digits(match[0]) for match in number.beside().finditer(text) if named or _beside(number, match)
        )


def _beside(number: _Number, match: re.Match[str]) -> bool:
    """Whether the name of a number stands before it or after it."""
    before = match.string[max(0, match.start() - _SEEN) : match.start()]
    after = match.string[match.end() : match.end() + _SEEN]
    between = [before[match.end() :] for match in number.name().finditer(before)]
    between += [after[: match.start()] for match in number.name().finditer(after)]
    return any(len(gap) <= _NEAR and not any(map(str.isdigit, gap)) for gap in between)


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


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


REDACTIONS = frozenset(
    {
        *("pan", "aadhaar", "ssn", "passport", "driving_licence", "tax_id"),
        *("credit_card", "cvv", "iban", "bank_account", "upi_id"),
        *("name", "email", "phone", "address", "date_of_birth", "ip_address"),
        *("password", "api_key", "access_token", "private_key"),
    }
)
"""Numbers of people, of their money, what else tells who they are, and secrets."""
