"""Where one part of a JSON text stands. The way to it is walked, and what stands beside the way is passed over.

So it costs no more than reading the text, however large it is, and nothing is kept.
"""

import re
from json import JSONDecoder

from contextplane.authoring.positions import Place

__all__ = ["json_place"]

_PASS = JSONDecoder().raw_decode
_BLANK = r"[ \t\r\n]*+"
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_SCALAR = rf'(?:{_TEXT}|[^ \t\r\n,:{{}}\[\]"]++)'
# What begins a member or an element; and, where it is no list and no object, all of it up to the next one.
_MEMBER = re.compile(rf"{_BLANK}({_TEXT}){_BLANK}:{_BLANK}(?:({_SCALAR}){_BLANK},?)?")
_ELEMENT = re.compile(rf"{_BLANK}(?:({_SCALAR}){_BLANK},?)?")
_NEXT = re.compile(rf"{_BLANK},?")
_START = re.compile(_BLANK)


def json_place(data: bytes, at: str) -> Place:
    """Where the part with this JSON Pointer begins; for one that is not there, where the part around it does.

    The text is one that the strict parser accepted. Of a member it is where its key stands.
    """
    text = data.decode()
    found = value = _end(_START.match(text, 0))
    for step in at.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        inner = _member(text, value, name) if text[value] == "{" else _element(text, value, name)
        if inner is None:
            break
        found, value = inner
    start = text.rfind("\n", 0, found) + 1
    return Place(line=text.count("\n", 0, found) + 1, column=found - start + 1)


def _member(text: str, opened: int, name: str) -> tuple[int, int] | None:
    """Where the key of a member begins, and where its value does."""
    here = opened + 1
    while match := _MEMBER.match(text, here):
        key = match[1]
        if (_PASS(text, match.start(1))[0] if "\\" in key else key[1:-1]) == name:
            return match.start(1), match.start(2) if match[2] else match.end()
        here = match.end() if match[2] else _passed(text, match.end())
    return None


def _element(text: str, opened: int, name: str) -> tuple[int, int] | None:
    """Where an element begins, twice."""
    if text[opened] != "[" or not (name.isascii() and name.isdecimal()):
        return None
    here = opened + 1
    for n in range(int(name[:9]) + 1):
        match = _ELEMENT.match(text, here)
        begins = match.start(1) if match and match[1] else _end(match)
        if text[begins] == "]":
            return None
        if str(n) == name:
            return begins, begins
        here = _end(match) if match and match[1] else _passed(text, begins)
    return None


def _passed(text: str, begins: int) -> int:
    """After a list or an object, and the comma that follows it."""
    return _end(_NEXT.match(text, _PASS(text, begins)[1]))


def _end(match: re.Match[str] | None) -> int:
    # These patterns match anywhere, if only nothing.
    return match.end() if match else 0
