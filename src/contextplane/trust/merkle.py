"""The Merkle tree of RFC 6962 and RFC 9162: hashing, proofs, and a tree in the streams of a catalog.

- A tree of n leaves is a row of complete subtrees, one for each 1 in the binary form of n: its *frontier*. Appending
  needs the frontier and nothing else.
- Proofs (RFC 9162, section 2.1): that a leaf is in a tree, and that a later tree begins with an earlier one. Making a
  proof reads O(log n) nodes; checking one needs the roots and the proof.
- In the catalog, the nodes of each level are one event stream, so that a node is found by its number. Appending reads
  at most one node a level. Streams are append-only and expect a number: of two concurrent writers one wins.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event
from contextplane.model.json.canonical import canonical
from contextplane.model.value import Value
from contextplane.ports.catalog import Streams, StreamsView

__all__ = [
    "EMPTY_ROOT",
    "CachedNodes",
    "Frontier",
    "InclusionRefuted",
    "Node",
    "OutsideTree",
    "StreamTree",
    "TreeDamaged",
    "TreeNodes",
    "append_leaves",
    "consistency_proof",
    "inclusion_proof",
    "is_consistent",
    "leaf_hash",
    "level_name",
    "levels_of",
    "node_hash",
    "peaks_of",
    "root_of",
    "verify_inclusion",
]

# --- hashing ---------------------------------------------------------------------------------------------------------

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Hash the content of a leaf.

    Leaves and nodes are hashed with different first bytes, so that neither can be passed off as the other.
    """
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Node(Value, frozen=True):
    """The root of a complete subtree: the 2**level leaves that begin at leaf index * 2**level."""

    level: int
    index: int
    hash: bytes


class Frontier(Value, frozen=True):
    """What appending needs of a tree of `size` leaves: the roots of its complete subtrees, largest first."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> tuple["Frontier", tuple[Node, ...]]:
        """Append a leaf hash; returns the new frontier and each node it completes, from the leaf upwards."""
        nodes = [Node(level=0, index=self.size, hash=leaf)]
        peaks = list(self.peaks)
        index = self.size
        while index % 2:
            index //= 2
            top = node_hash(peaks.pop(), nodes[-1].hash)
            nodes.append(Node(level=len(nodes), index=index, hash=top))
        return Frontier(size=self.size + 1, peaks=(*peaks, nodes[-1].hash)), tuple(nodes)

    def extend(self, leaves: Sequence[bytes]) -> "Frontier":
        """Append many leaf hashes; no node in between is returned."""
        size, peaks = self.size, list(self.peaks)
        for leaf in leaves:
            top, index = leaf, size
            while index & 1:
                top = node_hash(peaks.pop(), top)
                index >>= 1
            peaks.append(top)
            size += 1
        return Frontier(size=size, peaks=tuple(peaks))

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self.peaks:
            return EMPTY_ROOT
        *others, root = self.peaks
        for peak in reversed(others):
            root = node_hash(peak, root)
        return root


# --- proofs ----------------------------------------------------------------------------------------------------------

Path = tuple[bytes, ...]


class InclusionRefuted(ContextPlaneError):
    """A proof that does not show that this leaf is at this place of the tree with this root."""

    code: ClassVar[str] = "inclusion_not_proved"
    family: ClassVar[Family] = "untrusted"


class OutsideTree(ContextPlaneError):
    """A leaf or an earlier size that the tree does not have."""

    code: ClassVar[str] = "outside_tree"
    family: ClassVar[Family] = "not_found"


class TreeNodes(Protocol):
    """Reads the complete subtrees of a tree, by level and index."""

    def node(self, level: int, index: int) -> bytes: ...


def root_of(nodes: TreeNodes, begin: int, end: int) -> bytes:
    """Hash the leaves [begin, end). `begin` must be a place where a subtree of that size may begin."""
    size = end - begin
    if size == 0:
        return EMPTY_ROOT
    if size & (size - 1) == 0:
        return nodes.node(size.bit_length() - 1, begin // size)
    middle = begin + _split(size)
    return node_hash(root_of(nodes, begin, middle), root_of(nodes, middle, end))


def peaks_of(nodes: TreeNodes, size: int) -> Path:
    """Return the roots of the complete subtrees of the first `size` leaves, largest first."""
    peaks = []
    begin = 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            peaks.append(nodes.node(level, begin >> level))
            begin += 1 << level
    return tuple(peaks)


def inclusion_proof(nodes: TreeNodes, index: int, size: int) -> Path:
    """Return the hashes from leaf `index` to the root of the first `size` leaves, from the leaf upwards."""
    if not 0 <= index < size:
        raise OutsideTree(f"no leaf {index} in a tree of {size}", hint="leaves are counted from 0")
    begin, end = 0, size
    path = []
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            path.append(root_of(nodes, middle, end))
            end = middle
        else:
            path.append(root_of(nodes, begin, middle))
            begin = middle
    return tuple(reversed(path))


def consistency_proof(nodes: TreeNodes, old: int, size: int) -> Path:
    """Return the hashes that prove that the first `old` of `size` leaves are unchanged."""
    if not 0 <= old <= size:
        raise OutsideTree(f"no tree of {old} within one of {size}", hint="the earlier tree is the smaller one")
    if old in {0, size}:
        return ()
    begin, end = 0, size
    path = []
    while end != old:
        middle = begin + _split(end - begin)
        if old <= middle:
            path.append(root_of(nodes, middle, end))
            end = middle
        else:
            path.append(root_of(nodes, begin, middle))
            begin = middle
    # The verifier knows the root of the old tree, unless the path led to the right of a subtree.
    if begin:
        path.append(root_of(nodes, begin, end))
    return tuple(reversed(path))


def verify_inclusion(leaf: bytes, index: int, size: int, *, root: bytes, proof: Sequence[bytes]) -> None:
    """Refuse unless the tree of `size` leaves with this root has this leaf hash at `index`."""
    at, last, hashed = index, size - 1, leaf
    refuted = InclusionRefuted(f"leaf {index} of {size} is not what the proof is about", hint="ask for it again")
    if not 0 <= index < size:
        raise refuted
    for sibling in proof:
        if last == 0:
            raise refuted
        if at % 2 or at == last:
            hashed = node_hash(sibling, hashed)
            while not at % 2 and at:
                at, last = at // 2, last // 2
        else:
            hashed = node_hash(hashed, sibling)
        at, last = at // 2, last // 2
    if last or hashed != root:
        raise refuted


def is_consistent(old: int, old_root: bytes, size: int, *, root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a tree of `size` leaves with `root` begins with the `old` leaves whose root was `old_root`."""
    if old in {0, size}:
        return not proof and (old_root == root if old == size else old_root == EMPTY_ROOT)
    if not 0 < old < size:
        return False
    path = [old_root, *proof] if old & (old - 1) == 0 else [*proof]
    if not path:
        return False
    at, last = old - 1, size - 1
    while at % 2:
        at, last = at // 2, last // 2
    before = after = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            before, after = node_hash(sibling, before), node_hash(sibling, after)
            while not at % 2 and at:
                at, last = at // 2, last // 2
        else:
            after = node_hash(after, sibling)
        at, last = at // 2, last // 2
    return last == 0 and before == old_root and after == root


