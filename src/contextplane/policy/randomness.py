"""Runs of characters as random as only keys are. A name of several words is none, however long; nor is a digest.

Two things tell them apart. Names put digits at the end of a word, lots put them anywhere. And of two letters that stand
side by side in a word, some pairs are common and most are not: a lot draws them all alike.
"""

from itertools import pairwise

from contextplane.policy.expressions import expression

__all__ = ["LONG_PIECE", "holds_random_run", "is_random"]

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
