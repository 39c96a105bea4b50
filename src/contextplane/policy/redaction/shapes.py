"""Shapes of personal data, with the places where they stand in a folded text.

A number with a check digit counts anywhere; a number without one counts in a notation of its own, or beside a word that
names it. So order numbers, hashes, times and amounts stay. No pattern backtracks over a long run: the cost is linear.
"""

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from contextplane.policy.detect.personal_data import SPLIT_CARD, is_luhn_valid, may_hold_number, national_number_spans
from contextplane.policy.redaction.numbers import (
    CARD_ISSUER,
    COMMON_CARD,
    has_iban_check,
    has_verhoeff_check,
    iban_length,
    is_gstin,
    is_in_column,
)
from contextplane.policy.regex_safety import LazyPattern, lazy_regex

__all__ = ["SHAPES", "Shape", "TextProfile"]

Span = tuple[int, int]

_BLANK = "\ufffc"
_RECORD_ID = lazy_regex(
    r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
    r"|(?<![0-9])(?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]"
    r"(?:[T ][0-2][0-9]:[0-5][0-9](?::[0-6][0-9](?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![0-9])"
)
"""UUIDs, dates and times, which hold digits and are no numbers."""


class TextProfile:
    """A folded text, and what is asked of it before any shape is looked for. `name`: its field."""

    __slots__ = ("_has_many_digits", "_may_hold_number", "_numbers", "_words", "lowered", "name", "text")

    def __init__(self, text: str, name: str = "") -> None:
        self.text = text
        self.lowered = text.lower()
        self.name = name
        # Not cached properties: each of those takes a lock.
        self._may_hold_number: bool | None = None
        self._has_many_digits: bool | None = None
        self._numbers: str | None = None
        self._words: frozenset[str] | None = None

    @property
    def may_hold_number(self) -> bool:
        if self._may_hold_number is None:
            self._may_hold_number = may_hold_number(self.text.encode(errors="replace"))
        return self._may_hold_number

    @property
    def has_many_digits(self) -> bool:
        """Whether eight digits follow each other, apart from what stands between the digits of a number."""
        if self._has_many_digits is None:
            outline = self.text.encode("ascii", "replace").translate(_OUTLINE, _GAPS)
            self._has_many_digits = _MANY_DIGITS in outline
        return self._has_many_digits

    @property
    def numbers(self) -> str:
        """The text with UUIDs, dates and times blanked out."""
        if self._numbers is None:
            self._numbers = _RECORD_ID().sub(lambda match: _BLANK * len(match[0]), self.text)
        return self._numbers

    @property
    def words(self) -> frozenset[str]:
        """The words of the text, in lower case."""
        if self._words is None:
            self._words = frozenset(_WORD().findall(self.lowered))
        return self._words

    @property
    def has_digit(self) -> bool:
        return _DIGIT().search(self.text) is not None

    def is_reference(self, start: int) -> bool:
        """Whether the words before a number, or the name of its field, say that it is the number of a record."""
        before = self.text[max(0, start - _REFERENCE_REACH) : start]
        if not before.strip(" \"'"):
            before = f"{self.name} "
        return _REFERENCE().search(before) is not None or _AFTER_LETTER().search(before) is not None


_OUTLINE = bytes(48 if chr(code) in "0123456789" else 65 if chr(code).isalpha() else code for code in range(128)) * 2
_GAPS, _MANY_DIGITS, _PAN_OUTLINE = b" .-()/+", b"0" * 8, b"AAAAA0000A"
_CARD_GAPS, _CARD_DIGITS = b" .-()/+_\t\r\n", b"0" * 12
_WORD, _DIGIT = lazy_regex(r"[a-z]+"), lazy_regex(r"[0-9]")
_REFERENCE_REACH = 40
_REFERENCE = lazy_regex(
    r"(?:^|[^A-Za-z])(?:order|invoice|ticket|tracking|shipment|reference|ref|txn|transaction|sku|case|booking|awb|parcel"
    r"|item|article|product|part|serial|batch|request|job|build|run|event|message|session|trace|span|row|record|document"
    r"|id)s?(?:[ _-]?(?:number|no\.?|num|nr\.?|id|code|ref))?[\"' ]{0,2}(?:is|[:#=])?[\"' #]{0,3}\Z",
    re.IGNORECASE,
)
_AFTER_LETTER = lazy_regex(r"[A-Za-z][-_#/]\Z")


