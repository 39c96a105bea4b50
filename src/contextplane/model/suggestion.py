"""The known name that an unknown one was probably meant to be, for every "did you mean"."""

from bisect import bisect_left
from collections.abc import Iterable

__all__ = ["CUTOFF", "closest_name", "did_you_mean"]

CUTOFF = 0.6
"""The least likeness of two names, from 0 to 1, to suggest one for the other."""

_LISTED = 8
_COMPARED = 60
"""Comparing names is slow: of many sorted names, only so many around the place of the unknown one are compared."""
_MAX_LENGTH = 200
"""The most characters of a name that are compared: a longer one is near to no name."""


def closest_name(name: str, known: Iterable[str], *, cutoff: float = CUTOFF) -> str | None:
    """Return the known name that is most similar, also in lower case; None when none is near."""
    # Imported on the first mistake: a document or a command line without mistakes does not load it.
    from difflib import get_close_matches  # noqa: PLC0415

    names, name = list(known), name[:_MAX_LENGTH]
    near = get_close_matches(name, names, 1, cutoff) or get_close_matches(name.lower(), names, 1, cutoff)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean X?"; when no known name is near, `otherwise` and the first known names."""
    name, names = name[:_MAX_LENGTH], sorted(known)
    near = closest_name(name, _neighbours(name, names))
    if near is not None:
        return f"did you mean {near}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"{otherwise}; known here: {', '.join(names[:_LISTED]) or 'none'}{more}"


def _neighbours(name: str, names: list[str]) -> list[str]:
    """The sorted names around the place of this one with the same first character; all if few."""
    if len(names) <= _COMPARED:
        return names
    place = max(0, bisect_left(names, name) - _COMPARED // 2)
    return [neighbour for neighbour in names[place : place + _COMPARED] if neighbour[:1] == name[:1]]
