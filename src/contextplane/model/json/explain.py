"""Why a JSON text is refused: a slow positional parser that lists problems in document order.

It returns no value and is never called for a text that is accepted. It is meant to be obviously right: one regular
expression per token, an explicit stack, no recursion. `parse.py` must refuse exactly what this refuses.
"""

import math
import re
from typing import ClassVar, NoReturn

from contextplane.model.json.canonical import MAX_INTEGER, float_problem
from contextplane.model.json.errors import MAX_DEPTH, JsonRefused, NotFinite, integer_unsafe, lone_surrogate, too_deep
from contextplane.model.json.pointer import pointer

__all__ = [
    "ByteOrderMark",
    "ControlCharacter",
    "DuplicateKey",
    "EmptyText",
    "InvalidUtf8",
    "Malformed",
    "NumberOutOfRange",
    "TrailingData",
    "explain",
]

_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_LITERAL = re.compile(rb"true|false|null")
_NOT_FINITE = re.compile(rb"-?(?:NaN|Infinity)")
_RUN = re.compile(rb'[^"\\\x00-\x1f]*+')
_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_UNESCAPED = {b"b": "\b", b"f": "\f", b"n": "\n", b"r": "\r", b"t": "\t"}
_HIGHS, _LOWS = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_SPACE = frozenset({b" ", b"\t", b"\n", b"\r"})
_OPENS = frozenset({b"[", b"{"})
_NUMERIC = frozenset(bytes([byte]) for byte in b"0123456789.eE+-")
_DIGITS = len(str(MAX_INTEGER))
_SHOWN = 40
_MAX_PROBLEMS = 50
_MAX_BYTES_AFTER_FIRST = 4 << 20  # about a second of work after the first problem


class Malformed(JsonRefused):
    """Bytes that are not JSON at this place.

    A missing comma or quote, a wrong number, a text that ends early.
    """

    code: ClassVar[str] = "json_malformed"


class EmptyText(JsonRefused):
    """Nothing but white space."""

    code: ClassVar[str] = "json_empty"


class ByteOrderMark(JsonRefused):
    """A byte order mark before the document."""

    code: ClassVar[str] = "json_byte_order_mark"


class TrailingData(JsonRefused):
    """More than white space after the document."""

    code: ClassVar[str] = "json_trailing_data"


class InvalidUtf8(JsonRefused):
    """Bytes that are not UTF-8."""

    code: ClassVar[str] = "json_utf8_invalid"


class ControlCharacter(JsonRefused):
    """A character below U+0020 that is unescaped in a string."""

    code: ClassVar[str] = "json_control_character"


class DuplicateKey(JsonRefused):
    """A key that its object already has: readers differ in which value they keep."""

    code: ClassVar[str] = "json_duplicate_key"


class NumberOutOfRange(JsonRefused):
    """A number beyond the range of a double."""

    code: ClassVar[str] = "json_number_out_of_range"


def explain(data: bytes) -> None:
    """Raise the first problem of `data`, with those that follow it; return if there is none.

    A problem from which the text cannot be read on is the last one.
    """
    _Explainer(data).document()


class _Open:
    """An array or object that is being read."""

    __slots__ = ("keys", "size", "token")

    def __init__(self, keys: set[str] | None) -> None:
        self.keys = keys  # those read so far; None for an array
        self.size = 0
        self.token: str | int | None = None  # of the part being read; None between parts


