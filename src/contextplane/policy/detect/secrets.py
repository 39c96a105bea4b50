"""Detectors of secrets. They name the kind of a secret and never repeat it.

Three kinds of evidence, one section each: shapes that only secrets have; runs as random as only keys are; and secrets
without a shape, recognised by a label beside them (`the password is ...`). `secret_spans` says where they stand.

The cost is linear in the size of the input, for any content. It is still slower than hashing, so only the beginning of
a large content is searched.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.regex_safety import lazy_regex

__all__ = [
    "HIDDEN",
    "LABELS",
    "LONG_PIECE",
    "SEARCH_LIMIT",
    "SECRET_NAME",
    "SecretScan",
    "SecretScanResult",
    "SecretSpan",
    "holds_random_run",
    "is_random",
    "is_secret_value",
    "labelled_secrets",
    "may_hold_secret",
    "redact_shapes",
    "scan_value",
    "secret_shapes",
    "secret_spans",
]

# --- Shapes that only secrets have ---

HIDDEN = "(not shown: it looks like a secret)"

SEARCH_LIMIT = 256 << 10
"""How much of one content is searched: its first 256 KiB."""

# Each row: the kind, a pattern that begins with a character in the middle of the shape, and a pattern around it. A
# pattern that begins with a literal character is several times as fast as any other, and rows with the same one are
# searched together. None looks further than _BEHIND before the character and _AHEAD from it on, because a stream may be
# cut anywhere. None is tried at every place of a long run either, or some contents would take for ever.
_DASH = rb"-[A-Za-z0-9](?<=[-abkprst]-.)"
_UNDERSCORE = rb"_[A-Za-z0-9]{22}"
_SHAPES = (
    ("private key", _DASH, rb"(?<=-----B)EGIN [A-Z0-9 ]{0,20}PRIVATE KEY(?: BLOCK)?-----"),
    ("AWS access key", rb"I", rb"[0-9A-Z]{17}(?<=\bA[KS]IA.{16})\b"),
    (
        "GitHub token",
        _UNDERSCORE,
        rb"(?:(?<=\bgh[pousr]_.{22})[A-Za-z0-9]{14}|(?<=\bgithub_pat_.{22})_[A-Za-z0-9]{20})",
    ),
    ("Hugging Face token", _UNDERSCORE, rb"(?<=\bhf_.{22})[A-Za-z0-9]{8}"),
    ("npm token", _UNDERSCORE, rb"(?<=\bnpm_.{22})[A-Za-z0-9]{14}"),
    ("Stripe key", _UNDERSCORE, rb"(?<=\b[rs]k_(?:live|test)_.{22})"),
    ("GitLab token", _DASH, rb"(?<=\bglpat-.)[A-Za-z0-9_-]{19}"),
    ("Slack token", _DASH, rb"(?<=\bxox[abprs]-.)[A-Za-z0-9-]{9}"),
    # With a digit, or with many letters in one piece: CSS names that begin alike have neither.
    ("API key", _DASH, rb"(?<=\bsk-.)(?<!-sk-.)(?:(?<=[0-9])|(?=[A-Za-z_-]{0,63}[0-9]))[A-Za-z0-9_-]{19}"),
    ("API key", _DASH, rb"(?<=\bsk-.)(?<!-sk-.)(?:[a-z0-9]{1,11}-)?[A-Za-z0-9]{19}"),
    ("JSON Web Token", rb"J", rb"(?<=\beyJ)(?<!-eyJ)[A-Za-z0-9_-]{8,1024}\.eyJ[A-Za-z0-9_-]{8}"),
)
_IN_ONE_PIECE = {_UNDERSCORE: 22, rb"I": 20}
"""Every shape that is found by this character has at least this many letters and digits without a break."""

_BEHIND, _AHEAD = 16, 1100
_MAX_WORD = 16 << 10
_PARTS = (r"-----BEGIN [A-Z0-9 ]{0,40}-----", r"[^\s'\"]+")


def secret_shapes(data: bytes, *, longest_piece: int = SEARCH_LIMIT) -> tuple[str, ...]:
    """The kinds of secrets that the beginning of some bytes seems to contain, in a fixed order.

    `longest_piece`: an upper bound of the letters and digits that follow each other without a break. A caller that
    knows it saves a search.
    """
    return _sort_kinds(_kinds(data[:SEARCH_LIMIT], 0, ended=True, longest_piece=longest_piece))


def redact_shapes(text: str) -> str:
    """The same text without the words that have the shape of a secret, for messages that quote input.

    A word too long to be read is redacted without a search.
    """
    is_long = len(text) > _MAX_WORD
    for part in _PARTS if is_long or _has_shape(text) else ():
        text = re.sub(part, lambda match: _redact_if_shaped(match[0]), text)
    return text if is_long else _redact_if_shaped(text)


def _redact_if_shaped(text: str) -> str:
    return HIDDEN if len(text) > _MAX_WORD or _has_shape(text) else text


def _has_shape(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace")))


class SecretScanResult(Value, frozen=True):
    """The kinds of secrets in some texts, and whether all of the texts were searched."""

    kinds: tuple[str, ...]
    whole: bool


def scan_value(value: Json) -> SecretScanResult:
    """Search all texts in a value, keys included."""
    data = "\n".join(_texts(value)).encode(errors="replace")
    return SecretScanResult(kinds=secret_shapes(data), whole=len(data) <= SEARCH_LIMIT)


class SecretScan:
    """Searches bytes that arrive in pieces. The result is that of `secret_shapes`, however they are cut."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._end = b""
        self._start = 0
        self._left = SEARCH_LIMIT

    def see(self, chunk: bytes) -> None:
        """Search the piece that follows."""
        if not self._left:
            return
        data = self._end + chunk[: self._left]
        self._left -= min(len(chunk), self._left)
        self._found |= _kinds(data, self._start, ended=False)
        if len(data) > _BEHIND + _AHEAD:
            data, self._start = data[-_BEHIND - _AHEAD :], _BEHIND
        self._end = data

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds found, if nothing follows."""
        return _sort_kinds(self._found | _kinds(self._end, self._start, ended=True))


# For each character: the byte searched first, the least length of its piece, and its pattern.
_SEARCHES = tuple(
    (char[:1], _IN_ONE_PIECE.get(char, 0), char) for char in dict.fromkeys(char for _, char, _ in _SHAPES)
)


@cache
def _any_of(char: bytes) -> re.Pattern[bytes]:
    """A pattern for any of the shapes around a character. Compiled when first needed."""
    return re.compile(char + rb"(?:" + rb"|".join(around for _, at, around in _SHAPES if at == char) + rb")")


@cache
def _each_of(char: bytes) -> tuple[tuple[str, re.Pattern[bytes]], ...]:
    return tuple((kind, re.compile(char + around)) for kind, at, around in _SHAPES if at == char)


def _kinds(data: bytes, start: int, *, ended: bool, longest_piece: int = SEARCH_LIMIT) -> set[str]:
    """The kinds of matches from `start` on. Before the data has `ended`, a match at its end is open."""
    kinds = set()
    for first, piece, char in _SEARCHES:
        if piece <= longest_piece and first in data and _any_of(char).search(data, start):
            for kind, shape in _each_of(char):
                match = shape.search(data, start)
                if match and (ended or match.end() < len(data)):
                    kinds.add(kind)
    return kinds


def _sort_kinds(kinds: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for kind, _, _ in _SHAPES if kind in kinds)) if kinds else ()


def _texts(value: Json) -> Iterator[str]:
    """Every string in a value. Not recursive: a value may be deeper than the stack."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            yield from node
            todo += node.values()
        elif isinstance(node, list | tuple):
            todo += node


