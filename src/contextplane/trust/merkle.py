"""The Merkle tree of RFC 6962 and RFC 9162: how events are hashed together, and how little is kept to go on.

A tree of n leaves is a row of whole subtrees, one for each 1 in the binary form of n: its *frontier*. Appending needs
the frontier and nothing else. It is pure; where nodes lie is `stream_tree.py`'s business.
"""

import hashlib

from contextplane.model.value import Value

__all__ = ["EMPTY_ROOT", "Frontier", "Node", "leaf_hash", "node_hash"]

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Leaves and nodes are hashed with different first bytes, so that neither can be passed off as the other."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Node(Value, frozen=True):
    """The root of a whole subtree: the one of 2**level leaves that begins at leaf index * 2**level."""

    level: int
    index: int
    hash: bytes


class Frontier(Value, frozen=True):
    """A tree of `size` leaves, as far as appending needs it: the roots of its whole subtrees, the largest first."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> tuple["Frontier", tuple[Node, ...]]:
        """The tree with one more leaf hash, and every node that is whole by it: the leaf first, then upwards."""
        nodes = [Node(level=0, index=self.size, hash=leaf)]
        peaks = list(self.peaks)
        index = self.size
        while index % 2:
            index //= 2
            top = node_hash(peaks.pop(), nodes[-1].hash)
            nodes.append(Node(level=len(nodes), index=index, hash=top))
        return Frontier(size=self.size + 1, peaks=(*peaks, nodes[-1].hash)), tuple(nodes)

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self.peaks:
            return EMPTY_ROOT
        *others, root = self.peaks
        for peak in reversed(others):
            root = node_hash(peak, root)
        return root
