"""Work that tells somebody who waits how far it has come, piece by piece, and is otherwise the same."""

from collections.abc import Iterable, Iterator

from contextplane.model.ids import Digest
from contextplane.ports.objects import Batch, Stored
from contextplane.ports.progress import Progress

__all__ = ["WatchedBatch", "watched"]


def watched(chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """The chunks of one object."""
    for chunk in chunks:
        yield chunk
        progress.step(len(chunk), 0)
    progress.step(0, 1)


class WatchedBatch:
    """A batch of objects."""

    def __init__(self, batch: Batch, progress: Progress) -> None:
        self._batch = batch
        self._progress = progress

    def put(self, data: bytes) -> Digest:
        digest = self._batch.put(data)
        self._progress.step(len(data), 1)
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        return self._batch.put_stream(watched(chunks, self._progress))

    def put_path(self, path: str) -> Stored:
        stored = self._batch.put_path(path)
        self._progress.step(stored.size, 1)
        return stored

    def commit(self) -> None:
        self._batch.commit()