# --- Random text ---

LONG_PIECE = 14
"""Random text has at least one piece this long between separators; names have words there."""

_RUN = lazy_regex(r"(?<![A-Za-z0-9+/_-])(?:sha[0-9]{1,3}:|md5:|ctx:)?[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_=-])")
_UUID = lazy_regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGEST = lazy_regex(r"(?:sha[0-9]{1,3}:|md5:|ctx://)[0-9a-f]{32,128}|sha[0-9]{1,3}[:-][A-Za-z0-9+/_-]{27,86}={0,2}")
_PIECE = lazy_regex(rf"[A-Za-z0-9]{{{LONG_PIECE},}}")
_TURN = lazy_regex(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_TURNS = 4
_CHARACTERS_PER_TURN = 8

# A letter, and the letters that often follow it: 200 pairs, nine in ten pairs of words and three in ten at random.
_FOLLOWERS = (
    *("abcdgilmnprstuvy", "baeilou", "caehiklortu", "dadeilosu", "eabcdefgilmnprstvwx", "faefilor", "gaeir", "haeio"),
    *("iabcdefglmnoprstvz", "ke", "ladeilostuy", "maeimopv", "nacdefginostuv", "oabcdgilmnoprstuvw", "paeiloprt"),
    *("qu", "racdeimorsty", "sacehilopstu", "tacdehiloprstuy", "ueilmnprst", "vaeim", "wi", "xet", "yp", "ze"),
)
_COMMON = frozenset(row[0] + follower for row in _FOLLOWERS for follower in row[1:])
_LEAST_PAIRS = 14
_LEAST_LETTERS = 18
_LEAST_COMMON = 0.55


def holds_random_run(text: str) -> bool:
    """Whether a text contains a run of characters that looks random."""
    return any(_is_random(match[0]) for match in _RUN().finditer(text))


def _is_random(run: str) -> bool:
    if _UUID().fullmatch(run) or _DIGEST().fullmatch(run):
        return False
    return any(map(is_random, _PIECE().findall(run)))


def is_random(piece: str) -> bool:
    """Whether letters and digits without a break look random.

    Names have digits at the end of a word, random text has them anywhere. And of the pairs of neighbouring letters,
    words use the common ones; random text uses all alike.
    """
    if piece.isalpha():
        return len(piece) >= _LEAST_LETTERS and not _is_made_of_words(piece)
    return len(_TURN().findall(piece)) >= max(_TURNS, len(piece) // _CHARACTERS_PER_TURN) or not _is_made_of_words(
        piece
    )


def _is_made_of_words(piece: str) -> bool:
    # Each pair once: a row of the same letters is not random.
    pairs = {first + second for first, second in pairwise(piece.lower()) if first.isalpha() and second.isalpha()}
    return len(pairs) < _LEAST_PAIRS or len(pairs & _COMMON) >= _LEAST_COMMON * len(pairs)


# --- Secrets with a label beside them ---

_FOR_PEOPLE = r"pass(?:word|wd|phrase|code)|pwd"
_FOR_MACHINES = r"secret|token|(?:api|access|secret|private|signing|auth|account)[_ -]?key|apikey"
LABELS = ("pass", "pwd", "secret", "token", "key", "bearer", "authorization", "://")
"""In lower case: a text without any of these has no labelled secret."""

SECRET_NAME = lazy_regex(rf"(?:.*[_-])?(?:(?P<password>{_FOR_PEOPLE})|{_FOR_MACHINES})", re.IGNORECASE)
"""The name of a field that holds a secret."""

# The value is a lookahead: it may itself be a label that a value follows.
_LABELLED = lazy_regex(
    rf"(?:(?P<password>{_FOR_PEOPLE})|{_FOR_MACHINES})s?[\"'`*)\]]{{0,3}}[ \t]{{0,4}}(?P<joint>:=|=>|[:=]|\bis\b:?)"
    r"(?P<gap>\s{0,4})(?P<quote>[\"'`]?)(?=(?P<value>[^\s\"'`,;<>{}()]{6,200}))",
    re.IGNORECASE,
)
_HEADER = lazy_regex(
    r"\b(?:(?P<header>authorization\s{0,2}[:=]\s{0,2}[\"']?)(?:bearer|basic|token)|bearer)\s{1,2}"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,})",
    re.IGNORECASE,
)
_IN_ADDRESS = lazy_regex(
    r"[a-z][a-z0-9+.-]{0,20}://[^\s/@:{}<>$]{0,64}:(?P<value>[^\s/@{}<>$*]{1,200})@", re.IGNORECASE
)
_SIGN = lazy_regex(r"[!@#$%^&*]")
_NAMED_VERSION = lazy_regex(r"[A-Za-z]+(?:[_./:-][A-Za-z]+)*[_./:-]?v?[0-9]{1,2}(?:\.[0-9]+)*")
_MEASURE = lazy_regex(r"[0-9]+[-.]?[A-Za-z]*(?:-[A-Za-z]+)*")
_REFERENCE = lazy_regex(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:vault|env|ref|secrets?|kms|arn|file|sha256):|[$%*]|\.\.\.")
_WORDS = frozenset(
    (
        *(
            "always",
            "changeme",
            "correct",
            "encrypted",
            "example",
            "expired",
            "hashed",
            "hidden",
            "incorrect",
            "invalid",
        ),
        *("masked", "missing", "needed", "omitted", "optional", "placeholder", "redacted", "removed", "required"),
        *("revoked", "rotated", "string", "unknown"),
    )
)
"""Words that follow a label and are no secret."""

