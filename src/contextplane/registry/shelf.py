"""What a resolution reads of a registry, all of it of one state; and a shelf that is a view of a catalog.

Whoever hands out events has checked them (`reading.py`). Whether they are in the log is checked by whoever resolves.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from contextplane.model.ids import Digest
from contextplane.ports.keyring import Keyring
from contextplane.registry.checkpoints import Standing
from contextplane.registry.events import Happened
from contextplane.registry.opening import OpenRegistry
from contextplane.registry.streams import TREE
from contextplane.trust.proofs import consistency_proof, inclusion_proof
from contextplane.trust.stream_tree import StreamTree

__all__ = ["CatalogShelf", "Shelf"]

Path = tuple[bytes, ...]


class Shelf(Protocol):
    """One state of a registry, to be read."""

    def history(self, stream: str) -> Iterable[Happened]:
        """Every event of a stream, each signed by somebody who was allowed to, in its place."""
        ...

    def last(self, stream: str) -> Happened | None:
        """The last event of a stream, likewise; None when there is none."""
        ...

    def object(self, digest: Digest) -> bytes:
        """The bytes of an object. An `ObjectNotFound` or `ObjectCorrupt` says why they cannot be had."""
        ...

    def keyring(self, seq: int) -> Keyring:
        """The keyring as it was after so many changes."""
        ...

    def kin(self, key_id: str, seq: int) -> frozenset[str]:
        """The keys of whoever had this key after so many changes of the keyring."""
        ...

    def standing(self) -> Standing | None:
        """The newest checkpoint, signed by a key that was good then; None while nothing was ever written."""
        ...

    def inclusion(self, entry: int, size: int) -> Path:
        """The hashes that lead from an entry of the log to the root of its first `size` entries."""
        ...

    def consistency(self, old: int, size: int) -> Path:
        """The hashes that show that the first `old` of `size` entries are what they were."""
        ...


class CatalogShelf:
    """An opened registry as a shelf. It lives as long as the view that it was opened in. `fetch` gets an object."""

    def __init__(self, opened: OpenRegistry, fetch: Callable[[Digest], bytes]) -> None:
        self._reader = opened.reader
        self._standing = opened.standing
        self._fetch = fetch
        self._nodes = _Nodes(StreamTree(opened.reader.streams, TREE))

    def history(self, stream: str) -> Iterable[Happened]:
        return self._reader.history(stream)

    def last(self, stream: str) -> Happened | None:
        return self._reader.last(stream)

    def object(self, digest: Digest) -> bytes:
        return self._fetch(digest)

    def keyring(self, seq: int) -> Keyring:
        return self._reader.keyrings.at(seq)

    def kin(self, key_id: str, seq: int) -> frozenset[str]:
        return self._reader.keyrings.kin(key_id, seq)

    def standing(self) -> Standing | None:
        return self._standing

    def inclusion(self, entry: int, size: int) -> Path:
        return inclusion_proof(self._nodes, entry, size)

    def consistency(self, old: int, size: int) -> Path:
        return consistency_proof(self._nodes, old, size)


class _Nodes:
    """The nodes of a tree, each read once: proofs under one root share most of them."""

    def __init__(self, tree: StreamTree) -> None:
        self._tree = tree
        self._known: dict[tuple[int, int], bytes] = {}

    def node(self, level: int, index: int) -> bytes:
        found = self._known.get((level, index))
        if found is None:
            found = self._known[level, index] = self._tree.node(level, index)
        return found
