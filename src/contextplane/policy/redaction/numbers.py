"""Check digits of the numbers that the redactor masks, and the issuers and lengths that there are."""

import re
from functools import cache

from contextplane.policy.regex_safety import lazy_regex

__all__ = [
    "CARD_ISSUER",
    "COMMON_CARD",
    "has_iban_check",
    "has_verhoeff_check",
    "iban_length",
    "is_gstin",
    "is_in_column",
]

# The first digits and the length of the number, by issuer: Visa, Mastercard, American Express, Diners Club, Discover,
# JCB, UnionPay and RuPay, Maestro.
CARD_ISSUER = lazy_regex(
    r"(?:4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}"
    r"|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|36[0-9]{12,17}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2}|0[0-9]{2})[0-9]{12,15}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}|62[0-9]{14,17}|8[12][0-9]{14,17}|(?:508[0-9]|35[36][0-9])[0-9]{12}"
    r"|(?:5[0678]|6[0-9])[0-9]{11,17})\Z"
)

COMMON_CARD = lazy_regex(
    r"(?:4[0-9]{15}|5[1-5][0-9]{14}|2[2-7][0-9]{14}|3[47][0-9]{13}|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}|62[0-9]{14}|508[0-9]{13})\Z"
)
"""The numbers of most cards; others are of few issuers, or of a length that few have."""

_IBAN_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 "
    "KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 "
    "PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 "
    "UA29 VA22 VG24 XK20 YE30"
)
_IBAN_REMAINDER = 97

# The group of the symmetries of a pentagon, and a permutation of the digits for each place.
_VERHOEFF_PRODUCT = tuple(
    tuple(
        (row + column) % 5
        if row < 5 and column < 5  # noqa: PLR2004  the rotations come first
        else 5 + (row + column) % 5
        if row < 5  # noqa: PLR2004
        else 5 + (row - column) % 5
        if column < 5  # noqa: PLR2004
        else (row - column) % 5
        for column in range(10)
    )
    for row in range(10)
)
_VERHOEFF_STEP = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
_GSTIN_CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@cache
def _iban_lengths() -> dict[str, int]:
    return {entry[:2]: int(entry[2:]) for entry in _IBAN_LENGTHS.split()}


def iban_length(country: str) -> int:
    """The length of an IBAN of a country; 0 for one that has none."""
    return _iban_lengths().get(country.upper(), 0)


def has_iban_check(characters: str) -> bool:
    """Whether letters and digits without separators have the check digits of an IBAN."""
    moved = characters[4:] + characters[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % _IBAN_REMAINDER == 1


@cache
def _verhoeff_permutations() -> tuple[tuple[int, ...], ...]:
    permutations = [tuple(range(10))]
    for _ in range(7):
        permutations.append(tuple(_VERHOEFF_STEP[digit] for digit in permutations[-1]))
    return tuple(permutations)


def has_verhoeff_check(text: str) -> bool:
    """Whether the digits of a text end in their Verhoeff check digit, and are not all the same."""
    digits = [int(character) for character in text if character.isdigit()]
    permutations, value = _verhoeff_permutations(), 0
    for n, digit in enumerate(reversed(digits)):
        value = _VERHOEFF_PRODUCT[value][permutations[n % 8][digit]]
    return value == 0 and len(set(digits)) > 1


def is_gstin(text: str) -> bool:
    """Whether an Indian tax number ends in its check character."""
    total = 0
    for n, character in enumerate(text[:-1]):
        product = _GSTIN_CHARACTERS.index(character) * (1 + n % 2)
        total += sum(divmod(product, len(_GSTIN_CHARACTERS)))
    return _GSTIN_CHARACTERS[-total % len(_GSTIN_CHARACTERS)] == text[-1]


# --- Columns of numbers ---

_COLUMN_REACH = 24
_GROUPS_BEFORE = lazy_regex(r"(?<![0-9])(?:[0-9]{4}[\t\r\n /_]{1,3}){1,3}\Z")
_GROUPS_AFTER = lazy_regex(r"(?:[\t\r\n /_]{1,3}[0-9]{4}(?![0-9])){1,3}")
_FOUR_DIGITS = lazy_regex(r"[0-9]{4}")


def is_in_column(match: re.Match[str]) -> bool:
    """Whether groups of digits are part of a table: more than one other group stands beside them."""
    text = match.string
    before = _GROUPS_BEFORE().search(text, max(0, match.start() - _COLUMN_REACH), match.start())
    after = _GROUPS_AFTER().match(text, match.end())
    groups = [group for part in (before, after) if part for group in _FOUR_DIGITS().findall(part[0])]
    return len(groups) > 1