class Shape(NamedTuple):
    """A shape. The first active rule of `rules` masks it. `is_possible`: a fast test before `find`.

    `has_digit`: whether every text of this shape has a digit.
    """

    rules: tuple[str, ...]
    is_possible: Callable[[TextProfile], bool]
    find: Callable[[TextProfile], Iterator[Span]]
    has_digit: bool = True


def _holds(*hints: str) -> Callable[[TextProfile], bool]:
    """A test for texts that hold one of these, in lower case."""
    return lambda profile: any([hint in profile.lowered for hint in hints])  # noqa: C419  a list is faster


def _has_word(words: str, *hints: str) -> Callable[[TextProfile], bool]:
    """A test for texts with one of these words, or that hold one of the hints, in lower case."""
    names = frozenset(words.split())
    holds = _holds(*hints)
    return lambda profile: holds(profile) or not names.isdisjoint(profile.words)


_holds_number: Callable[[TextProfile], bool] = attrgetter("may_hold_number")
_has_many_digits: Callable[[TextProfile], bool] = attrgetter("has_many_digits")


def _may_hold_card(profile: TextProfile) -> bool:
    return _CARD_DIGITS in profile.text.encode("ascii", "replace").translate(_OUTLINE, _CARD_GAPS)


def _may_hold_pan(profile: TextProfile) -> bool:
    return _PAN_OUTLINE in profile.text.encode("ascii", "replace").translate(_OUTLINE)


def _values(pattern: LazyPattern, least_digits: int = 0) -> Callable[[TextProfile], Iterator[Span]]:
    """A search for the group `value` of a pattern, with at least this many digits."""

    def find(profile: TextProfile) -> Iterator[Span]:
        for match in pattern().finditer(profile.text):
            if sum(map(str.isdigit, match["value"])) >= least_digits:
                yield match.span("value")

    return find


# --- Numbers with a check digit, or in a notation of their own ---

_ALONE = r"(?<![0-9A-Za-z])(?<![0-9]\.)(?:{})(?![0-9A-Za-z])"
_PAN = lazy_regex(
    _ALONE.format(
        r"[A-Z]{3}[ABCEFGHJKLPT][A-Z][0-9]{4}[A-Z]"
        r"|(?<![_./-])[a-z]{3}[abcefghjklpt][a-z](?!19|20)[0-9]{4}[a-z](?![_./-])"
    )
)
_AADHAAR = lazy_regex(_ALONE.format(r"[2-9][0-9]{3}([ .-]?)[0-9]{4}[ .-]?[0-9]{4}"))
_SSN = lazy_regex(
    r"(?<![0-9A-Za-z])(?<![0-9]-)(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![0-9A-Za-z]|-[0-9])"
)
_IBAN_START = lazy_regex(r"(?<![0-9A-Za-z])(?:[A-Z]{2}|[a-z]{2})[0-9]{2}")
_GSTIN = lazy_regex(_ALONE.format(r"[0-3][0-9][A-Z]{5}[0-9]{4}[A-Z][0-9A-Z]Z[0-9A-Z]"))
_LICENCE = lazy_regex(
    _ALONE.format(
        r"[A-Z]{2}[ -]?[0-9]{2}[ -]?(?:19|20)[0-9]{9}|[A-Z9]{5}[0-9][0156][0-9][0-3][0-9]{2}[A-Z9]{2}[0-9][A-Z]{2}"
    )
)
_MACHINE_LINE = lazy_regex(r"(?<![0-9A-Za-z<])P[A-Z<][A-Z]{3}[A-Z<]{39}(?:\s{1,2}[A-Z0-9<]{44})?(?![0-9A-Za-z<])")


_WITHOUT_DIGITS, _COMMON_GAPS = str.maketrans("", "", "0123456789"), str.maketrans("", "", " .-")


def _cards(profile: TextProfile) -> Iterator[Span]:
    text = profile.numbers
    match = SPLIT_CARD().search(text)
    while match is not None:
        is_card = _is_card(match, profile)
        if is_card:
            yield match.span()
        # A group that is no part of a number may stand before one.
        match = SPLIT_CARD().search(text, match.end() if is_card else match.start() + 1)


def _is_card(match: re.Match[str], profile: TextProfile) -> bool:
    digits = "".join(filter(str.isdigit, match[0]))
    gaps = match[0].translate(_WITHOUT_DIGITS)
    # One dot alone is that of a fraction. In one piece, a number of a rare form may be that of a record.
    if gaps == "." or not CARD_ISSUER().match(digits) or not is_luhn_valid(digits):
        return False
    if not gaps:
        return COMMON_CARD().match(digits) is not None or not profile.is_reference(match.start())
    return not gaps.translate(_COMMON_GAPS) or not is_in_column(match)


