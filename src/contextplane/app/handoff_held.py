"""Packs that can be read where nothing can be written: they are held in memory for as long as somebody reads them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connect import MEMORY
from contextplane.adapters.system import SystemIds
from contextplane.app.platform import Platform
from contextplane.model.ids import Digest
from contextplane.ports.objects import ObjectReader

__all__ = ["HeldIds", "HeldObjects", "held_catalog"]


def held_catalog(platform: Platform | None) -> SqliteCatalog | None:
    """A catalog in memory, with all that the store has. None when the store's is in a database, which is not copied."""
    if platform is None:
        return SqliteCatalog.create(MEMORY, "")[0]
    return platform.catalog.copy() if isinstance(platform.catalog, SqliteCatalog) else None


class HeldObjects:
    """Objects of a place, and beside them those that were put here, which are gone with it."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._held: dict[Digest, bytes] = {}

    @contextmanager
    def batch(self) -> Iterator["HeldObjects"]:
        yield self

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        self._held[digest] = data
        return digest

    def commit(self) -> None:
        """Nothing here outlives the process, so nothing is made durable."""

    def get(self, digest: Digest) -> bytes:
        held = self._held.get(digest)
        return self._objects.get(digest) if held is None else held


class HeldIds(SystemIds):
    """The same secret for as long as the process lives: a page token is good for the next call, too."""

    def secret(self) -> bytes:
        return _secret()


@cache
def _secret() -> bytes:
    return SystemIds().secret()
