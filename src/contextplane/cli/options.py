"""Arguments of more than one verb: how they are parsed, and how a shell completes them."""

import os
from argparse import Action, ArgumentTypeError

__all__ = ["LIMIT", "NO_LIMIT", "complete_folders", "folder", "limit_of"]

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


def complete_folders(action: Action) -> None:
    """Let completion offer folders for this argument.

    shtab reads this attribute, and need not be imported for it.
    """
    action.complete = {"bash": "_shtab_compgen_dirs", "zsh": "_files -/", "fish": "__fish_complete_directories"}  # type: ignore[attr-defined]
