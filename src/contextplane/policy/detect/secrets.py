"""Shapes that only secrets have. A detector says that something looks like one; it never repeats it.

What that costs grows with the size of what is looked at and no faster, whatever it holds. It is slower than hashing all
the same, so that of a large content only the beginning is looked at.

Secrets that have no shape of their own, and are told by what stands beside them: `the password is ...`.

Whoever speaks of passwords gives none away: what follows has to look like one, and not like a word or a reference.

Runs of characters as random as only keys are. A name of several words is none, however long; nor is a digest.

Two things tell them apart. Names put digits at the end of a word, lots put them anywhere. And of two letters that stand
side by side in a word, some pairs are common and most are not: a lot draws them all alike.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from contextplane.model.json.canonical import Json
from contextplane.model.value import Value
from contextplane.policy.lazy_regex import expression

__all__ = [
    "HIDDEN",
    "LONG_PIECE",
    "NAMES",
    "SEARCHED",
    "SECRET_NAME",
    "Looked",
    "SecretScan",
    "given_away",
    "holds_random_run",
    "is_random",
    "is_secret_value",
    "looked_at",
    "secret_shapes",
    "without_shapes",
]

HIDDEN = "(not shown: it looks like a secret)"

SEARCHED = 256 << 10
"""How much of one content is looked at: its first 256 KiB."""

# A kind, how a character in the middle of it stands there, and what is around that character. An expression that begins
# with one character is searched for several times as fast as any other, and those with the same one are searched for
# together. None looks further than _BEHIND before the character and _AHEAD from it on: a stream may be cut anywhere.
# None is tried at every place of a long run either, or some contents would take for ever.
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
    # With a digit, or with many letters in one piece: names of styles that begin alike have neither.
    ("API key", _DASH, rb"(?<=\bsk-.)(?<!-sk-.)(?:(?<=[0-9])|(?=[A-Za-z_-]{0,63}[0-9]))[A-Za-z0-9_-]{19}"),
    ("API key", _DASH, rb"(?<=\bsk-.)(?<!-sk-.)(?:[a-z0-9]{1,11}-)?[A-Za-z0-9]{19}"),
    ("JSON Web Token", rb"J", rb"(?<=\beyJ)(?<!-eyJ)[A-Za-z0-9_-]{8,1024}\.eyJ[A-Za-z0-9_-]{8}"),
)
_IN_ONE_PIECE = {_UNDERSCORE: 22, rb"I": 20}
"""So many letters and digits without a break are in every shape that is found by this character."""

_BEHIND, _AHEAD = 16, 1100
_READ = 16 << 10
_PARTS = (r"-----BEGIN [A-Z0-9 ]{0,40}-----", r"[^\s'\"]+")


def secret_shapes(data: bytes, *, longest_piece: int = SEARCHED) -> tuple[str, ...]:
    """The kinds of secrets that the beginning of some bytes looks to contain, by name, in a fixed order.

    `longest_piece`: how many letters and digits stand there without a break at most. Who knows that saves a search.
    """
    return _in_order(_kinds(data[:SEARCHED], 0, ended=True, longest_piece=longest_piece))


def without_shapes(text: str) -> str:
    """The same words, without those that have the shape of a secret: for whoever must repeat what somebody wrote.

    A word so long that nobody would read it is left out unsearched.
    """
    is_long = len(text) > _READ
    for part in _PARTS if is_long or _has_shape(text) else ():
        text = re.sub(part, lambda match: _unless_shaped(match[0]), text)
    return text if is_long else _unless_shaped(text)


def _unless_shaped(text: str) -> str:
    return HIDDEN if len(text) > _READ or _has_shape(text) else text


def _has_shape(text: str) -> bool:
    return bool(secret_shapes(text.encode(errors="replace")))


class Looked(Value, frozen=True):
    """What looking at some texts showed, and whether all of them was looked at."""

    kinds: tuple[str, ...]
    whole: bool


def looked_at(value: Json) -> Looked:
    """The same of all the texts in a value, names of members too."""
    data = "\n".join(_texts(value)).encode(errors="replace")
    return Looked(kinds=secret_shapes(data), whole=len(data) <= SEARCHED)


class SecretScan:
    """The same of bytes that come in pieces: wherever they are cut, the answer is that of `secret_shapes`."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._end = b""
        self._start = 0
        self._left = SEARCHED

    def see(self, chunk: bytes) -> None:
        """Look at the piece that follows."""
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
        """What was found, if nothing follows."""
        return _in_order(self._found | _kinds(self._end, self._start, ended=True))


