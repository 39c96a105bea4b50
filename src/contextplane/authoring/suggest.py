"""The known name that an unknown one was probably meant to be."""

from bisect import bisect_left
from collections.abc import Iterable

__all__ = ["nearest"]

_CLOSE = 0.6
_LISTED = 8
_COMPARED = 60
"""To compare two names takes long: of many, only those are compared that stand around it and begin as it does."""
_LONGEST = 200
"""Nor are more characters of it compared: what is longer is near to no name."""


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """A question that names the nearest one; when none is near, what to do otherwise and the names that are known."""
    # Here and not above: a document without mistakes does not load it.
    from difflib import get_close_matches  # noqa: PLC0415

    name, names = name[:_LONGEST], sorted(known)
    near = get_close_matches(name, _around(name, names), n=1, cutoff=_CLOSE)
    if near:
        return f"did you mean {near[0]}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"{otherwise}; known here: {', '.join(names[:_LISTED]) or 'none'}{more}"


def _around(name: str, names: list[str]) -> list[str]:
    if len(names) <= _COMPARED:
        return names
    place = max(0, bisect_left(names, name) - _COMPARED // 2)
    return [one for one in names[place : place + _COMPARED] if one[:1] == name[:1]]
