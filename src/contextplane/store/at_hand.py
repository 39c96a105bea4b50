"""Objects of which some were put by ourselves a moment ago: what we still hold of them need not be read again."""

from collections.abc import Iterator, Mapping

from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectReader

__all__ = ["AtHand"]


class AtHand:
    """An `ObjectReader`. `sizes`: of everything that was put; `contents`: the bytes of some of it."""

    def __init__(self, objects: ObjectReader, *, sizes: Mapping[Digest, int], contents: Mapping[Digest, bytes]) -> None:
        self._objects = objects
        self._sizes = sizes
        self._contents = contents

    def has(self, digest: Digest) -> bool:
        return digest in self._sizes or self._objects.has(digest)

    def size(self, digest: Digest) -> int:
        size = self._sizes.get(digest)
        return self._objects.size(digest) if size is None else size

    def get(self, digest: Digest) -> bytes:
        data = self._contents.get(digest)
        return self._objects.get(digest) if data is None else data

    def stream(self, digest: Digest) -> Iterator[bytes]:
        data = self._contents.get(digest)
        return self._objects.stream(digest) if data is None else iter((data,))