# For each character: how it is looked for at first, how long its piece is, and how it stands there.
_SEARCHES = tuple(
    (char[:1], _IN_ONE_PIECE.get(char, 0), char) for char in dict.fromkeys(char for _, char, _ in _SHAPES)
)


@cache
def _any_of(char: bytes) -> re.Pattern[bytes]:
    """An expression for any of the shapes around a character. Made when first needed, as the next ones are."""
    return re.compile(char + rb"(?:" + rb"|".join(around for _, at, around in _SHAPES if at == char) + rb")")


@cache
def _each_of(char: bytes) -> tuple[tuple[str, re.Pattern[bytes]], ...]:
    return tuple((kind, re.compile(char + around)) for kind, at, around in _SHAPES if at == char)


def _kinds(data: bytes, start: int, *, ended: bool, longest_piece: int = SEARCHED) -> set[str]:
    """What begins at `start` or later. Unless the data has `ended`, what reaches its end is not decided yet."""
    found = set()
    for first, piece, char in _SEARCHES:
        if piece <= longest_piece and first in data and _any_of(char).search(data, start):
            for kind, shape in _each_of(char):
                match = shape.search(data, start)
                if match and (ended or match.end() < len(data)):
                    found.add(kind)
    return found


def _in_order(found: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for kind, _, _ in _SHAPES if kind in found)) if found else ()