def _split(size: int) -> int:
    """The largest power of two below `size`: where RFC 6962 divides a tree."""
    return 1 << (size - 1).bit_length() - 1


# --- a tree in the catalog -------------------------------------------------------------------------------------------

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
        """The number of leaves."""
        return self._streams.head(level_name(self._name, 0))

    def node(self, level: int, index: int) -> bytes:
        """Read the hash of a node, or refuse a damaged tree."""
        stream = level_name(self._name, level)
        event = next(iter(self._streams.read(stream, after=index)), None)
        if event is None or event.seq != index + 1 or _BODY.fullmatch(event.body) is None:
            raise TreeDamaged(f"node {index} is missing or damaged", at=stream, hint="restore the catalog from a copy")
        return bytes.fromhex(event.body[1:-1].decode())

    def frontier(self) -> Frontier:
        size = self.size
        return Frontier(size=size, peaks=peaks_of(self, size))


class CachedNodes:
    """Reads each node of a tree once: proofs under one root share most of them."""

    def __init__(self, tree: TreeNodes) -> None:
        self._tree = tree
        self._known: dict[tuple[int, int], bytes] = {}

    def node(self, level: int, index: int) -> bytes:
        data = self._known.get((level, index))
        if data is None:
            data = self._known[level, index] = self._tree.node(level, index)
        return data


def append_leaves(streams: Streams, name: str, leaves: Sequence[bytes]) -> Frontier:
    """Append leaves with these contents in the caller's transaction; returns the new frontier."""
    frontier = StreamTree(streams, name).frontier()
    levels: dict[int, list[bytes]] = {}
    first: dict[int, int] = {}
    for leaf in leaves:
        frontier, nodes = frontier.append(leaf_hash(leaf))
        for node in nodes:
            first.setdefault(node.level, node.index)
            levels.setdefault(node.level, []).append(node.hash)
    for level, hashes in levels.items():
        events = [Event(kind=_KIND, body=canonical(hash_.hex())) for hash_ in hashes]
        streams.append(level_name(name, level), first[level], events)
    return frontier


def level_name(name: str, level: int) -> str:
    """The stream of the nodes of a level."""
    return f"tree/{name}/{level:02d}"


def levels_of(streams: StreamsView, name: str) -> list[str]:
    """The streams of all existing levels, the leaves first."""
    return list(streams.names(f"tree/{name}/"))