class _Explainer:
    """One pass over one text: `pos` is the next byte, `stack` what is open there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0
        self.stack: list[_Open] = []
        self.problems: list[JsonRefused] = []
        self.first_byte = 0  # the place of the first problem

    def document(self) -> None:
        if self.data.startswith(b"\xef\xbb\xbf"):
            self.refuse(ByteOrderMark("the document starts with a byte order mark", hint="save it without one"))
        if not self.peek():
            self.refuse(EmptyText("the document is empty", hint="give one JSON document"))
        self.value()
        while self.stack:
            self.part(self.stack[-1])
        if self.peek():
            self.refuse(TrailingData("more data follows the document", hint="keep one document per text"))
        if self.problems:
            raise self.combined_problem()

    def peek(self) -> bytes:
        """Skip white space; return the byte that follows, empty at the end."""
        while self.data[self.pos : self.pos + 1] in _SPACE:
            self.pos += 1
        return self.data[self.pos : self.pos + 1]

    def part(self, within: _Open) -> None:
        """Read the next member or element, or the end of what is open."""
        if self.problems and self.pos > self.first_byte + _MAX_BYTES_AFTER_FIRST:
            raise self.combined_problem()
        within.token = None
        end = b"]" if within.keys is None else b"}"
        byte = self.peek()
        if byte == end:
            self.pos += 1
            self.stack.pop()
            return
        if within.size:
            if byte != b",":
                self.refuse_token(f"a comma or {end.decode()}")
            self.pos += 1
        within.token = within.size if within.keys is None else self.key(within.keys)
        within.size += 1
        self.value()

    def key(self, keys: set[str]) -> str:
        if self.peek() != b'"':
            self.refuse_token("a key in double quotes")
        start, noted = self.pos, len(self.problems)
        key = self.string()
        if len(self.problems) > noted:
            pass  # its real text is not known
        elif key in keys:
            self.stack[-1].token = key
            self.note(DuplicateKey(f"the key {key[:_SHOWN]!r} stands here again", hint="keep one of them"), start)
        else:
            keys.add(key)
        if self.peek() != b":":
            self.refuse_token("a colon")
        self.pos += 1
        return key

    def value(self) -> None:
        """Read a whole scalar, or the start of an array or object."""
        byte = self.peek()
        if byte in _OPENS:
            if len(self.stack) == MAX_DEPTH:
                self.refuse(too_deep())
            self.stack.append(_Open(set() if byte == b"{" else None))
            self.pos += 1
        elif byte == b'"':
            self.string()
        elif number := _NUMBER.match(self.data, self.pos):
            self.number(number)
        elif literal := _LITERAL.match(self.data, self.pos):
            self.pos = literal.end()
        elif name := _NOT_FINITE.match(self.data, self.pos):
            self.note(NotFinite(f"{name[0].decode()} is not a JSON number", hint="write null, or leave it out"))
            self.pos = name.end()
        else:
            self.refuse_token("a value")

    def number(self, match: re.Match[bytes]) -> None:
        text = match[0].decode()
        if self.data[match.end() : match.end() + 1] in _NUMERIC:
            self.refuse(Malformed("not a JSON number", hint="no leading zeros, and digits on both sides of the point"))
        if match[1] is None and match[2] is None:
            # Counted before converted: Python does not convert thousands of digits.
            digits = text.removeprefix("-")
            if len(digits) > _DIGITS or int(digits) > MAX_INTEGER:
                self.note(integer_unsafe(text[:_SHOWN]))
        elif math.isinf(float(text)):
            self.note(NumberOutOfRange(f"{text[:_SHOWN]} is beyond a double", hint="write it as text"))
        elif problem := float_problem(float(text)):
            self.note(problem)
        self.pos = match.end()

    def string(self) -> str:
        start = self.pos
        self.pos += 1
        parts: list[str] = []
        while True:
            parts.append(self.run())
            byte = self.data[self.pos : self.pos + 1]
            if byte == b"\\":
                parts.append(self.escape())
            elif byte == b'"':
                self.pos += 1
                return "".join(parts)
            elif byte:
                problem = f"U+{ord(byte):04X} is unescaped in a string"
                self.note(ControlCharacter(problem, hint=f"write \\u{ord(byte):04x}"))
                self.pos += 1
            else:
                self.refuse(Malformed("the string that starts here does not end", hint="close it with a quote"), start)

    def run(self) -> str:
        """Read the part of a string up to the next quote, escape or control character."""
        run = _RUN.match(self.data, self.pos)
        raw = run[0] if run else b""
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            self.note(_invalid_utf8(), self.pos + error.start)
            text = raw.decode(errors="replace")
        self.pos += len(raw)
        return text

    def escape(self) -> str:
        match = _ESCAPE.match(self.data, self.pos)
        if match is None:
            self.refuse(Malformed("not a JSON escape", hint='one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX'))
        end = match.end()
        unit = int(match[2], 16) if match[2] else 0
        if unit in _HIGHS:
            low = _ESCAPE.match(self.data, end)
            pair = int(low[2], 16) if low and low[2] else 0
            if low is None or pair not in _LOWS:
                self.note(lone_surrogate(match[0].decode()))
            else:
                unit = 0x10000 + (unit - _HIGHS.start) * len(_LOWS) + pair - _LOWS.start
                end = low.end()
        elif unit in _LOWS:
            self.note(lone_surrogate(match[0].decode()))
        self.pos = end
        return chr(unit) if match[2] else _UNESCAPED.get(match[1], match[1].decode())

    def refuse_token(self, expected: str) -> NoReturn:
        actual = self.data[self.pos : self.pos + 4].decode(errors="replace")[:1]
        if actual == "\ufffd" and not self.data.startswith(actual.encode(), self.pos):
            self.refuse(_invalid_utf8())
        message = f"{expected} was expected, not {actual!r}" if actual else f"the text ends before {expected}"
        self.refuse(Malformed(message, hint="fix the text there; it must be JSON"))

    def refuse(self, problem: JsonRefused, pos: int | None = None) -> NoReturn:
        """Note `problem`, from which the text cannot be read on, and raise."""
        self.note(problem, pos)
        raise self.combined_problem()

    def note(self, problem: JsonRefused, pos: int | None = None) -> None:
        """Note `problem` with its places in the document and in the text.

        Line and column count from 1, the byte from 0.
        """
        byte = self.pos if pos is None else pos
        line_start = self.data.rfind(b"\n", 0, byte) + 1
        problem.details |= {
            "line": self.data.count(b"\n", 0, byte) + 1,
            "column": len(self.data[line_start:byte].decode(errors="replace")) + 1,
            "byte": byte,
        }
        self.problems.append(problem.under(pointer(open_.token for open_ in self.stack if open_.token is not None)))
        if len(self.problems) == 1:
            self.first_byte = byte
        if len(self.problems) == _MAX_PROBLEMS:
            raise self.combined_problem()

    def combined_problem(self) -> JsonRefused:
        """The first problem, carrying all others."""
        first, *others = self.problems
        return first.together(others) if others else first


def _invalid_utf8() -> InvalidUtf8:
    return InvalidUtf8("not UTF-8", hint="save the text as UTF-8")
