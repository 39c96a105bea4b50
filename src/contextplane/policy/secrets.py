"""Shapes that only secrets have. A detector says that something looks like one; it never repeats it.

What that costs grows with the size of what is looked at and no faster, whatever it holds. It is slower than hashing all
the same, so that of a large content only the beginning is looked at.
"""

import re
from collections.abc import Iterator
from functools import cache

from contextplane.model.canonical import Json
from contextplane.model.value import Value

__all__ = ["HIDDEN", "SEARCHED", "Looked", "SecretScan", "looked_at", "secret_shapes", "without_shapes"]

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
        text = re.sub(part, lambda one: _unless_shaped(one[0]), text)
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
