"""JSON Pointer (RFC 6901): the one way a place inside a document is written.

It writes pointers; it does not follow them.
"""

from collections.abc import Iterable

__all__ = ["pointer", "shown"]

_SHOWN = 120


def pointer(tokens: Iterable[str | int]) -> str:
    """The place that these keys and indices lead to from the root, which itself is the empty text."""
    return "".join(f"/{_escaped(token)}" for token in tokens)


def shown(place: str) -> str:
    """A place as people read it: of one that leads very deep the middle is left out. What stands before `#` stays."""
    file, mark, inside = place.rpartition("#")
    if len(inside) <= _SHOWN:
        return place
    return f"{file}{mark}{inside[: _SHOWN // 2]}[...]{inside[-_SHOWN // 3 :]}"


def _escaped(token: str | int) -> str:
    # The tilde first, or that of `~1` would be escaped again.
    return str(token).replace("~", "~0").replace("/", "~1")
