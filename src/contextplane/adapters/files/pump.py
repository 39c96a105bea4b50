"""Reading, hashing and writing at the same time, in bounded memory: one producer, one hash, nothing more."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Protocol

__all__ = ["CHUNK", "Hasher", "chunks_of", "hashed"]

CHUNK = 1 << 20
_AHEAD = 8


class Hasher(Protocol):
    """A running hash, as hashlib gives it."""

    def update(self, data: bytes, /) -> None: ...


def chunks_of(fd: int) -> Iterator[bytes]:
    """Read a descriptor to its end. A pipe gives what it has, so a slow writer does not hold back what came."""
    while chunk := os.read(fd, CHUNK):
        yield chunk


def hashed(chunks: Iterable[bytes], hasher: Hasher) -> Iterator[bytes]:
    """Pass chunks on unchanged while another thread hashes them; at the end the hash has seen every one.

    Hashing, reading and writing all release the interpreter, so the three run side by side. The first chunk is held
    back until a second one exists: a stream of one chunk needs no thread. A producer may use its buffer again: what is
    not `bytes` is copied first.
    """
    source = map(_own, chunks)
    first = list(islice(source, 2))
    if len(first) < 2:  # noqa: PLR2004
        for chunk in first:
            hasher.update(chunk)
        yield from first
        return
    # Here and not above: most of what is read is one chunk.
    import queue  # noqa: PLC0415
    import threading  # noqa: PLC0415

    todo: queue.Queue[bytes | None] = queue.Queue(_AHEAD)

    def work() -> None:
        while (chunk := todo.get()) is not None:
            hasher.update(chunk)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for chunk in chain(first, source):
            todo.put(chunk)
            yield chunk
    finally:
        todo.put(None)
        thread.join()


def _own(chunk: object) -> bytes:
    if type(chunk) is bytes:
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        return bytes(chunk)
    raise TypeError(f"a chunk of a stream is bytes, not {type(chunk).__name__}")
