"""Cutting long strings out of a JSON text, so that the strict parser sees a short one. Each string is read when needed.

It proves nothing about the text by itself: what is left goes through `json_text.parse`, and a string that was cut out
through the decoder when it is read. Memory is that of what is left.
"""

import re
from collections.abc import Iterator
from mmap import mmap

import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import decoded, parse
from contextplane.model.value import Value

__all__ = ["Buffer", "LongText", "decoded_long", "parse_long", "restored"]

Buffer = bytes | mmap

_LONG = 4096
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_RUN = re.compile(rb'"[^"]{%d}' % (_LONG - 1))  # a long string begins so, unless it has quotes in it
_MARK = "\ufdd0cut:"  # U+FDD0 is no character, and never will be one
_KEY = re.compile(rb"[ \t\n\r]*+:")
_PIECE = 1 << 20
_TOKENS = re.compile(  # no piece ends within an escape, nor between the two of a pair
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})++"
)
_LONGEST_TAIL = 3  # of the bytes of one character all but the first
_GOING_ON = bytes(range(0x80, 0xC0))
_BACKSLASH = ord("\\")


class LongText(Value, frozen=True):
    """A string of a JSON text that was left where it is."""

    source: Buffer
    start: int
    end: int

    def encoded(self) -> bytes:
        """The string's UTF-8 bytes."""
        try:
            with memoryview(self.source) as view, view[self.start : self.end] as piece:
                return msgspec.json.decode(piece, type=str).encode()
        except (msgspec.DecodeError, ValueError) as error:
            for _ in self.chunks():
                pass  # the piece that cannot be read says why
            raise JsonRefused("a string that cannot be read") from error

    def chunks(self) -> Iterator[bytes]:
        """The same, a little at a time: memory is that of one piece, however long the string is."""
        at, end = self.start + 1, self.end - 1
        while at < end:
            upto = self._piece_end(at, min(at + _PIECE, end))
            try:
                chunk = msgspec.json.decode(b'"%b"' % self.source[at:upto], type=str).encode()
            except (msgspec.DecodeError, ValueError) as error:
                raise self._refusal(at, upto) from error
            if upto == at:
                raise self._refusal(at, min(at + _LONG, end))
            yield chunk
            at = upto

    def _piece_end(self, at: int, most: int) -> int:
        """Where a piece can end that begins at `at`: between two characters, at `most` or a little before."""
        match = _TOKENS.match(self.source, at, most)
        end = match.end() if match else at
        for _ in range(_LONGEST_TAIL):
            if end < self.end - 1 and self.source[end] in _GOING_ON:
                end -= 1
        return max(end, at)

    def _refusal(self, at: int, upto: int) -> JsonRefused:
        """Why a piece of the string cannot be read, at its place in the whole text."""
        from contextplane.model.json.explain import explain  # noqa: PLC0415  for a refusal only

        try:
            explain(b'"%b"' % self.source[at:upto])
        except JsonRefused as problem:
            byte = problem.details.get("byte", 1)
            return _placed(problem.together(()), self.source, at - 1 + (byte if isinstance(byte, int) else 1))
        return JsonRefused("a string that cannot be read")


class _Cut(Value, frozen=True):
    rest: bytes
    pieces: tuple[LongText, ...]
    places: tuple[int, ...]  # where each piece's stand-in begins in the rest


def parse_long(data: Buffer) -> tuple[Json, tuple[LongText, ...]]:
    """Read a JSON text strictly. Long strings stand in the value as marks; `restored` gives what they stand for."""
    cut = _cut(data)
    try:
        value = parse(cut.rest).value
    except JsonRefused as error:
        raise _moved(error, data, cut) from error
    # Counted in what was decoded, so that no escape hides one: a text that has our mark in it is not cut at all.
    if cut.pieces and _marks(value) != len(cut.pieces):
        return parse(data[: len(data)]).value, ()
    return value, cut.pieces


def decoded_long(data: Buffer) -> tuple[Json, tuple[LongText, ...]] | None:
    """What a text that `parse_long` refuses seems to say; None when that cannot be told."""
    cut = _cut(data)
    value = decoded(cut.rest)
    return None if value is None or _marks(value) != len(cut.pieces) else (value, cut.pieces)


def _marks(value: Json) -> int:
    """How many strings of a value begin like a mark, keys too."""
    count = 0
    todo: list[Json] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
            count += sum(key.startswith(_MARK) for key in one)
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            count += one.startswith(_MARK)
    return count


def restored(value: Json, pieces: tuple[LongText, ...]) -> "Json | LongText":
    """What a string of the value really is: itself, or the long text it stands for."""
    if pieces and type(value) is str and value.startswith(_MARK):
        return pieces[int(value.removeprefix(_MARK))]
    return value


def _cut(data: Buffer) -> _Cut:
    if _RUN.search(data) is None and data.find(rb"\"") < 0:
        return _Cut(rest=data[: len(data)], pieces=(), places=())  # many short strings need not be looked at one by one
    rest: list[bytes] = []
    length = 0
    pieces: list[LongText] = []
    places: list[int] = []
    done = position = 0
    while (start := data.find(b'"', position)) >= 0:
        end = _end(data, start)
        if end < 0:
            break  # the parser says what is wrong with it
        position = end
        if end - start > _LONG and _KEY.match(data, end) is None:
            stand_in = f'"{_MARK}{len(pieces)}"'.encode()
            rest += [data[done:start], stand_in]
            length += start - done
            places.append(length)
            length += len(stand_in)
            pieces.append(LongText(source=data, start=start, end=end))
            done = end
    rest.append(data[done : len(data)])
    return _Cut(rest=b"".join(rest), pieces=tuple(pieces), places=tuple(places))


def _end(data: Buffer, start: int) -> int:
    """The place after the quote that ends the string which begins at `start`, or -1.

    Most strings have no quote in them: then the next quote ends it, and looking for one byte is the fastest search
    there is. A backslash before it sends us to the regular expression.
    """
    end = data.find(b'"', start + 1)
    if end < 0 or data[end - 1] != _BACKSLASH:
        return end + 1 or -1
    match = _STRING.match(data, start)
    return match.end() if match else -1


def _moved(error: JsonRefused, data: Buffer, cut: _Cut) -> JsonRefused:
    """The same error, and what it tells besides, at their places in the whole text."""
    for other in (error, *error.others):
        byte = other.details.get("byte")
        if not isinstance(byte, int):
            continue
        gone = 0
        for number, (place, piece) in enumerate(zip(cut.places, cut.pieces, strict=True)):
            stand_in = len(f'"{_MARK}{number}"'.encode())
            if place + stand_in <= byte:
                gone += (piece.end - piece.start) - stand_in
        _placed(other, data, byte + gone)
    return error.together(error.others) if error.others else error


def _placed(error: JsonRefused, data: Buffer, byte: int) -> JsonRefused:
    """The same error at a byte of the whole text."""
    start = data.rfind(b"\n", 0, byte) + 1
    line = sum(piece.count(b"\n") for piece in _pieces(data, 0, start)) + 1
    # Columns count characters, each of which has one byte that does not go on with one before.
    column = sum(len(piece.translate(None, _GOING_ON)) for piece in _pieces(data, start, byte)) + 1
    error.details |= {"byte": byte, "line": line, "column": column}
    return error


def _pieces(data: Buffer, start: int, end: int) -> Iterator[bytes]:
    """A part of the text, a little at a time: a line may be as long as the file."""
    for at in range(start, end, _PIECE):
        yield data[at : min(at + _PIECE, end)]
