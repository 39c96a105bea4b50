"""Shapes of personal data. A detector names the kind of what it found and never repeats it.

Callers pass texts through `invisible_text.normalize` first.

National numbers are recognised by their check digits and by the words beside them. A row of nine or ten digits is most
often something else, and by chance one in eleven has a valid check digit: such a row counts only beside its name. A
number in a notation of its own counts anywhere.
"""

import re
from collections.abc import Callable, Iterator

from contextplane.model.value import Value
from contextplane.policy.regex_safety import LazyPattern, lazy_regex

__all__ = [
    "BULK_COUNT",
    "CARD",
    "OFFICIAL",
    "SHAPES",
    "SPLIT_CARD",
    "emails",
    "is_luhn_valid",
    "may_hold_number",
    "national_number_spans",
    "national_numbers",
    "official_numbers",
    "persons_phone_numbers",
    "phone_numbers",
]

# --- National numbers ---

_STANDALONE_NUMBER = r"(?<![0-9A-Za-z])(?<![0-9][ .-])(?:{})(?![0-9A-Za-z])"
_NEAR, _CONTEXT = 24, 80
"""The most characters between a number and its name, with no other number between; and the context searched for it."""

_ELEVEN, _TEN = 11, 10

# No first letter D, F, I, Q, U or V, no second O; some pairs are not assigned.
_PREFIX = r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"


class _Number(Value, frozen=True):
    """A kind of number: its form anywhere, its form beside its name, and its check."""

    kind: str
    anywhere: LazyPattern | None
    beside: LazyPattern
    name: LazyPattern
    is_valid: Callable[[str], bool]


def _is_cpf(digits: str) -> bool:
    """Brazil: two check digits, each over all digits before it."""
    return len(set(digits)) > 1 and all(
        int(digits[end]) == -sum(int(digit) * (end + 1 - n) for n, digit in enumerate(digits[:end])) % _ELEVEN % _TEN
        for end in (9, 10)
    )


def _is_nhs(digits: str) -> bool:
    """England and Wales: the sum of digit times place from the right is a multiple of eleven."""
    return len(set(digits)) > 1 and not sum(int(digit) * (_TEN - n) for n, digit in enumerate(digits)) % _ELEVEN


def _is_bsn(digits: str) -> bool:
    """The Netherlands: the same for nine digits, with the last one subtracted."""
    weighed = sum(int(digit) * (9 - n) for n, digit in enumerate(digits[:-1])) - int(digits[-1])
    return len(set(digits)) > 1 and not weighed % _ELEVEN


