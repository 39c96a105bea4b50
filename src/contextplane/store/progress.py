"""Progress-reporting wrappers of a batch of objects and of a stream of chunks."""

from collections.abc import Iterable, Iterator

from contextplane.model.catalog import StoredObject
from contextplane.model.ids import Digest
from contextplane.ports.objects import Batch
from contextplane.ports.world import Progress

__all__ = ["ProgressBatch", "report_chunks"]


def report_chunks(chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """Yield the chunks of one object, and report each."""
    for chunk in chunks:
        yield chunk
        progress.step(len(chunk), 0)
    progress.step(0, 1)


class ProgressBatch:
    """A batch that reports each object that is put."""

    def __init__(self, batch: Batch, progress: Progress) -> None:
        self._batch = batch
        self._progress = progress

    def put(self, data: bytes) -> Digest:
        digest = self._batch.put(data)
        self._progress.step(len(data), 1)
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> StoredObject:
        return self._batch.put_stream(report_chunks(chunks, self._progress))

    def put_path(self, path: str) -> StoredObject:
        stored = self._batch.put_path(path)
        self._progress.step(stored.size, 1)
        return stored

    def commit(self) -> None:
        self._batch.commit()
