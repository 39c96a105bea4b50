"""The name of a file as other tools take it: a relative URI reference, or a `file:` URI outside of the folder."""

import os
from urllib.parse import quote

__all__ = ["uri"]


def uri(path: str) -> str:
    """The file relative to the folder that we are in, with forward slashes, and everything else encoded."""
    if path == "-":
        return "stdin"
    whole = os.path.abspath(path)
    inside = os.path.relpath(whole)
    if inside.split(os.sep)[0] == os.pardir:
        return "file://" + _encoded(whole)
    return _encoded(inside)


def _encoded(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