_NUMBERS = (
    _Number(
        kind="CPF of a taxpayer",
        anywhere=lazy_regex(_STANDALONE_NUMBER.format(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}")),
        beside=lazy_regex(_STANDALONE_NUMBER.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}[ .-]?[0-9]{2}")),
        name=lazy_regex(r"\bcpf\b|\bcadastro de pessoas? f[i\u00ed]sicas?\b", re.IGNORECASE),
        is_valid=_is_cpf,
    ),
    _Number(
        kind="National Insurance number",
        anywhere=lazy_regex(_STANDALONE_NUMBER.format(_PREFIX + r"(?:(?: [0-9]{2}){3} |(?:-[0-9]{2}){3}-)[A-D]")),
        beside=lazy_regex(_STANDALONE_NUMBER.format(_PREFIX + r"[ -]?(?:[0-9]{2}[ -]?){3}[A-D]"), re.IGNORECASE),
        name=lazy_regex(r"\bnino\b|\bnational insurance\b|\bNI (?:number|no\b)", re.IGNORECASE),
        is_valid=lambda _: True,
    ),
    _Number(
        kind="NHS number",
        anywhere=None,
        beside=lazy_regex(_STANDALONE_NUMBER.format(r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}")),
        name=lazy_regex(r"\bnhs\b", re.IGNORECASE),
        is_valid=_is_nhs,
    ),
    _Number(
        kind="citizen service number",
        anywhere=None,
        beside=lazy_regex(
            _STANDALONE_NUMBER.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}|[0-9]{4}[ .][0-9]{2}[ .][0-9]{3}")
        ),
        name=lazy_regex(r"\bbsn\b|\bburgerservicenummer\b|\bsofi-?nummer\b|\bcitizen service number\b", re.IGNORECASE),
        is_valid=_is_bsn,
    ),
)
SHAPES = tuple(number.beside for number in _NUMBERS)
"""Patterns of places where a national number may stand."""


def national_numbers(text: str, *, name: str = "") -> Iterator[str]:
    """The kinds of national numbers in a text. `name`: the field that the text is the value of."""
    yield from dict.fromkeys(kind for kind, _ in national_number_spans(text, name=name))


def national_number_spans(text: str, *, name: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """The kind of each national number in a text, and where it stands."""
    field_words = name.replace("_", " ").replace("-", " ")
    for number in _NUMBERS:
        for match in _matches(number, text, named=bool(number.name().search(field_words))):
            if number.is_valid(_only_digits(match[0])):
                yield number.kind, match.span()


def _matches(number: _Number, text: str, *, named: bool) -> Iterator[re.Match[str]]:
    """The matches of a kind of number, in its own notation or beside its name."""
    if number.anywhere is not None:
        yield from number.anywhere().finditer(text)
    if named or number.name().search(text):
        yield from (match for match in number.beside().finditer(text) if named or _has_name_beside(number, match))


def _has_name_beside(number: _Number, match: re.Match[str]) -> bool:
    """Whether the name of a number stands shortly before or after it."""
    before = match.string[max(0, match.start() - _CONTEXT) : match.start()]
    after = match.string[match.end() : match.end() + _CONTEXT]
    between = [before[match.end() :] for match in number.name().finditer(before)]
    between += [after[: match.start()] for match in number.name().finditer(after)]
    return any(len(gap) <= _NEAR and not any(map(str.isdigit, gap)) for gap in between)


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


# --- Addresses, telephone numbers, cards and accounts ---

BULK_COUNT = 3
"""This many different addresses, or telephone numbers, are a list of people and not a contact."""

_EMAIL = lazy_regex(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_ALONE = r"(?<![0-9A-Za-z])(?<![0-9]\.)(?:{})(?![0-9A-Za-z])"


def _card(gap: str) -> LazyPattern:
    # In groups as they are printed, or in one piece: 4-4-4-4, 4-6-5, 13 to 19 digits, first digit 2 to 6, or 81 or 82.
    return lazy_regex(
        _ALONE.format(
            rf"(?:[2-6][0-9]|8[12])[0-9]{{2}}(?:{gap}[0-9]{{4}}){{3}}(?:{gap}[0-9]{{3}})?"
            rf"|3[0-9]{{3}}{gap}[0-9]{{6}}{gap}[0-9]{{4,5}}|[3-6][0-9]{{12,18}}"
        )
    )


CARD = _card(r"[ .-]{0,3}")
"""Where the number of a payment card may stand."""

SPLIT_CARD = _card(r"[ \t\r\n./_-]{0,3}")
"""The same, with other characters between its groups too."""

# An Aadhaar, a PAN, a social security number with its hyphens, an IBAN: `identify` is asked about these only. In lower
# case, a PAN with a year in it is a name and does not count, and an IBAN is in one piece or in groups of four.
OFFICIAL = lazy_regex(
    _ALONE.format(
        r"[2-9][0-9]{3}[ .-]?[0-9]{4}[ .-]?[0-9]{4}|[A-Z]{3}[ABCEFGHJKLPT][A-Z][0-9]{4}[A-Z]"
        r"|(?<![_./-])[a-z]{3}[abcefghjklpt][a-z](?!19|20)[0-9]{4}[a-z](?![_./-])"
        r"|[0-9]{3}-[0-9]{2}-[0-9]{4}|[A-Z]{2}(?=[A-Z0-9 ]{0,30}(?:[0-9] ?){9})[0-9]{2}(?: ?[A-Z0-9]){11,30}"
        r"|(?<![_./-])[a-z]{2}(?=[a-z0-9 ]{0,30}(?:[0-9] ?){9})[0-9]{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?"
    )
)
"""Where the number of an account or of a person may stand."""

_SOCIAL_SECURITY = lazy_regex(
    r"\b(?:ssn|social[ -]security)\b[^0-9]{0,24}([0-9]{3})[ .-]?([0-9]{2})[ .-]?([0-9]{4})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_PHONE = lazy_regex(
    r"(?<![0-9A-Za-z])(?<![0-9]\.)(?:\+[0-9]{1,3}[ .-]?(?:\(?[0-9]{1,5}\)?[ .-]?){1,4}[0-9]{2,5}"
    r"|\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}|0[0-9]{2,4}[ /-][0-9]{6,8}|[6-9][0-9]{4}[ -]?[0-9]{5})(?![0-9A-Za-z])"
)
_PHONE_DIGITS = range(9, 16)
_INTERNATIONAL = lazy_regex(r"(?<![0-9A-Za-z+])\+[1-9](?:[ .-]?\(?[0-9]{1,5}\)?){2,8}(?![0-9A-Za-z])")
# By the digits alone: eleven for North America and Russia, with an area code that begins with 2 or more; never many
# zeros at the end, as amounts have them.
_DIALLED = lazy_regex(r"(?!.*0{5}$)(?:1[2-9][0-9]{9}|7[3-9][0-9]{9}|[2-689][0-9]{8,14})")
# Toll-free, shared by all callers, or reserved for films and examples.
_IMPERSONAL = lazy_regex(
    r"1(?:8(?:00|33|44|55|66|77|88)|[0-9]{3}55501)|800|[2-9][0-9]{0,2}1?80[08]|61(?:13|18)00|44(?:3|7700900|2079460)"
)

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_GAPS = b" .-()/+"
_OUTLINE = bytes.maketrans(b"0123456789" + _LETTERS, b"0" * 10 + b"A" * 52)
_NUMBER_OUTLINE = re.compile(rb"0000(?:00000|(?<=A0000)(?:00)?A)")
"""Without its separators, every one of those numbers has nine digits, or four or six between two letters."""

_DIGITS = 10


def may_hold_number(data: bytes) -> bool:
    """Whether a text in UTF-8 may contain a number: a fast test before the slow ones."""
    return _NUMBER_OUTLINE.search(data.translate(_OUTLINE, _GAPS)) is not None


def emails(text: str) -> frozenset[str]:
    """The email addresses in a text."""
    return frozenset(_EMAIL().findall(text))


def phone_numbers(text: str) -> frozenset[str]:
    """The telephone numbers in a text, as their digits."""
    numbers = ("".join(filter(str.isdigit, match)) for match in _PHONE().findall(text))
    return frozenset(digits for digits in numbers if len(digits) in _PHONE_DIGITS)


def persons_phone_numbers(text: str) -> frozenset[str]:
    """The telephone numbers in international form that may be a person's, as their digits."""
    numbers = ("".join(filter(str.isdigit, match)) for match in _INTERNATIONAL().findall(text))
    return frozenset(digits for digits in numbers if _DIALLED().fullmatch(digits) and not _IMPERSONAL().match(digits))


def official_numbers(
    text: str, identify: Callable[[str], str | None] | None, *, name: str = ""
) -> Iterator[str | None]:
    """The kinds of official numbers in a text. None: a candidate that `identify` was not there to check.

    `name` is the field that the text is the value of.
    """
    remainder = CARD().sub(lambda match: "," if is_luhn_valid(match[0]) else match[0], text)
    if remainder != text:
        yield "payment card number"
    yield from national_numbers(remainder, name=name)
    candidates = [match[0].upper().replace(".", " ") for match in OFFICIAL().finditer(remainder)]
    candidates += ["-".join(groups) for groups in _SOCIAL_SECURITY().findall(remainder)]
    for number in dict.fromkeys(candidates):
        kind = identify(number) if identify is not None else None
        if kind is not None or identify is None:
            yield kind


def is_luhn_valid(text: str) -> bool:
    """Whether the digits of a text are a card number by the Luhn check digit."""
    digits = [int(character) for character in text if character.isdigit()]
    if len(set(digits)) == 1:
        return False
    doubled = [digit if n % 2 == 0 else sum(divmod(digit * 2, _DIGITS)) for n, digit in enumerate(reversed(digits))]
    return sum(doubled) % _DIGITS == 0