_FEWEST_FOR_PEOPLE, _FEWEST_FOR_MACHINES, _FEWEST_IN_PROSE = 6, 8, 12


def labelled_secrets(text: str) -> Iterator[str]:
    """The kinds of secrets that a text gives away by a label beside them.

    A text that only speaks of passwords gives none away: the value must look like a secret, and not like a word or a
    reference.
    """
    if any(_is_labelled_secret(match) for match in _LABELLED().finditer(text)):
        yield "password"
    if any(_is_header(match) for match in _HEADER().finditer(text)):
        yield "authorization header"
    if _IN_ADDRESS().search(text):
        yield "password in an address"


def is_secret_value(name: str, value: str) -> bool:
    """Whether a field of this name holds this value as its secret."""
    label = SECRET_NAME().fullmatch(name)
    return label is not None and " " not in value and _is_secret(value, password=bool(label["password"]), close=True)


def _is_labelled_secret(match: re.Match[str]) -> bool:
    # A plain word is a secret only in quotes, or right after `=`.
    close = bool(match["quote"]) or (match["joint"] == "=" and not match["gap"])
    value = match["value"].rstrip(".:!?]")
    if match["joint"].lower().startswith("is") and not close:
        return _is_secret_in_prose(value, password=bool(match["password"]))
    return _is_secret(value, password=bool(match["password"]), close=close)