def _texts(value: Json) -> Iterator[str]:
    """Not recursive: a value may be deeper than our stack."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from one
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one


LONG_PIECE = 14
"""Between the separators of a name stand words; between those that a lot draws, at least one piece so long."""

_RUN = expression(r"(?<![A-Za-z0-9+/_-])(?:sha[0-9]{1,3}:|md5:|ctx:)?[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_=-])")
_UUID = expression(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGEST = expression(r"(?:sha[0-9]{1,3}:|md5:|ctx://)[0-9a-f]{32,128}|sha[0-9]{1,3}[:-][A-Za-z0-9+/_-]{27,86}={0,2}")
_PIECE = expression(rf"[A-Za-z0-9]{{{LONG_PIECE},}}")
_TURN = expression(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_TURNS = 4
_CHARACTERS_PER_TURN = 8

# A letter, and those that often follow it: two hundred pairs, of which words are made of nine in ten, lots of three.
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
    """Whether a text holds a run that looks drawn by lot."""
    return any(_is_random(match[0]) for match in _RUN().finditer(text))


def _is_random(run: str) -> bool:
    if _UUID().fullmatch(run) or _DIGEST().fullmatch(run):
        return False
    return any(map(is_random, _PIECE().findall(run)))


def is_random(piece: str) -> bool:
    """Whether letters and digits without a break look drawn by lot."""
    if piece.isalpha():
        return len(piece) >= _LEAST_LETTERS and not _is_of_words(piece)
    return len(_TURN().findall(piece)) >= max(_TURNS, len(piece) // _CHARACTERS_PER_TURN) or not _is_of_words(piece)


def _is_of_words(piece: str) -> bool:
    # Each pair once: a row of the same letters is no lot.
    pairs = {one + other for one, other in pairwise(piece.lower()) if one.isalpha() and other.isalpha()}
    return len(pairs) < _LEAST_PAIRS or len(pairs & _COMMON) >= _LEAST_COMMON * len(pairs)


_FOR_PEOPLE = r"pass(?:word|wd|phrase|code)|pwd"
_FOR_MACHINES = r"secret|token|(?:api|access|secret|private|signing|auth|account)[_ -]?key|apikey"
NAMES = ("pass", "pwd", "secret", "token", "key", "bearer", "authorization", "://")
"""In small letters: nothing is given away in a text without one of these."""

SECRET_NAME = expression(rf"(?:.*[_-])?(?:(?P<password>{_FOR_PEOPLE})|{_FOR_MACHINES})", re.IGNORECASE)
"""The name of a field that holds a secret."""

# What follows is looked at and not taken: it may itself be a name that something follows.
_SAID = expression(
    rf"(?:(?P<password>{_FOR_PEOPLE})|{_FOR_MACHINES})[\"'`*)\]]{{0,3}}[ \t]{{0,4}}(?P<joint>:=|=>|[:=]|\bis\b:?)"
    r"(?P<gap>\s{0,4})(?P<quote>[\"'`]?)(?=(?P<value>[^\s\"'`,;<>{}()]{6,200}))",
    re.IGNORECASE,
)
_HEADER = expression(
    r"\b(?:(?P<header>authorization\s{0,2}[:=]\s{0,2}[\"']?)(?:bearer|basic|token)|bearer)\s{1,2}"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,})",
    re.IGNORECASE,
)
_IN_ADDRESS = expression(
    r"[a-z][a-z0-9+.-]{0,20}://[^\s/@:{}<>$]{0,64}:(?P<value>[^\s/@{}<>$*]{1,200})@", re.IGNORECASE
)
_SIGN = expression(r"[!@#$%^&*]")
_NAMED_VERSION = expression(r"[A-Za-z]+(?:[_./:-][A-Za-z]+)*[_./:-]?v?[0-9]{1,2}(?:\.[0-9]+)*")
_MEASURE = expression(r"[0-9]+[-.]?[A-Za-z]*(?:-[A-Za-z]+)*")
_REFERENCE = expression(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:vault|env|ref|secrets?|kms|arn|file|sha256):|[$%*]|\.\.\.")
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
"""What is said of a secret, and is none."""

_FEWEST_FOR_PEOPLE, _FEWEST_FOR_MACHINES, _FEWEST_IN_PROSE = 6, 8, 12


def given_away(text: str) -> Iterator[str]:
    """The kinds of secrets that a text gives away."""
    if any(_is_given(match) for match in _SAID().finditer(text)):
        yield "password"
    if any(_is_header(match) for match in _HEADER().finditer(text)):
        yield "authorization header"
    if _IN_ADDRESS().search(text):
        yield "password in an address"


def is_secret_value(name: str, value: str) -> bool:
    """Whether a field of this name holds this as its secret."""
    named = SECRET_NAME().fullmatch(name)
    return named is not None and " " not in value and _is_secret(value, password=bool(named["password"]), close=True)


def _is_given(match: re.Match[str]) -> bool:
    # A word is a secret only where it is given as one: in quotes, or right after `=`.
    close = bool(match["quote"]) or (match["joint"] == "=" and not match["gap"])
    value = match["value"].rstrip(".:!?]")
    if match["joint"].lower().startswith("is") and not close:
        return _is_told(value, password=bool(match["password"]))
    return _is_secret(value, password=bool(match["password"]), close=close)


def _is_told(value: str, *, password: bool) -> bool:
    """After `is`, where most often a sentence goes on."""
    if _MEASURE().fullmatch(value) and not value.isdigit():
        return False
    return _is_secret(value, password=password, close=False) and (password or len(value) >= _FEWEST_IN_PROSE)


def _is_secret(value: str, *, password: bool, close: bool) -> bool:
    if len(value) < (_FEWEST_FOR_PEOPLE if password else _FEWEST_FOR_MACHINES) or _REFERENCE().match(value):
        return False
    if value.lower() in _WORDS or len(set(value)) == 1:
        return False
    if any(one.isdigit() for one in value):
        return password or not (_NAMED_VERSION().fullmatch(value) or _MEASURE().fullmatch(value))
    if _SIGN().search(value):
        return True
    return (password and close and value.isalpha()) or holds_random_run(value)


def _is_header(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".=")
    mixed = any(one.isdigit() for one in value) or (not value.islower() and not value.istitle() and not value.isupper())
    return mixed and len(value) >= (_FEWEST_FOR_MACHINES if match["header"] else _FEWEST_IN_PROSE)
