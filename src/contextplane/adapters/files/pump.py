"""Reading, hashing and writing at the same time, in bounded memory: one producer, one hash, nothing more."""

import os
import queue
import threading
from collections.abc import Iterable, Iterator
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
    back until a second one exists: a stream of one chunk needs no thread.
    """
    source = iter(chunks)
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    if second is None:
        hasher.update(first)
        yield first
        return
    todo: queue.Queue[bytes | None] = queue.Queue(_AHEAD)

    def work() -> None:
        while (chunk := todo.get()) is not None:
            hasher.update(chunk)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for chunk in _joined(first, second, source):
            todo.put(chunk)
            yield chunk
    finally:
        todo.put(None)
        thread.join()


def _joined(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