def _is_secret_in_prose(value: str, *, password: bool) -> bool:
    """Whether the word after `is` is a secret: most often a sentence goes on there."""
    if _MEASURE().fullmatch(value) and not value.isdigit():
        return False
    return _is_secret(value, password=password, close=False) and (password or len(value) >= _FEWEST_IN_PROSE)


def _is_secret(value: str, *, password: bool, close: bool) -> bool:
    if len(value) < (_FEWEST_FOR_PEOPLE if password else _FEWEST_FOR_MACHINES) or _REFERENCE().match(value):
        return False
    if value.lower() in _WORDS or len(set(value)) == 1:
        return False
    if any(character.isdigit() for character in value):
        return password or not (_NAMED_VERSION().fullmatch(value) or _MEASURE().fullmatch(value))
    if _SIGN().search(value):
        return True
    return (password and close and value.isalpha()) or holds_random_run(value)


def _is_header(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".=")
    mixed = any(character.isdigit() for character in value) or (
        not value.islower() and not value.istitle() and not value.isupper()
    )
    return mixed and len(value) >= (_FEWEST_FOR_MACHINES if match["header"] else _FEWEST_IN_PROSE)


# --- Where secrets stand ---

SecretRule = Literal["password", "api_key", "access_token", "private_key"]
_KEY_KINDS = frozenset({"AWS access key", "Stripe key", "API key"})
_KEY_BLOCK = "private key"
_PIECES = bytes(65 if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256))
_LEAST_PIECE = b"A" * min(_IN_ONE_PIECE.values())
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_REST = re.compile(rb"[A-Za-z0-9_.-]*")
_BLOCK_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}-----")
_BLOCK_BODY = re.compile(rb"[A-Z0-9 ]{0,40}-----(?:\s{0,8}[A-Za-z0-9+/=]{16,})*(?:\s{0,8}[A-Za-z0-9+/]{0,15}={1,2})?")
_VALUE_REST = lazy_regex(r"[^\s\"'`,;<>{}()]*")
_QUOTED_LENGTH = 500


