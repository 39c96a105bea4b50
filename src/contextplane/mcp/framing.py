"""Messages out of a stream of bytes, in either framing, each told by its first byte that is not blank.

A message is one line, or a block of headers with its `Content-Length` and then that many bytes. What is no message is
told as such, and reading goes on at the next line: nothing that a peer sends makes it deaf, or lets it grow without
bound. Lines that only look like headers are told as soon as no `Content-Length` can follow. It knows no JSON.
"""

from collections.abc import Iterator

from contextplane.model.value import Value

__all__ = ["MAX_MESSAGE", "Broken", "Framer", "Message", "framed"]

MAX_MESSAGE = 10 << 20
"""The longest message, in bytes."""

_MAX_HEADER = 8 << 10  # bytes of a block of headers
_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_TELLING = (b"content-length", b"content-type")  # a block has one of these; any other header may stand around it
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_DIGITS = 12


class Message(Value, frozen=True):
    """The bytes of one message."""

    data: bytes


class Broken(Value, frozen=True):
    """Something came that is no message."""

    why: str


class Framer:
    """Cuts a stream into messages. `headers` is how the first message came: in a block of headers, or as a line."""

    def __init__(self) -> None:
        self.headers: bool | None = None
        self._buffer = bytearray()
        self._searched = 0  # so far there is no end of a line
        self._skip_line = False
        self._skip_bytes = 0
        self._block: list[bytes] | None = None
        self._strays: list[bytes] = []  # lines that looked like headers, still to be told
        self._length: int | None = None

    def feed(self, data: bytes) -> Iterator[Message | Broken]:
        """The messages that are complete with these bytes."""
        self._buffer += data
        while (found := self._next()) is not None:
            if found is not _NOTHING:
                yield found

    def end(self) -> Iterator[Message | Broken]:
        """What is left when nothing more will come: a last line needs no end, anything else is cut off."""
        inside = self._length is not None or self._skip_bytes or self._skip_line
        yield from self.feed(b"\n" if self._buffer and not inside else b"")
        if inside or self._length is not None or _is_block(self._block):
            yield _CUT_OFF
        else:
            yield from (Message(data=line) for line in self._block or ())

    def _next(self) -> Message | Broken | None:
        """One step: what was found, `_NOTHING` when the step found nothing to tell, None when more bytes are needed."""
        if self._strays:
            return Message(data=self._strays.pop(0))
        if self._skip_bytes:
            gone = min(self._skip_bytes, len(self._buffer))
            del self._buffer[:gone]
            self._skip_bytes -= gone
            return None if self._skip_bytes else _NOTHING
        if self._length is not None:
            return self._body(self._length)
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._unended()
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        if self._skip_line:
            self._skip_line = False
            return _TOO_LONG
        return self._in_block(self._block, line) if self._block is not None else self._line(_trimmed(line))

    def _unended(self) -> None:
        """The line goes on. One that is too long is forgotten as it comes."""
        if self._skip_line or len(self._buffer) > MAX_MESSAGE + len(_MARK) + len(_BLANK):
            self._skip_line = True
            self._given_up(self._block)
            self._buffer.clear()
        self._searched = len(self._buffer)

    def _line(self, line: bytes) -> Message | Broken:
        if not line:
            return _NOTHING
        if line[0] in _NAME_BYTES and _header(line):
            return self._in_block([], line)
        if line[:1] in {b"{", b"["} and self.headers is None:
            self.headers = False
        return Message(data=line) if len(line) <= MAX_MESSAGE else _TOO_LONG

    def _in_block(self, block: list[bytes], line: bytes) -> Message | Broken:
        """Take one line of a block of headers. A line that is none ends the block, and is read as what it is."""
        line = line.strip(_BLANK)
        header = _header(line)
        if not line and _is_block(block):
            return self._block_end(block)
        if header is None:
            self._buffer[:0] = line + b"\n"
            return self._given_up(block) or Broken(why="a block of headers that is not closed by an empty line")
        block.append(line)
        if header[0] in _TELLING and self.headers is None:
            self.headers = True
        if sum(map(len, block)) > _MAX_HEADER:
            return self._given_up(block) or Broken(why=f"a block of headers of more than {_MAX_HEADER} bytes")
        self._block = block
        return _NOTHING

    def _given_up(self, block: list[bytes] | None) -> Broken | None:
        """Leave a block behind. The lines of one that never was one are told one by one, and nothing else is."""
        self._block = None
        if _is_block(block):
            return None
        self._strays += block or ()
        return _NOTHING

    def _block_end(self, block: list[bytes]) -> Message | Broken:
        self._block = None
        headers = [header for line in block if (header := _header(line))]
        lengths = {value for name, value in headers if name == b"content-length"}
        length = lengths.pop() if len(lengths) == 1 else b""
        if not length.isdigit() or len(length) > _DIGITS:
            return Broken(why="a block of headers without one Content-Length")
        if int(length) > MAX_MESSAGE:
            self._skip_bytes = int(length)
            return _TOO_LONG
        self._length = int(length)
        return _NOTHING

    def _body(self, length: int) -> Message | Broken | None:
        if len(self._buffer) < length:
            return None
        self._length = None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return Message(data=body)


_NOTHING = Broken(why="")
_TOO_LONG = Broken(why=f"a message of more than {MAX_MESSAGE} bytes")
_CUT_OFF = Broken(why="the input ended in the middle of a message")


def _header(line: bytes) -> tuple[bytes, bytes] | None:
    """The name, in small letters, and the value of a header; None when the line is none."""
    name, colon, value = line.partition(b":")
    name = name.rstrip(_BLANK)
    if not colon or not name or not _NAME_BYTES.issuperset(name) or b"\r" in value:
        return None
    return name.lower(), value.strip(_BLANK)


def _is_block(lines: list[bytes] | None) -> bool:
    """Whether lines that look like headers are headers of a message."""
    return any(header[0] in _TELLING for line in lines or () if (header := _header(line)))


def _trimmed(line: bytes | bytearray) -> bytes:
    return bytes(line).strip(_BLANK).removeprefix(_MARK).strip(_BLANK)


def framed(data: bytes, *, headers: bool) -> bytes:
    """An answer, ready to be written."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data) if headers else data + b"\n"
