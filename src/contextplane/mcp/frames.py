"""Splits a stream of bytes into messages, in either framing, and frames answers. It knows no JSON.

A message is one line, or a block of headers with a `Content-Length` followed by that many bytes; the first byte that is
not blank decides. Anything else is reported as a bad frame, and reading goes on at the next line: no input stops the
reader or makes its buffer grow without bound. Lines that only look like headers are returned as messages as soon as no
`Content-Length` can follow.
"""

from collections.abc import Iterator

from contextplane.model.value import Value

__all__ = ["MAX_MESSAGE", "BadFrame", "Framer", "Message", "frame_message"]

MAX_MESSAGE = 10 << 20
"""The longest message, in bytes."""

_MAX_HEADER = 8 << 10  # bytes of a block of headers
_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_DECISIVE = (b"content-length", b"content-type")  # a block of headers has one of these
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_DIGITS = 12


class Message(Value, frozen=True):
    """The bytes of one message."""

    data: bytes


class BadFrame(Value, frozen=True):
    """Input that is no message, and why."""

    why: str


class Framer:
    """Splits a stream into messages.

    `headers`: whether the first message had a block of headers; None before the first message.
    """

    def __init__(self) -> None:
        self.headers: bool | None = None
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that hold no end of a line
        self._skip_line = False
        self._skip_bytes = 0
        self._block: list[bytes] | None = None
        self._strays: list[bytes] = []  # lines that looked like headers, still to be returned
        self._length: int | None = None

    def feed(self, data: bytes) -> Iterator[Message | BadFrame]:
        """The messages that are complete with these bytes."""
        self._buffer += data
        while (frame := self._next()) is not None:
            if frame is not _NOTHING:
                yield frame

    def end(self) -> Iterator[Message | BadFrame]:
        """The rest when the input has ended: a last line needs no line feed, anything else is cut off."""
        inside = self._length is not None or self._skip_bytes or self._skip_line
        yield from self.feed(b"\n" if self._buffer and not inside else b"")
        if inside or self._length is not None or _is_block(self._block):
            yield _CUT_OFF
        else:
            yield from (Message(data=line) for line in self._block or ())

    def _next(self) -> Message | BadFrame | None:
        """One step: a frame, `_NOTHING` when the step made none, None when more bytes are needed."""
        if self._strays:
            return Message(data=self._strays.pop(0))
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(self._buffer))
            del self._buffer[:skipped]
            self._skip_bytes -= skipped
            return None if self._skip_bytes else _NOTHING
        if self._length is not None:
            return self._body(self._length)
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._continue_line()
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        if self._skip_line:
            self._skip_line = False
            return _TOO_LONG
        return self._in_block(self._block, line) if self._block is not None else self._line(_strip_blanks(line))

    def _continue_line(self) -> None:
        """Wait for the rest of a line. One that is too long is dropped as it comes."""
        if self._skip_line or len(self._buffer) > MAX_MESSAGE + len(_MARK) + len(_BLANK):
            self._skip_line = True
            self._abandon_block(self._block)
            self._buffer.clear()
        self._searched = len(self._buffer)

    def _line(self, line: bytes) -> Message | BadFrame:
        if not line:
            return _NOTHING
        if line[0] in _NAME_BYTES and _header(line):
            return self._in_block([], line)
        if line[:1] in {b"{", b"["} and self.headers is None:
            self.headers = False
        return Message(data=line) if len(line) <= MAX_MESSAGE else _TOO_LONG

    def _in_block(self, block: list[bytes], line: bytes) -> Message | BadFrame:
        """Add a line to a block of headers. A line that is no header ends the block, and is read again."""
        line = line.strip(_BLANK)
        header = _header(line)
        if not line and _is_block(block):
            return self._block_end(block)
        if header is None:
            self._buffer[:0] = line + b"\n"
            return self._abandon_block(block) or BadFrame(why="a block of headers that is not closed by an empty line")
        block.append(line)
        if header[0] in _DECISIVE and self.headers is None:
            self.headers = True
        if sum(map(len, block)) > _MAX_HEADER:
            return self._abandon_block(block) or BadFrame(why=f"a block of headers of more than {_MAX_HEADER} bytes")
        self._block = block
        return _NOTHING

    def _abandon_block(self, block: list[bytes] | None) -> BadFrame | None:
        """Drop a block of headers. Lines that only looked like headers are returned one by one."""
        self._block = None
        if _is_block(block):
            return None
        self._strays += block or ()
        return _NOTHING

    def _block_end(self, block: list[bytes]) -> Message | BadFrame:
        self._block = None
        headers = [header for line in block if (header := _header(line))]
        lengths = {value for name, value in headers if name == b"content-length"}
        length = lengths.pop() if len(lengths) == 1 else b""
        if not length.isdigit() or len(length) > _DIGITS:
            return BadFrame(why="a block of headers without one Content-Length")
        if int(length) > MAX_MESSAGE:
            self._skip_bytes = int(length)
            return _TOO_LONG
        self._length = int(length)
        return _NOTHING

    def _body(self, length: int) -> Message | BadFrame | None:
        if len(self._buffer) < length:
            return None
        self._length = None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return Message(data=body)


_NOTHING = BadFrame(why="")
_TOO_LONG = BadFrame(why=f"a message of more than {MAX_MESSAGE} bytes")
_CUT_OFF = BadFrame(why="the input ended in the middle of a message")


def _header(line: bytes) -> tuple[bytes, bytes] | None:
    """The name, in lower case, and the value of a header; None when the line is no header."""
    name, colon, value = line.partition(b":")
    name = name.rstrip(_BLANK)
    if not colon or not name or not _NAME_BYTES.issuperset(name) or b"\r" in value:
        return None
    return name.lower(), value.strip(_BLANK)


def _is_block(lines: list[bytes] | None) -> bool:
    """Whether lines that look like headers are the headers of a message."""
    return any(header[0] in _DECISIVE for line in lines or () if (header := _header(line)))


def _strip_blanks(line: bytes | bytearray) -> bytes:
    return bytes(line).strip(_BLANK).removeprefix(_MARK).strip(_BLANK)


def frame_message(data: bytes, *, headers: bool) -> bytes:
    """Frame an answer as the client frames its messages."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data) if headers else data + b"\n"
