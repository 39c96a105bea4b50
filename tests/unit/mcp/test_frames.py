"""Bytes to messages: whatever comes, what is a message is found, and what is none is told and left behind."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.mcp.frames import MAX_MESSAGE, BadFrame, Framer, Message, frame_message
from tests.support.cases import cases

LINE = b'{"n":1}'
AFTER = b'{"after":2}'


def read(data: bytes, *, at_once: int = 1 << 20) -> tuple[list[bytes | str], bool | None]:
    """The messages as bytes and what is broken as text, fed in pieces; and how the first message came."""
    framer = Framer()
    frames: list[Message | BadFrame] = []
    for start in range(0, len(data), at_once):
        frames += framer.feed(data[start : start + at_once])
    frames += framer.end()
    return [message.data if isinstance(message, Message) else message.why for message in frames], framer.headers


def headed(body: bytes, *, name: bytes = b"Content-Length") -> bytes:
    return b"%b: %d\r\n\r\n%b" % (name, len(body), body)


@cases("at_once", [1, 3, 1 << 20])
@cases(
    ("data", "messages"),
    [
        (LINE + b"\n" + AFTER + b"\r\n", [LINE, AFTER]),
        (LINE, [LINE]),
        (b"\n\r\n  " + LINE + b" \n\n", [LINE]),
        (b"\xef\xbb\xbf" + LINE + b"\n", [LINE]),
        (headed(LINE) + headed(AFTER), [LINE, AFTER]),
        (headed(LINE, name=b"content-LENGTH"), [LINE]),
        (b"Content-Type: a/b\r\nX-Any: y\r\n" + headed(LINE), [LINE]),
        (b"X-Any: y\r\n" + headed(LINE), [LINE]),
        (b"X-Any: y\r\nAccept: b\r\n" + headed(LINE) + b"Host: z\n" + headed(AFTER), [LINE, AFTER]),
        (b"Content-Length: 7\n\n" + LINE, [LINE]),
        (headed(LINE) + AFTER + b"\n" + headed(LINE), [LINE, AFTER, LINE]),
        (headed(b"") + AFTER, [b"", AFTER]),
        (headed(b'{\n"n":\n1}') + AFTER, [b'{\n"n":\n1}', AFTER]),
        (b"stray\nhello: world\n" + AFTER + b"\n", [b"stray", b"hello: world", AFTER]),
        (b"one: 1\ntwo: 2\nthree\n" + AFTER + b"\n", [b"one: 1", b"two: 2", b"three", AFTER]),
        (b"one: 1\n\n" + AFTER, [b"one: 1", AFTER]),
        (b"one: 1\n" + AFTER + b"\ntwo: 2", [b"one: 1", AFTER, b"two: 2"]),
        (b"one: 1\ntwo: 2\n", [b"one: 1", b"two: 2"]),
        (b"one: " + b"y" * 9000 + b"\n" + headed(LINE), [b"one: " + b"y" * 9000, LINE]),
        (b"", []),
        (b" \n\t\n", []),
    ],
)
def test_both_framings_are_read_in_pieces_of_any_size(data: bytes, messages: list[bytes], at_once: int) -> None:
    assert read(data, at_once=at_once)[0] == messages


@cases(
    "block",
    [
        b"Content-Length: 7\n",  # the message follows without an empty line
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: seven\r\n\r\n",
        b"Content-Length: -7\r\n\r\n",
        b"Content-Length: +7\r\n\r\n",
        "Content-Length: \u0667\r\n\r\n".encode(),
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 9999999999999\r\n\r\n",
        b"Content-Length: 7\r\n" + b"X: " + b"y" * 9000 + b"\r\n",
        b"Content-Length: 7\rx\r\n",
    ],
)
def test_a_broken_block_of_headers_is_told_once_and_the_next_line_is_read(block: bytes) -> None:
    frames, _ = read(block + AFTER + b"\n")
    assert frames[-1] == AFTER
    assert len(frames) == 2
    assert frames[0] != AFTER


@cases(
    "cut",
    [b"Content-Length: 7", b"Content-Length: 7\r\n", b"Content-Length: 7\r\n\r\n{", b"Content-Length: 7\r\n\r\n"],
)
def test_a_message_that_is_cut_off_by_the_end_is_told(cut: bytes) -> None:
    assert read(LINE + b"\n" + cut)[0] == [LINE, "the input ended in the middle of a message"]


def test_a_line_as_long_as_allowed_is_read_and_a_longer_one_is_skipped_to_its_end() -> None:
    longest = b"{" + b" " * (MAX_MESSAGE - 2) + b"}"
    assert read(longest + b"\n" + AFTER + b"\n", at_once=1 << 16)[0] == [longest, AFTER]
    frames, _ = read(b"{" + b"x" * MAX_MESSAGE + b"\n" + AFTER + b"\n", at_once=1 << 16)
    assert frames == [f"a message of more than {MAX_MESSAGE} bytes", AFTER]


def test_a_body_that_is_too_long_is_told_at_once_and_skipped() -> None:
    body = b"{" + b"x" * MAX_MESSAGE + b"}"
    framer = Framer()
    assert [*framer.feed(b"Content-Length: %d\r\n\r\n" % len(body))] == [
        BadFrame(why=f"a message of more than {MAX_MESSAGE} bytes")
    ]
    for start in range(0, len(body), 1 << 16):
        assert [*framer.feed(body[start : start + (1 << 16)])] == []
        assert len(framer._buffer) <= 1 << 16
    assert [*framer.feed(headed(AFTER))] == [Message(data=AFTER)]


def test_a_line_without_end_does_not_grow_without_bound() -> None:
    framer = Framer()
    for _ in range(2 * MAX_MESSAGE >> 20):
        assert [*framer.feed(b"x" * (1 << 20))] == []
        assert len(framer._buffer) <= MAX_MESSAGE + (1 << 20)
    assert [*framer.feed(b"\n" + LINE + b"\n")] == [
        BadFrame(why=f"a message of more than {MAX_MESSAGE} bytes"),
        Message(data=LINE),
    ]


def test_lines_like_headers_before_one_that_is_too_long_are_told_before_it() -> None:
    frames, _ = read(b"one: 1\n{" + b"x" * MAX_MESSAGE + b"\n" + AFTER, at_once=1 << 16)
    assert frames == [b"one: 1", f"a message of more than {MAX_MESSAGE} bytes", AFTER]
    frames, _ = read(b"one: 1\n{" + b"x" * (MAX_MESSAGE + 10))
    assert frames == [b"one: 1", "the input ended in the middle of a message"]


@cases(
    ("data", "headers"),
    [
        (LINE + b"\n" + headed(LINE), False),
        (headed(LINE) + LINE, True),
        (b"junk\n" + headed(LINE), True),
        (b"X-Any: y\r\n" + headed(LINE), True),
        (b"X-Any: y\n" + LINE, False),
        (b"", None),
    ],
)
def test_the_framing_of_the_first_message_is_kept(data: bytes, headers: bool | None) -> None:  # noqa: FBT001
    assert read(data)[1] is headers


@given(st.binary(max_size=200), st.integers(min_value=1, max_value=50))
def test_no_bytes_stop_it_and_the_size_of_the_pieces_does_not_matter(data: bytes, at_once: int) -> None:
    assert read(data, at_once=at_once) == read(data)


@given(st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line and b"content-" not in line.lower())))
def test_lines_of_any_bytes_do_not_swallow_what_follows(lines: list[bytes]) -> None:
    frames, _ = read(LINE + b"\n" + b"\n".join(lines) + b"\n" + AFTER + b"\n")
    assert (frames[0], frames[-1]) == (LINE, AFTER)


@given(st.binary(max_size=300))
def test_what_is_written_with_headers_is_read_back(body: bytes) -> None:
    assert read(frame_message(body, headers=True) + frame_message(b"{}", headers=True))[0] == [body, b"{}"]
