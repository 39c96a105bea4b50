"""Hashing beside reading and writing changes no byte, hides no failure, and leaves no thread behind."""

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.files.disk import CHUNK, hash_while_streaming, read_chunks

SOME = [b"%d" % n for n in range(40)]


class SourceBroke(Exception):
    """The source of chunks failed."""


def breaking(chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield from chunks
    raise SourceBroke


@given(st.lists(st.binary(max_size=64), max_size=60))
def test_chunks_pass_unchanged_and_the_hash_has_seen_them_all(chunks: list[bytes]) -> None:
    hasher = hashlib.sha256()
    assert list(hash_while_streaming(chunks, hasher)) == chunks
    assert hasher.digest() == hashlib.sha256(b"".join(chunks)).digest()


@given(st.integers(0, 40))
def test_a_consumer_may_stop_early(taken: int) -> None:
    threads = threading.active_count()
    hasher = hashlib.sha256()
    stream = hash_while_streaming((b"%d" % n for n in count()), hasher)
    got = list(islice(stream, taken))
    stream.close()  # type: ignore[attr-defined]
    assert got == [b"%d" % n for n in range(taken)]
    assert hasher.digest() == hashlib.sha256(b"".join(got)).digest()
    assert threading.active_count() == threads


@given(st.integers(0, 40))
def test_a_source_that_fails_is_heard_of_after_what_it_gave(count_before: int) -> None:
    threads = threading.active_count()
    got: list[bytes] = []
    with pytest.raises(SourceBroke):
        got.extend(hash_while_streaming(breaking(SOME[:count_before]), hashlib.sha256()))
    assert threading.active_count() == threads
    # The first chunk is held back until there is a second one.
    assert got == (SOME[:count_before] if count_before > 1 else [])


def test_a_consumer_that_fails_leaves_no_thread_behind() -> None:
    threads = threading.active_count()
    stream = hash_while_streaming(iter(SOME), hashlib.sha256())
    assert next(stream) == SOME[0]
    with pytest.raises(SourceBroke):
        stream.throw(SourceBroke())  # type: ignore[attr-defined]
    assert threading.active_count() == threads


@pytest.mark.parametrize("chunks", [[], [b"one"], [b""]])
def test_a_stream_of_one_chunk_needs_no_thread(chunks: list[bytes]) -> None:
    threads = threading.active_count()
    stream = hash_while_streaming(chunks, hashlib.sha256())
    assert next(stream, None) == (chunks[0] if chunks else None)
    assert threading.active_count() == threads
    assert list(stream) == []


def test_a_source_is_asked_for_no_more_than_one_chunk_beyond_what_was_taken() -> None:
    requested = []

    def source() -> Iterator[bytes]:
        for n in range(100):
            requested.append(n)
            yield b"x"

    stream = hash_while_streaming(source(), hashlib.sha256())
    for taken in range(1, 50):
        next(stream)
        assert len(requested) <= taken + 1
    stream.close()  # type: ignore[attr-defined]


@given(st.lists(st.integers(0, 3 * CHUNK // 2), max_size=3))
def test_a_descriptor_is_read_to_its_end_in_bounded_pieces(sizes: list[int]) -> None:
    data = b"".join(bytes([65 + n]) * size for n, size in enumerate(sizes))
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        file.seek(0)
        pieces = list(read_chunks(file.fileno()))
    assert b"".join(pieces) == data
    assert all(0 < len(piece) <= CHUNK for piece in pieces)


def test_a_pipe_gives_what_it_has_without_waiting_for_more() -> None:
    reading, writing = os.pipe()
    try:
        chunks = read_chunks(reading)
        os.write(writing, b"now")
        assert next(chunks) == b"now"
        os.write(writing, b"later")
        assert next(chunks) == b"later"
    finally:
        os.close(writing)
        os.close(reading)