def _pans(profile: TextProfile) -> Iterator[Span]:
    return (match.span() for match in _PAN().finditer(profile.text))


def _aadhaars(profile: TextProfile) -> Iterator[Span]:
    for match in _AADHAAR().finditer(profile.numbers):
        if has_verhoeff_check(match[0]) and (match[1] or not profile.is_reference(match.start())):
            yield match.span()


def _ibans(profile: TextProfile) -> Iterator[Span]:
    text = profile.text
    for match in _IBAN_START().finditer(text):
        length = iban_length(match[0][:2])
        place, characters = match.start(), ""
        while length and len(characters) < length and place < len(text):
            character = text[place]
            if character.isascii() and character.isalnum():
                characters += character
            elif character not in " -" or text[place - 1] in " -":
                break
            place += 1
        is_whole = place == len(text) or not text[place].isalnum()
        if length and len(characters) == length and is_whole and has_iban_check(characters):
            yield match.start(), place


def _gstins(profile: TextProfile) -> Iterator[Span]:
    return (match.span() for match in _GSTIN().finditer(profile.text) if is_gstin(match[0]))


def _national(*kinds: str) -> Callable[[TextProfile], Iterator[Span]]:
    def find(profile: TextProfile) -> Iterator[Span]:
        for kind, span in national_number_spans(profile.numbers, name=profile.name):
            if kind in kinds:
                yield span

    return find


def _spans(pattern: LazyPattern) -> Callable[[TextProfile], Iterator[Span]]:
    return lambda profile: (match.span() for match in pattern().finditer(profile.numbers))


# --- Numbers beside a word that names them ---

_JOINT = (
    r"(?:[ _-]?(?:number|numbers|no\b\.?|num|nr\.?|id|code|card)){0,2}[\"'`*)\]]{0,3}\s{0,3}"
    r"(?:(?:is|was|are|ist)\b:?|:=|=>|[:=#])?\s{0,3}[\"'`(*#]{0,3}"
)
_IDENTIFIER = r"(?P<value>[A-Za-z0-9][A-Za-z0-9/-]{4,19}(?: [0-9]{3,11}){0,3}(?![0-9A-Za-z]))"


def _beside(words: str, value: str) -> LazyPattern:
    return lazy_regex(rf"(?<![0-9A-Za-z])(?:{words}){_JOINT}{value}", re.IGNORECASE)


_SSN_BESIDE = _beside(r"ssn|social[ _-]security", r"(?P<value>[0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4}(?![0-9A-Za-z]))")
_PASSPORT = _beside(r"passport|reisepass|passeport", _IDENTIFIER)
_LICENCE_BESIDE = _beside(r"driv(?:ing|er'?s?)[ _-]?licen[cs]e|f[\u00fcu]e?hrerschein|permis de conduire", _IDENTIFIER)
_TAX_BESIDE = _beside(
    r"tax(?:payer)?[ _-]?(?:id(?:entification)?|number|no\b\.?)|tin|ein|fein|itin|vat|ust-?id(?:nr)?|gstin?|utr|tfn|nif"
    r"|cnpj|steuer-?(?:id|nummer)",
    _IDENTIFIER,
)
_CVV = _beside(
    r"cvv2?|cvc2?|card verification (?:value|code|number)|security code", r"(?P<value>[0-9]{3,4}(?![0-9A-Za-z]))"
)
_ACCOUNT = lazy_regex(
    rf"(?<![0-9A-Za-z])(?:(?:bank[ _-]?)?(?:account|acct|a/c|acc)\.?[ _-]?(?:number|no\b\.?|num|nr\.?|#)"
    rf"|bank[ _-]?account|kontonummer|routing[ _-]?(?:number|no\b\.?)|sort[ _-]?code){_JOINT}"
    r"(?P<value>[0-9](?:[ -]?[0-9]){5,17}(?![0-9A-Za-z]))",
    re.IGNORECASE,
)
_MONTH = r"(?:jan|feb|m[a\u00e4]r|apr|ma[yi]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]{0,6}"
_BIRTH = lazy_regex(
    r"(?<![0-9A-Za-z])(?:date[ _-]of[ _-]birth|d\.?o\.?b\b\.?|birth[ _-]?(?:date|day)|born|geburtsdatum|geboren"
    r"|date de naissance|fecha de nacimiento)[^0-9A-Za-z]{0,4}(?:(?:is|was|on|the|am|le)[^0-9A-Za-z]{1,3}){0,2}"
    r"(?P<value>[0-9]{1,4}[./ -][0-9]{1,2}[./ -][0-9]{2,4}"
    rf"|[0-9]{{1,2}}(?:st|nd|rd|th|\.)?[ -](?:of )?{_MONTH}[., -]{{1,3}}[0-9]{{2,4}}"
    rf"|{_MONTH}[. ]{{1,2}}[0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}}|[0-9]{{8}})(?![0-9A-Za-z])",
    re.IGNORECASE,
)

