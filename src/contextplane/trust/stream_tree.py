"""A Merkle tree in the catalog: the nodes of each level are one event stream, so that a node is found by its number.

Appending reads the frontier, at most one node a level, and appends whole nodes; so the cost of an append, a proof or a
root grows with the logarithm of the tree. Streams are append-only and expect a number: of two writers one wins.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.ports.streams import Event, Streams, StreamsView
from contextplane.trust.merkle import Frontier, leaf_hash
from contextplane.trust.proofs import peaks_of

__all__ = ["StreamTree", "TreeDamaged", "appended", "level_name", "levels_of"]

_KIND = "tree_node"
_BODY = re.compile(rb'"[0-9a-f]{64}"')


class TreeDamaged(ContextPlaneError):
    """A node of a tree in the catalog that is not there, or not a hash."""

    code: ClassVar[str] = "tree_damaged"
    family: ClassVar[Family] = "untrusted"


class StreamTree:
    """The tree `name`, within one view or transaction of the catalog."""

    def __init__(self, streams: StreamsView, name: str) -> None:
        self._streams = streams
        self._name = name

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._streams.head(level_name(self._name, 0))

    def node(self, level: int, index: int) -> bytes:
        stream = level_name(self._name, level)
        event = next(iter(self._streams.read(stream, after=index)), None)
        if event is None or event.seq != index + 1 or _BODY.fullmatch(event.body) is None:
            raise TreeDamaged(f"node {index} is missing or damaged", at=stream, hint="restore the catalog from a copy")
        return bytes.fromhex(event.body[1:-1].decode())

    def frontier(self) -> Frontier:
        size = self.size
        return Frontier(size=size, peaks=peaks_of(self, size))


def appended(streams: Streams, name: str, leaves: Sequence[bytes]) -> Frontier:
    """Append the leaves with these contents, in the caller's transaction, and return the frontier."""
    frontier = StreamTree(streams, name).frontier()
    levels: dict[int, list[bytes]] = {}
    first: dict[int, int] = {}
    for leaf in leaves:
        frontier, nodes = frontier.append(leaf_hash(leaf))
        for node in nodes:
            first.setdefault(node.level, node.index)
            levels.setdefault(node.level, []).append(node.hash)
    for level, hashes in levels.items():
        events = [Event(kind=_KIND, body=canonical(one.hex())) for one in hashes]
        streams.append(level_name(name, level), first[level], events)
    return frontier


def level_name(name: str, level: int) -> str:
    """The stream of the nodes of a level."""
    return f"tree/{name}/{level:02d}"


def levels_of(streams: StreamsView, name: str) -> list[str]:
    """The streams of all levels that there are, the leaves first."""
    return list(streams.names(f"tree/{name}/"))