class SecretSpan(NamedTuple):
    """Where a secret stands in a text, and the name of the rule that masks it."""

    start: int
    end: int
    rule: SecretRule


def may_hold_secret(text: str, lowered: str) -> bool:
    """Whether a text may hold a secret: a fast test. `lowered`: the same in lower case."""
    if any([label in lowered for label in LABELS]):  # noqa: C419  a list is faster
        return True
    data = text.encode("ascii", "replace")
    has_piece = _LEAST_PIECE in data.translate(_PIECES)
    return any(
        first in data and (has_piece or not piece) and _any_of(char).search(data) is not None
        for first, piece, char in _SEARCHES
    )


def secret_spans(text: str) -> Iterator[SecretSpan]:
    """The places of all secrets in a text, of any length. They may overlap, and have no order."""
    yield from _shape_spans(text.encode("ascii", "replace"))  # one byte for each character
    yield from _labelled_spans(text)


def _shape_spans(data: bytes) -> Iterator[SecretSpan]:
    for first, _, char in _SEARCHES:
        if first in data and _any_of(char).search(data):
            for kind, shape in _each_of(char):
                if kind == _KEY_BLOCK:
                    yield from _block_spans(data, shape)
                    continue
                rule: SecretRule = "api_key" if kind in _KEY_KINDS else "access_token"
                covered = 0
                for match in shape.finditer(data):
                    if match.start() >= covered:
                        window = data[max(0, match.start() - _AHEAD) : match.start()]
                        start = match.start() - (len(window) - len(window.rstrip(_TOKEN_BYTES)))
                        rest = _REST.match(data, match.end())
                        covered = match.end() + (len(rest[0].rstrip(b".")) if rest else 0)
                        yield SecretSpan(start, covered, rule)


def _block_spans(data: bytes, shape: re.Pattern[bytes]) -> Iterator[SecretSpan]:
    """The places of private keys: up to their last line, or as far as they go if that is missing."""
    closing = _BLOCK_END.search(data)
    for match in shape.finditer(data):
        if closing is not None and closing.start() < match.end():
            closing = _BLOCK_END.search(data, match.end())
        body = _BLOCK_BODY.match(data, match.end() - len("-----"))
        end = closing.end() if closing is not None else body.end() if body is not None else match.end()
        yield SecretSpan(match.start() - len("----"), end, "private_key")


def _labelled_spans(text: str) -> Iterator[SecretSpan]:
    covered = 0
    for match in _LABELLED().finditer(text):
        start, end = match.span("value")
        if start >= covered and _is_labelled_secret(match):
            rest = _VALUE_REST().match(text, end)
            end = rest.end() if rest else end
            if match["quote"]:
                closing = text.find(match["quote"], end, end + _QUOTED_LENGTH)
                end = closing if closing >= 0 else end
            while end > start + 1 and text[end - 1] in ".:]":
                end -= 1
            covered = end
            yield SecretSpan(start, end, _rule_of_label(match))
    for match in _HEADER().finditer(text):
        if _is_header(match):
            yield SecretSpan(*match.span("value"), "access_token")
    for match in _IN_ADDRESS().finditer(text):
        yield SecretSpan(*match.span("value"), "password")


def _rule_of_label(match: re.Match[str]) -> SecretRule:
    if match["password"]:
        return "password"
    label = match[0].lower()
    if label.startswith("token"):
        return "access_token"
    return "private_key" if label.startswith("private") else "api_key"
