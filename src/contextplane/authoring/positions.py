"""Line and column of every part of a JSON file, for findings that point into it."""

import re
from bisect import bisect_left, bisect_right

from contextplane.model.json.parse import parse
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["LineTable", "Place", "json_offsets"]


_TOKEN = re.compile(rb'[ \t\r\n]*(?:([{\[])|([}\]])|(,)|("(?:[^"\\]|\\.)*")|([^\s,:{}\[\]"]+))[ \t\r\n]*(:?)')
_BREAK = re.compile(rb"\n")
_INNER = re.compile(rb"[\x80-\xbf]")


class Place(Value, frozen=True):
    """A line and a column, both counted from 1, the column in characters."""

    line: int
    column: int


class LineTable:
    """The starts of the lines of a UTF-8 text. A lookup costs the same anywhere, however long the line."""

    def __init__(self, data: bytes) -> None:
        self._starts = [0, *(match.end() for match in _BREAK.finditer(data))]
        # The bytes after the first of a character: not counted, because columns count characters.
        self._inner = [] if data.isascii() else [match.start() for match in _INNER.finditer(data)]

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        inner = bisect_left(self._inner, offset) - bisect_left(self._inner, start)
        return Place(line=line, column=offset - start - inner + 1)


def json_offsets(data: bytes) -> dict[str, int]:
    """Map the JSON Pointer of every part to its offset. The text is one that the strict parser accepted.

    A member begins at its key, an element at its value.
    """
    places: dict[str, int] = {}
    path: list[str | int] = []
    pending: tuple[str, int] | None = None
    for match in _TOKEN.finditer(data):
        opens, closes, comma, text, _, colon = match.groups()
        if comma:
            continue
        if closes:
            path.pop()
            continue
        start = match.start(1 if opens else 4 if text else 5)
        if colon:
            pending = (str(parse(text).value), start)
            continue
        if pending is not None:
            path[-1], start = pending
            pending = None
        elif path and isinstance(path[-1], int):
            path[-1] += 1
        places[pointer(path)] = start
        if opens:
            path.append("" if opens == b"{" else -1)
    return places