# --- Addresses and telephone numbers ---

_DOMAIN = lazy_regex(r"@((?:[\w-]{1,63}\.){1,8}+(?:[^\W\d_]{2,63}|xn--[a-z0-9-]{1,59}))(?![\w-])")
_NUMBERED = lazy_regex(r"[0-9]+\.(?:[0-9]+\.|(?:ya?ml|json|toml|md|txt|csv|tar|zip|gz|whl)\Z)")
_MORE_LOCAL = frozenset("._%+-'&*/=?^{|}~!#$")
_LOCAL_LENGTH = 64
_UPI = lazy_regex(
    r"@(?:ok(?:axis|sbi|hdfcbank|icici)|[ai]xl|ybl|ibl|paytm|pt(?:axis|hdfc|sbi|yes)|upi|apl|yapl|rapl|axisbank|sbi"
    r"|hdfcbank|icici|kotak|barodampay|cnrb|pnb|idfcbank|indus|federal|fbl|jupiteraxis|airtel|freecharge|wa(?:axis|hdfcbank"
    r"|icici|sbi)|amazonpay|slice|timecosmos|tapicici|mahb|unionbank|uboi|rbl|yesbank|yesg|dbs|hsbc)(?![\w.-]*\w)",
    re.IGNORECASE,
)


def _local_start(text: str, at: int) -> int:
    """Where the part before an `@` begins."""
    start = at
    while start > max(0, at - _LOCAL_LENGTH) and (text[start - 1].isalnum() or text[start - 1] in _MORE_LOCAL):
        start -= 1
    while start < at and not text[start].isalnum():
        start += 1
    return start


def _emails(profile: TextProfile) -> Iterator[Span]:
    text = profile.text
    for match in _DOMAIN().finditer(text):
        start = _local_start(text, match.start())
        # Versions (`pack@1.2.0-rc.ab`) and repositories (`git@host:path`) are written alike.
        is_repository = text[start : match.start()] == "git" and text[match.end() : match.end() + 1] == ":"
        if start < match.start() and not is_repository and not _NUMBERED().match(match[1]):
            yield start, match.end()


def _upi_ids(profile: TextProfile) -> Iterator[Span]:
    for match in _UPI().finditer(profile.text):
        start = _local_start(profile.text, match.start())
        if start < match.start():
            yield start, match.end()


