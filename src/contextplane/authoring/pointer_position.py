"""Line and column of one part of a large JSON text: follows its JSON Pointer and skips all beside it.

So it costs no more than reading the text, however large it is, and makes no table.
"""

import re
from json import JSONDecoder

from contextplane.authoring.positions import Place

__all__ = ["json_place"]

_DECODE = JSONDecoder().raw_decode
_BLANK = r"[ \t\r\n]*+"
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_SCALAR = rf'(?:{_TEXT}|[^ \t\r\n,:{{}}\[\]"]++)'
# The beginning of a member or an element; a scalar is matched whole, up to the next one.
_MEMBER = re.compile(rf"{_BLANK}({_TEXT}){_BLANK}:{_BLANK}(?:({_SCALAR}){_BLANK},?)?")
_ELEMENT = re.compile(rf"{_BLANK}(?:({_SCALAR}){_BLANK},?)?")
_NEXT = re.compile(rf"{_BLANK},?")
_START = re.compile(_BLANK)


def json_place(data: bytes, at: str) -> Place:
    """Return the place of the part with this JSON Pointer; for a missing part, that of the part around it.

    The text is one that the strict parser accepted. A member begins at its key.
    """
    text = data.decode()
    begin = value = _end(_START.match(text, 0))
    for step in at.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        inner = _member(text, value, name) if text[value] == "{" else _element(text, value, name)
        if inner is None:
            break
        begin, value = inner
    start = text.rfind("\n", 0, begin) + 1
    return Place(line=text.count("\n", 0, begin) + 1, column=begin - start + 1)


def _member(text: str, opened: int, name: str) -> tuple[int, int] | None:
    """Return where the key of a member begins, and where its value does."""
    here = opened + 1
    while match := _MEMBER.match(text, here):
        key = match[1]
        if (_DECODE(text, match.start(1))[0] if "\\" in key else key[1:-1]) == name:
            return match.start(1), match.start(2) if match[2] else match.end()
        here = match.end() if match[2] else _skip_value(text, match.end())
    return None


def _element(text: str, opened: int, name: str) -> tuple[int, int] | None:
    """Return where an element begins, as its place and as its value."""
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
        here = _end(match) if match and match[1] else _skip_value(text, begins)
    return None


def _skip_value(text: str, begins: int) -> int:
    """Return the offset after a list or an object, and after the comma that follows it."""
    return _end(_NEXT.match(text, _DECODE(text, begins)[1]))


def _end(match: re.Match[str] | None) -> int:
    # These patterns match everywhere, if only the empty text.
    return match.end() if match else 0
