"""Both trees of the registry, over entries and over the ends of streams, made again from the log and compared."""

from collections.abc import Container

from contextplane.model.canonical import canonical
from contextplane.ports.catalog import Transaction, View
from contextplane.registry.checkpoints import Entry
from contextplane.registry.heads import Head, HeadsDamaged, KeptNodes, put_heads
from contextplane.registry.streams import TREE
from contextplane.registry.trouble import Troubles
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, leaf_hash
from contextplane.trust.stream_tree import TreeDamaged, level_name

__all__ = ["TreeAudit"]


class TreeAudit:
    """The trees as the log goes on. `roots` has both at each of the sizes that are asked for."""

    def __init__(self, sizes: Container[int]) -> None:
        self.levels: list[list[bytes]] = []
        self.heads = EMPTY_ROOT
        self.roots: dict[int, tuple[bytes, bytes]] = {}
        self._sizes = sizes
        self._frontier = Frontier()
        self._nodes = KeptNodes()
        self._note()

    @property
    def size(self) -> int:
        return self._frontier.size

    def add(self, body: bytes, entry: Entry | None) -> None:
        """One more entry of the log; None when it could not be read, which is told of elsewhere."""
        self._frontier, nodes = self._frontier.append(leaf_hash(body))
        for node in nodes:
            if node.level == len(self.levels):
                self.levels.append([])
            self.levels[node.level].append(node.hash)
        if entry is not None:
            self.heads = put_heads(self._nodes, self.heads, {entry.stream: Head(seq=entry.seq, digest=entry.event)})
        self._note()

    def compare(self, view: View | Transaction, troubles: Troubles) -> None:
        """The nodes in the catalog are these, all of them and no others."""
        for level, hashes in enumerate(self.levels):
            name = level_name(TREE, level)
            stored = list(view.streams.read(name))
            for index, expected in enumerate(hashes):
                found = stored[index] if index < len(stored) else None
                whole = found is not None and (found.seq, found.kind) == (index + 1, "tree_node")
                if not whole or found is None or found.body != canonical(expected.hex()):
                    troubles.add(TreeDamaged.code, f"{name}@{index + 1}", "not the hash of what is below it")
            for extra in stored[len(hashes) :]:
                troubles.add(TreeDamaged.code, f"{name}@{extra.seq}", "a node that the tree has not")
        for name, text in self._nodes.texts.items():
            if view.marks.get(name) != text:
                troubles.add(HeadsDamaged.code, name, "not what the ends of the streams give")

    def _note(self) -> None:
        if self.size in self._sizes:
            self.roots[self.size] = (self._frontier.root, self.heads)
