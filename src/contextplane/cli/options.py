"""Arguments of more than one verb: how they are parsed."""

import os
from argparse import ArgumentTypeError

__all__ = ["LIMIT", "NO_LIMIT", "folder", "limit_of"]

LIMIT, NO_LIMIT = 50, 1_000_000
"""The length of a list by default, and with --all."""

_SHOWN = 80


def folder(text: str) -> str:
    """Parse the path of an existing folder."""
    if not os.path.isdir(text):
        raise ArgumentTypeError(f"not a folder: {text[:_SHOWN]!r}")
    return text


def limit_of(text: str) -> int:
    """Parse the length of a list."""
    if text.isascii() and text.isdecimal() and len(text) < len(str(NO_LIMIT)) and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"not a number of lines: {text[:20]!r} (from 1 to {NO_LIMIT - 1})")
