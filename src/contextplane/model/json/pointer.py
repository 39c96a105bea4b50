"""JSON Pointer (RFC 6901): the one way a place inside a document is written.

It writes pointers; it does not follow them.
"""

from collections.abc import Iterable

__all__ = ["abbreviate_place", "pointer"]

_SHOWN = 120


def pointer(tokens: Iterable[str | int]) -> str:
    """The pointer of these keys and indices from the root, which itself is the empty text."""
    return "".join(f"/{_escape(token)}" for token in tokens)


def abbreviate_place(place: str) -> str:
    """A place as people read it: the middle of a very long pointer is left out.

    The part before `#` stays.
    """
    file, mark, inside = place.rpartition("#")
    if len(inside) <= _SHOWN:
        return place
    return f"{file}{mark}{inside[: _SHOWN // 2]}[...]{inside[-_SHOWN // 3 :]}"


def _escape(token: str | int) -> str:
    # The tilde first, or that of `~1` would be escaped again.
    return str(token).replace("~", "~0").replace("/", "~1")
