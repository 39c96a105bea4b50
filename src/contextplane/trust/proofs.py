"""Proofs about a Merkle tree: that a leaf is in it, and that a later tree begins with an earlier one (RFC 9162, 2.1).

Making one looks at a number of nodes that grows with the logarithm of the tree; checking one needs roots and the proof.
"""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.trust.merkle import EMPTY_ROOT, node_hash

__all__ = [
    "InclusionRefuted",
    "Nodes",
    "OutsideTree",
    "consistency_proof",
    "inclusion_proof",
    "is_consistent",
    "peaks_of",
    "root_of",
    "verify_inclusion",
]

Path = tuple[bytes, ...]


class InclusionRefuted(ContextPlaneError):
    """A proof that does not show what it should: this leaf is not at this place of the tree with this root."""

    code: ClassVar[str] = "inclusion_not_proved"
    family: ClassVar[Family] = "untrusted"


class OutsideTree(ContextPlaneError):
    """A leaf or an earlier size that the tree does not have."""

    code: ClassVar[str] = "outside_tree"
    family: ClassVar[Family] = "not_found"


class Nodes(Protocol):
    """The whole subtrees of a tree, by level and index."""

    def node(self, level: int, index: int) -> bytes: ...


def root_of(nodes: Nodes, begin: int, end: int) -> bytes:
    """The hash of the leaves [begin, end), where `begin` is where a subtree of that size may begin."""
    size = end - begin
    if size == 0:
        return EMPTY_ROOT
    if size & (size - 1) == 0:
        return nodes.node(size.bit_length() - 1, begin // size)
    middle = begin + _split(size)
    return node_hash(root_of(nodes, begin, middle), root_of(nodes, middle, end))


def peaks_of(nodes: Nodes, size: int) -> Path:
    """The roots of the whole subtrees of the first `size` leaves, the largest first."""
    peaks = []
    begin = 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            peaks.append(nodes.node(level, begin >> level))
            begin += 1 << level
    return tuple(peaks)


def inclusion_proof(nodes: Nodes, index: int, size: int) -> Path:
    """The hashes that lead from leaf `index` to the root of the first `size` leaves, from the leaf upwards."""
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


def consistency_proof(nodes: Nodes, old: int, size: int) -> Path:
    """The hashes that show that the first `old` of `size` leaves are what they were."""
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
    # The old tree itself is known to whoever asks, unless the way led to the right of something.
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
