"""The known name that an unknown one was probably meant to be, for every "did you mean".

Two measures of likeness, because they name different neighbours: `closest_name` compares sequences of characters, as
`difflib` does; `most_alike_name` compares sets of letters and pairs of letters in any order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

__all__ = ["CUTOFF", "closest_name", "did_you_mean", "most_alike_name"]

CUTOFF = 0.6
"""The least likeness of two names, from 0 to 1, to suggest one for the other."""

_LISTED = 8
_COMPARED = 60
"""Comparing names is slow: of many sorted names, only so many around the place of the unknown one are compared."""
_MAX_LENGTH = 200
"""The most characters of a name that are compared: a longer one is near to no name."""

_ALIKE_CUTOFF = 0.55
_ALIKE_LENGTH = 60


def closest_name(name: str, known: Iterable[str], *, cutoff: float = CUTOFF) -> str | None:
    """Return the known name with the most similar sequence of characters; None when none is near."""
    # Imported on the first mistake: a document or a command line without mistakes does not load it.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean X?"; when no known name is near, `otherwise` and the first known names."""
    name, names = name[:_MAX_LENGTH], sorted(known)
    near = closest_name(name, _neighbours(name, names))
    if near is not None:
        return f"did you mean {near}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"{otherwise}; known here: {', '.join(names[:_LISTED]) or 'none'}{more}"


def most_alike_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that shares the most letters and pairs of letters; None when none is near."""
    parts = _letters_and_pairs(name[:_ALIKE_LENGTH].lower())
    likeness = {
        candidate: 2 * len(parts & _letters_and_pairs(candidate)) / (len(parts) + len(_letters_and_pairs(candidate)))
        for candidate in known
    }
    best = max(known, key=likeness.__getitem__)
    return best if likeness[best] >= _ALIKE_CUTOFF else None


def _neighbours(name: str, names: list[str]) -> list[str]:
    """The sorted names around the place of this one with the same first character; all if few."""
    if len(names) <= _COMPARED:
        return names
    place = max(0, bisect_left(names, name) - _COMPARED // 2)
    return [neighbour for neighbour in names[place : place + _COMPARED] if neighbour[:1] == name[:1]]


def _letters_and_pairs(name: str) -> set[str]:
    return {*name, *(name[n : n + 2] for n in range(len(name) - 1))}