# Digit by digit, so that there is one way to match a run.
_INTERNATIONAL = lazy_regex(r"(?<![0-9A-Za-z+])(?:\+|00(?=[1-9][0-9]?[ .()/-]))[1-9](?:[ .()/-]{0,3}+[0-9]){6,30}+")
_GROUP = lazy_regex(r"[0-9]+")
_GROUPED = lazy_regex(
    r"(?<![0-9A-Za-z_.])(?<![0-9]-)(?:"
    r"(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}"
    r"|0[1-9](?:[ .-][0-9]{2}){4}|\(?0[0-9]{1,4}\)?[ /-][0-9]{3,8}(?:[ -][0-9]{3,4}){0,2}|[6-9][0-9]{4}[ -][0-9]{5}"
    r")(?![0-9A-Za-z]|[.-][0-9])"
)
_PHONE_HINTS = ("phone", "mobile", "whatsapp", "telefon")
_PHONE_WORDS = ("phone", "mobile", "mob", "cell", "tel", "whatsapp", "call", "sms", "fax", "reach", "contact", "dial")
_PHONE_BESIDE = lazy_regex(
    rf"(?<![A-Za-z])(?:{'|'.join(_PHONE_WORDS)}|telephone|telefon|my number|text me)(?![a-z]{{3}})[^0-9\n@]{{0,20}}"
    r"(?P<value>\(?[0-9](?:[ .()/-]{0,2}+[0-9]){6,14}+)(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_MOST_DIGITS, _FEWEST_DIGITS, _AMERICAN = 15, 8, 11
_ROUND = "00000"


def _phones(profile: TextProfile) -> Iterator[Span]:
    text = profile.numbers
    for match in _INTERNATIONAL().finditer(text):
        digits, end = "", match.start()
        for group in _GROUP().finditer(text, match.start(), match.end()):
            # The longest number has fifteen digits; one of North America has eleven.
            most = _AMERICAN if digits.startswith("1") and len(digits) >= _AMERICAN else _MOST_DIGITS
            if len(digits) + len(group[0]) > most:
                break
            digits, end = digits + group[0], group.end()
        after = text[end : end + 1]
        if len(digits) >= _FEWEST_DIGITS and not digits.endswith(_ROUND) and not after.isalnum():
            yield match.start(), end
    for match in _GROUPED().finditer(text):
        if sum(map(str.isdigit, match[0])) in range(9, 13) and not profile.is_reference(match.start()):
            yield match.span()


def _labelled_phones(profile: TextProfile) -> Iterator[Span]:
    for match in _PHONE_BESIDE().finditer(profile.numbers):
        start = match.start("value")
        if not match["value"].endswith(_ROUND) and not profile.is_reference(start):
            yield match.span("value")


_IPV4 = lazy_regex(
    r"(?<![0-9A-Za-z.-])(?<!v)(?<!version )(?<!Version )(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}"
    r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(?![0-9A-Za-z]|\.[0-9]|-[A-Za-z])"
)
_IPV6 = lazy_regex(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f:]{2,39}+(?:\.[0-9]{1,3}){0,3}(?![0-9A-Za-z:])")
_HEXTETS, _LONG_HEXTET = 8, 3


_DOTTED = lazy_regex(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_COLONS = lazy_regex(r"::|(?:[0-9A-Fa-f]:[0-9A-Fa-f]{1,3}){3}|[0-9A-Fa-f]{4}:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:")


def _may_be_ip(profile: TextProfile) -> bool:
    text = profile.text
    return (text.count(".") > 2 and _DOTTED().search(text) is not None) or (  # noqa: PLR2004  between four numbers
        text.count(":") > 1 and _COLONS().search(text) is not None
    )


def _ip_addresses(profile: TextProfile) -> Iterator[Span]:
    if "." in profile.text:
        yield from (match.span() for match in _IPV4().finditer(profile.text))
    if profile.text.count(":") > 1:
        yield from (match.span() for match in _IPV6().finditer(profile.text) if _is_ipv6(match[0]))


def _is_ipv6(text: str) -> bool:
    groups = text.partition(".")[0].split(":")
    if any(len(group) > len("ffff") for group in groups) or not any(map(str.isdigit, text)):
        return False
    if "::" in text:
        # In a program, `[1::2]` is a part of a list.
        is_long = any(len(group) >= _LONG_HEXTET for group in groups)
        return (
            text.count("::") == 1 and ":::" not in text and is_long and len(list(filter(None, groups))) in range(2, 8)
        )
    return all(groups) and len(groups) == _HEXTETS


# --- Names and streets ---

_CAPITALIZED = r"[^\W\d_a-z][\w'\u2019.-]{0,30}"
_NAME = lazy_regex(
    rf"(?<!\w)(?:(?:Mr|Mrs|Ms|Mx|Dr|Prof|Herr|Frau|Shri|Smt|Mme)\.? |(?i:my name is|my name's|name is) )"
    rf"(?P<value>{_CAPITALIZED}(?: {_CAPITALIZED}){{0,3}})"
)
_NAME_LINE = lazy_regex(
    r"^[ \t>*-]{0,8}[\"']?(?:[A-Za-z]{1,12}[ _-]){0,2}(?i:name|surname)[\"'*]{0,3}[ \t]{0,3}[:=][ \t*]{0,3}"
    rf"(?P<value>{_CAPITALIZED}(?: {_CAPITALIZED}){{0,4}})[ \t.,;]{{0,3}}$",
    re.MULTILINE,
)
_STREET = lazy_regex(
    rf"(?<![0-9A-Za-z#/-])(?P<value>[0-9]{{1,5}}[A-Za-z]?,? (?:{_CAPITALIZED} ){{1,4}}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Way|Place|Pl|Square|Sq|Terrace|Close|Marg"
    r"|Nagar|Highway|Hwy|Parkway|Pkwy|Circle|Crescent)(?![A-Za-z])\.?"
    r"(?:,? (?:Apt|Apartment|Unit|Suite|Flat|#)\.? ?[0-9A-Za-z-]{1,6})?"
    rf"(?:, {_CAPITALIZED}(?: {_CAPITALIZED}){{0,2}}){{0,3}}(?:,? [A-Z]{{2}})?(?:,? [0-9]{{5,6}}(?:-[0-9]{{4}})?)?)"
    r"|(?P<german>(?<!\w)[^\W\d_a-z][\w.-]{2,30}(?:stra\u00dfe|strasse|str\.|weg|platz|gasse|allee)"
    r" [0-9]{1,4}[a-z]?(?!\w))"
)
_ADDRESS_LINE = lazy_regex(
    r"^[ \t>*-]{0,8}[\"']?(?:[A-Za-z]{1,12}[ _-]){0,2}(?i:address|street)[\"'*]{0,3}[ \t]{0,3}[:=][ \t*]{0,3}"
    r"(?P<value>(?=[^\n0-9]{0,80}[0-9])[^\n@:]{4,200})$",
    re.MULTILINE,
)


def _streets(profile: TextProfile) -> Iterator[Span]:
    for match in _STREET().finditer(profile.text):
        yield match.span("value") if match["value"] else match.span("german")
    yield from (match.span("value") for match in _ADDRESS_LINE().finditer(profile.text))


_may_be_street = _has_word(
    "street st avenue ave road rd lane ln drive dr boulevard blvd court ct way place pl square sq terrace close marg "
    "nagar highway hwy parkway pkwy circle crescent address",
    *("stra\u00dfe", "strasse", "str.", "weg ", "platz ", "gasse ", "allee "),
)


SHAPES: tuple[Shape, ...] = (
    # Where two rules mask the same, the one that names it more exactly comes first.
    Shape(("iban", "bank_account"), _has_many_digits, _ibans),
    Shape(("credit_card", "pan"), _may_hold_card, _cards),
    Shape(("tax_id",), _may_hold_pan, _gstins),
    Shape(("pan",), _may_hold_pan, _pans),
    Shape(("aadhaar",), _has_many_digits, _aadhaars),
    Shape(("ssn",), _has_many_digits, _spans(_SSN)),
    Shape(("ssn",), _holds("ssn", "security"), _values(_SSN_BESIDE)),
    Shape(("ssn",), _holds_number, _national("National Insurance number", "NHS number", "citizen service number")),
    Shape(("tax_id",), _has_many_digits, _national("CPF of a taxpayer")),
    Shape(
        ("tax_id",),
        _has_word("tin ein fein itin vat ust ustid ustidnr gst gstin utr tfn nif cnpj", "tax", "steuer"),
        _values(_TAX_BESIDE, 6),
    ),
    Shape(("passport",), _holds("passport", "reisepass", "passeport"), _values(_PASSPORT, 5)),
    Shape(("passport",), _holds("<<"), _spans(_MACHINE_LINE), has_digit=False),
    Shape(("driving_licence",), _holds("driv", "hrerschein", "conduire"), _values(_LICENCE_BESIDE, 4)),
    Shape(("driving_licence",), _holds_number, _spans(_LICENCE)),
    Shape(("cvv",), _holds("cvv", "cvc", "verification", "security code"), _values(_CVV)),
    Shape(
        ("bank_account",),
        _holds("account", "acct", "acc no", "a/c", "routing", "sort code", "sort_code", "kontonummer"),
        _values(_ACCOUNT, 6),
    ),
    Shape(("upi_id",), _holds("@"), _upi_ids, has_digit=False),
    Shape(("email",), _holds("@"), _emails, has_digit=False),
    Shape(("phone",), _has_many_digits, _phones),
    Shape(
        ("phone",),
        _has_word("tel mob cell call fax reach contact dial sms text number", *_PHONE_HINTS),
        _labelled_phones,
    ),
    Shape(
        ("date_of_birth",),
        _has_word("dob born geboren", "birth", "d.o.b", "geburtsdatum", "naissance", "nacim"),
        _values(_BIRTH),
    ),
    Shape(("ip_address",), _may_be_ip, _ip_addresses),
    Shape(
        ("name",),
        _has_word("mr mrs ms mx dr prof herr frau shri smt mme", "name is", "name's"),
        _values(_NAME),
        has_digit=False,
    ),
    Shape(("name",), _holds("name"), _values(_NAME_LINE), has_digit=False),
    Shape(("address",), _may_be_street, _streets),
)
"""Every shape of personal data. Those of secrets are found by `detect.secrets`."""
