"""Secrets that have no shape of their own, and are told by what stands beside them: `the password is ...`.

Whoever speaks of passwords gives none away: what follows has to look like one, and not like a word or a reference.
"""

import re
from collections.abc import Iterator

from contextplane.policy.expressions import expression
from contextplane.policy.randomness import holds_random_run

__all__ = ["NAMES", "SECRET_NAME", "given_away", "is_secret_value"]

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
