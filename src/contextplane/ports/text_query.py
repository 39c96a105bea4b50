"""What people type to search in texts, read the same way for every index.

Words, each of which must be there; "several words in quotes", one after the other; and with a * behind it the beginning
of a word. Nothing else is syntax, and nothing is an error but to ask for nothing.
"""

import re
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value

__all__ = ["NothingToFind", "Term", "terms"]

_TERM = r'"([^"]*)"(\*?)|(\S+)'  # compiled by who searches: every verb loads this module


class NothingToFind(ContextPlaneError):
    """A search for no word at all: nothing was typed, or only punctuation, which is not indexed."""

    code: ClassVar[str] = "search_text_empty"
    family: ClassVar[Family] = "usage"


class Term(Value, frozen=True):
    """Words that follow each other, at least one. `prefix`: the last one may go on."""

    text: str
    prefix: bool = False


def terms(text: str) -> tuple[Term, ...]:
    """Everything that must be found. What has no letter, digit or underscore in it is passed over."""
    found = []
    for match in re.finditer(_TERM, text.replace("\0", " ")):
        quoted, star, plain = match.groups()
        words = plain.rstrip("*") if plain else quoted
        if any(one.isalnum() or one == "_" for one in words):
            found.append(Term(text=words, prefix=bool(star) or bool(plain and plain.endswith("*"))))
    if not found:
        raise NothingToFind("no word to search for", hint="punctuation alone is not indexed; write letters or digits")
    return tuple(found)
