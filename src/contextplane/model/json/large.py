"""Long strings of a JSON text, cut out so that the strict parser sees a short one.

Each of them is read when it is needed, so memory does not grow with them. Cutting proves nothing about the text: the
remainder goes through `parse`, and a string that was cut out through the decoder when it is read.
"""

import re
from collections.abc import Iterator
from mmap import mmap

import msgspec

from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import decode_leniently, parse
from contextplane.model.value import Value

__all__ = ["Buffer", "LongText", "decode_long_leniently", "parse_long", "resolve_mark"]

Buffer = bytes | mmap

_LONG = 4096
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_RUN = re.compile(rb'"[^"]{%d}' % (_LONG - 1))  # the beginning of a long string without quotes in it
_MARK = "\ufdd0cut:"  # U+FDD0 is a noncharacter
_KEY = re.compile(rb"[ \t\n\r]*+:")
_PIECE = 1 << 20
_HEX = rb"[0-9a-fA-F]"
_TOKENS = re.compile(  # no piece ends within an escape or a surrogate pair
    # The last alternative has no `{2}` in it: Python before 3.11.5 would go on after it where that alternative fails.
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])%b{4}|\\u[dD][89abAB]%b%b\\u[dD][c-fC-F]%b%b)++" % ((_HEX,) * 5)
)
_LONGEST_TAIL = 3  # all bytes of a character but the first
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_BACKSLASH = ord("\\")


class LongText(Value, frozen=True):
    """A string of a JSON text that was left where it is."""

    source: Buffer
    start: int
    end: int

    def to_bytes(self) -> bytes:
        """The string's UTF-8 bytes."""
        try:
            with memoryview(self.source) as view, view[self.start : self.end] as piece:
                return msgspec.json.decode(piece, type=str).encode()
        except (msgspec.DecodeError, ValueError) as error:
            for _ in self.chunks():
                pass  # the piece that cannot be read raises the reason
            raise JsonRefused("a string that cannot be read") from error

    def chunks(self) -> Iterator[bytes]:
        """The same bytes in pieces: memory is that of one piece, at any length of the string."""
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
        """Where a piece that begins at `at` can end: between two characters, at `most` or shortly before."""
        match = _TOKENS.match(self.source, at, most)
        end = match.end() if match else at
        for _ in range(_LONGEST_TAIL):
            if end < self.end - 1 and self.source[end] in _CONTINUATION_BYTES:
                end -= 1
        return max(end, at)

    def _refusal(self, at: int, upto: int) -> JsonRefused:
        """The error for a piece that cannot be read, at its place in the whole text."""
        from contextplane.model.json.explain import explain  # noqa: PLC0415  for a refusal only

        try:
            explain(b'"%b"' % self.source[at:upto])
        except JsonRefused as problem:
            byte = problem.details.get("byte", 1)
            return _relocate(problem.together(()), self.source, at - 1 + (byte if isinstance(byte, int) else 1))
        return JsonRefused("a string that cannot be read")


class _Cut(Value, frozen=True):
    rest: bytes
    pieces: tuple[LongText, ...]
    places: tuple[int, ...]  # where each piece's mark begins in `rest`


def parse_long(data: Buffer) -> tuple[Json, tuple[LongText, ...]]:
    """Parse a JSON text strictly. Long strings are marks in the value; `resolve_mark` resolves them."""
    cut = _cut_long_strings(data)
    try:
        value = parse(cut.rest).value
    except JsonRefused as error:
        raise _relocate_all(error, data, cut) from error
    # Counted in the decoded value, so that no escape hides one: a text that contains our mark itself is not cut.
    if cut.pieces and _count_marks(value) != len(cut.pieces):
        return parse(data[: len(data)]).value, ()
    return value, cut.pieces


def decode_long_leniently(data: Buffer) -> tuple[Json, tuple[LongText, ...]] | None:
    """A best-effort value of a text that `parse_long` refuses; None when there is none."""
    cut = _cut_long_strings(data)
    value = decode_leniently(cut.rest)
    return None if value is None or _count_marks(value) != len(cut.pieces) else (value, cut.pieces)


def _count_marks(value: Json) -> int:
    """The number of strings in a value that begin like a mark, keys included."""
    count = 0
    todo: list[Json] = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            todo += node.values()
            count += sum(key.startswith(_MARK) for key in node)
        elif isinstance(node, list):
            todo += node
        elif isinstance(node, str):
            count += node.startswith(_MARK)
    return count


def resolve_mark(value: Json, pieces: tuple[LongText, ...]) -> "Json | LongText":
    """The long text that a string of the value stands for, or the value itself."""
    if pieces and type(value) is str and value.startswith(_MARK):
        return pieces[int(value.removeprefix(_MARK))]
    return value


def _cut_long_strings(data: Buffer) -> _Cut:
    if _RUN.search(data) is None and data.find(rb"\"") < 0:
        return _Cut(rest=data[: len(data)], pieces=(), places=())  # many short strings need not be examined one by one
    parts: list[bytes] = []
    length = 0
    pieces: list[LongText] = []
    places: list[int] = []
    done = position = 0
    while (start := data.find(b'"', position)) >= 0:
        end = _string_end(data, start)
        if end < 0:
            break  # the parser says what is wrong with it
        position = end
        if end - start > _LONG and _KEY.match(data, end) is None:
            stand_in = f'"{_MARK}{len(pieces)}"'.encode()
            parts += [data[done:start], stand_in]
            length += start - done
            places.append(length)
            length += len(stand_in)
            pieces.append(LongText(source=data, start=start, end=end))
            done = end
    parts.append(data[done : len(data)])
    return _Cut(rest=b"".join(parts), pieces=tuple(pieces), places=tuple(places))


def _string_end(data: Buffer, start: int) -> int:
    """The place after the quote that ends the string which begins at `start`, or -1.

    Most strings have no quote in them: then the next quote ends it, and looking for one byte is the fastest search
    there is. A backslash before it leads to the regular expression.
    """
    end = data.find(b'"', start + 1)
    if end < 0 or data[end - 1] != _BACKSLASH:
        return end + 1 or -1
    match = _STRING.match(data, start)
    return match.end() if match else -1


def _relocate_all(error: JsonRefused, data: Buffer, cut: _Cut) -> JsonRefused:
    """Move an error and its other problems to their places in the whole text."""
    for other in (error, *error.others):
        byte = other.details.get("byte")
        if not isinstance(byte, int):
            continue
        removed = 0
        for number, (place, piece) in enumerate(zip(cut.places, cut.pieces, strict=True)):
            stand_in = len(f'"{_MARK}{number}"'.encode())
            if place + stand_in <= byte:
                removed += (piece.end - piece.start) - stand_in
        _relocate(other, data, byte + removed)
    return error.together(error.others) if error.others else error


def _relocate(error: JsonRefused, data: Buffer, byte: int) -> JsonRefused:
    """Move an error to a byte of the whole text."""
    start = data.rfind(b"\n", 0, byte) + 1
    line = sum(piece.count(b"\n") for piece in _chunks(data, 0, start)) + 1
    # Columns count characters, each of which has exactly one byte that is no continuation byte.
    column = sum(len(piece.translate(None, _CONTINUATION_BYTES)) for piece in _chunks(data, start, byte)) + 1
    error.details |= {"byte": byte, "line": line, "column": column}
    return error


def _chunks(data: Buffer, start: int, end: int) -> Iterator[bytes]:
    """A part of the text in pieces: a line may be as long as the file."""
    for at in range(start, end, _PIECE):
        yield data[at : min(at + _PIECE, end)]
