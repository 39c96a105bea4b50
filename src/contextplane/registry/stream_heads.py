"""The end of every stream, in a tree whose root each checkpoint signs.

A stream by itself does not show that its last event was cut off, for example a revocation or the newest pin. So the end
of every stream, its number and digest, is in a tree over all streams, and a reader compares what it reads with that.
The tree also proves that a stream does not exist, and lists all streams whose names begin alike: all versions of a
pack, all pins of an environment. What it lists is complete.

It is a radix tree over the names of streams, in which every node is stored under its hash:

    <label>                 the characters that the names below have in common, after those of the nodes above
    <seq> <digest>          the end of the stream whose name ends here; an empty line if none does
    <c> <hash in base64>    one line for each child, whose label begins with c, in order

The tree depends on the streams and not on the order in which they were written. So a client needs no old nodes to prove
that nothing vanished: it takes the ends as they are now, undoes the entries of the log since it last looked, and must
arrive at the root that it saw then. Nodes are an index: they can be made again from the log.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Protocol, cast

from contextplane.errors import ContextPlaneError, Family
from contextplane.store.event_stream import StreamHead
from contextplane.trust.dsse import Base64Refused, decode_base64, encode_base64
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = [
    "HEAD_NODES",
    "HeadNodes",
    "HeadNodesView",
    "HeadTree",
    "HeadsDamaged",
    "MemoryHeadNodes",
    "StreamCut",
    "StreamHeads",
    "node_name",
    "root_over",
]

HEAD_NODES = "registry/heads/"
"""The prefix of the marks that hold nodes."""

_END = re.compile(r"([1-9][0-9]{0,15}) ([0-9a-f]{64})")
_CHILD = re.compile(r"(\S) ([A-Za-z0-9+/]{43}=)")
_MIN_BRANCHES = 2  # a node without an end is where names part


class StreamCut(ContextPlaneError):
    """A stream does not end where the newest checkpoint says.

    Events were cut off its end, or put there unsigned.
    """

    code: ClassVar[str] = "registry_stream_cut"
    family: ClassVar[Family] = "untrusted"


class HeadsDamaged(ContextPlaneError):
    """The tree over the ends of the streams is not the one whose root was signed."""

    code: ClassVar[str] = "registry_heads_damaged"
    family: ClassVar[Family] = "untrusted"


class HeadNodesView(Protocol):
    """Reads nodes by name: the marks of a catalog, or a dictionary."""

    def get(self, name: str) -> str | None: ...


class HeadNodes(HeadNodesView, Protocol):
    """Reads and writes nodes by name."""

    def put(self, name: str, value: str) -> None: ...

    def drop(self, prefix: str) -> None: ...


class MemoryHeadNodes:
    """Nodes in memory, to compare with those in a catalog."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.texts.get(name)

    def put(self, name: str, value: str) -> None:
        self.texts[name] = value

    def drop(self, prefix: str) -> None:
        self.texts.pop(prefix, None)


def node_name(node_hash: bytes) -> str:
    """The mark that holds the node with a hash."""
    return HEAD_NODES + node_hash.hex()


class _Node:
    """A node in memory. A child is a hash until it is needed."""

    __slots__ = ("children", "end", "label")

    def __init__(self, label: str, end: StreamHead | None = None) -> None:
        self.label = label
        self.end = end
        self.children: dict[str, bytes | _Node] = {}


class StreamHeads:
    """Looks up the ends of streams under a verified root, and lists them."""

    def __init__(self, nodes: HeadNodesView, root: bytes) -> None:
        self._nodes = nodes
        self._root = root

    def head(self, stream: str) -> StreamHead | None:
        """The end of a stream; None if there is no such stream."""
        rest, first = stream, ""
        expected: bytes | None = None if self._root == EMPTY_ROOT else self._root
        while expected is not None:
            node = _read_node(self._nodes, expected, first)
            if not rest.startswith(node.label):
                return None
            rest = rest[len(node.label) :]
            if not rest:
                return node.end
            first = rest[0]
            child = node.children.get(first)
            expected = child if isinstance(child, bytes) else None
        return None

    def check(self, stream: str, actual: StreamHead | None) -> None:
        """Refuse a stream that ends elsewhere than the signed tree says."""
        signed = self.head(stream)
        if actual != signed:
            raise StreamCut(
                f"it {_describe_head(actual)}, and what is signed {_describe_head(signed)}",
                at=stream,
                hint="the catalog was changed; see 'ctx verify --registry'",
            )

    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all streams that begin with `prefix`, in code-point order. None is left out."""
        for name, _ in self.ends(prefix):
            yield name

    def ends(self, prefix: str = "") -> Iterator[tuple[str, StreamHead]]:
        """The name and the end of every stream whose name begins with `prefix`."""
        if self._root != EMPTY_ROOT:
            yield from self._ends_below(_read_node(self._nodes, self._root, ""), "", prefix)

    def _ends_below(self, node: _Node, above: str, prefix: str) -> Iterator[tuple[str, StreamHead]]:
        name = above + node.label
        if not (name.startswith(prefix) or prefix.startswith(name)):
            return
        if node.end is not None and name.startswith(prefix):
            yield name, node.end
        for character, child in node.children.items():
            if len(name) >= len(prefix) or prefix[len(name)] == character:
                yield from self._ends_below(_read_node(self._nodes, _child_hash(child), character), name, prefix)


class HeadTree:
    """The tree as it is changed: reads the nodes that a change touches, and hashes each of them once.

    `root` is the hash after all changes so far; `save` writes the changed nodes and drops those that they replace.
    """

    def __init__(self, nodes: HeadNodesView, root: bytes = EMPTY_ROOT) -> None:
        self._nodes = nodes
        self._top: bytes | _Node | None = None if root == EMPTY_ROOT else root
        self._dropped: list[bytes] = []

    def put(self, stream: str, head: StreamHead) -> None:
        """Set the end of a stream."""
        if self._top is None:
            self._top = _Node(stream, head)
            return
        self._top = node = self._load(self._top, "")
        parent: _Node | None = None
        rest = stream
        while True:
            common = _common_length(node.label, rest)
            if common < len(node.label):
                # The names part within the label: a node for what they have in common comes above it.
                split = _Node(node.label[:common])
                node.label = node.label[common:]
                split.children[node.label[0]] = node
                self._replace(parent, split)
                node = split
            rest = rest[common:]
            if not rest:
                node.end = head
                return
            child = node.children.get(rest[0])
            if child is None:
                node.children[rest[0]] = _Node(rest, head)
                return
            parent, node.children[rest[0]] = node, self._load(child, rest[0])
            node = cast("_Node", node.children[rest[0]])

    def remove(self, stream: str) -> None:
        """Remove a stream that is there, so that the tree is as if it had never been."""
        path: list[_Node] = []
        if self._top is not None:
            self._top = node = self._load(self._top, "")
            rest = stream
            while rest.startswith(node.label):
                path.append(node)
                rest = rest[len(node.label) :]
                child = node.children.get(rest[:1]) if rest else None
                if child is None:
                    break
                node.children[rest[0]] = node = self._load(child, rest[0])
            if path and not rest and path[-1].end is not None:
                path[-1].end = None
                self._prune(path)
                return
        raise HeadsDamaged("the tree has no such stream", at=stream, hint="see 'ctx verify --registry'")

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        return EMPTY_ROOT if self._top is None else self._hash(self._top, {})

    def save(self, nodes: HeadNodes) -> bytes:
        """Write every changed node and drop those that were replaced; returns the root."""
        written: dict[bytes, str] = {}
        root = EMPTY_ROOT if self._top is None else self._hash(self._top, written)
        for node_hash, text in written.items():
            nodes.put(node_name(node_hash), text)
        for node_hash in self._dropped:
            if node_hash not in written:
                nodes.drop(node_name(node_hash))
        self._top, self._dropped = (None if root == EMPTY_ROOT else root), []
        return root

    def _load(self, node: bytes | _Node, first: str) -> _Node:
        """Read a node that will change: its stored text is replaced."""
        if isinstance(node, bytes):
            self._dropped.append(node)
            return _read_node(self._nodes, node, first)
        return node

    def _replace(self, parent: _Node | None, node: _Node) -> None:
        if parent is None:
            self._top = node
        else:
            parent.children[node.label[0]] = node

    def _prune(self, path: list[_Node]) -> None:
        """Remove a node without end and children; merge one that has a single child with it."""
        while path:
            node = path.pop()
            parent = path[-1] if path else None
            if node.end is None and not node.children:
                if parent is None:
                    self._top = None
                    return
                del parent.children[node.label[0]]
                continue
            if node.end is None and len(node.children) == 1:
                ((character, child),) = node.children.items()
                only = self._load(child, character)
                only.label = node.label + only.label
                self._replace(parent, only)
            return

    def _hash(self, node: bytes | _Node, written: dict[bytes, str]) -> bytes:
        if isinstance(node, bytes):
            return node
        text = _node_text(node, [(key, self._hash(child, written)) for key, child in sorted(node.children.items())])
        node_hash = _hash(text)
        written[node_hash] = text
        return node_hash


def root_over(heads: Mapping[str, StreamHead]) -> bytes:
    """The root of the tree over these ends."""
    tree = HeadTree(MemoryHeadNodes())
    for stream, head in heads.items():
        tree.put(stream, head)
    return tree.root


def _read_node(nodes: HeadNodesView, expected: bytes, first: str) -> _Node:
    """Read a node, and refuse one without the hash that its parent says, or of another form.

    The form is checked because a signer could have signed anything. `first`: how its label must begin.
    """
    text = nodes.get(node_name(expected))
    if text is None or _hash(text) != expected:
        raise _damaged_error(expected, "missing" if text is None else "not the one that is signed")
    label, _, others = text.partition("\n")
    end_line, *lines = others.split("\n")
    end = _END.fullmatch(end_line)
    children = [_CHILD.fullmatch(line) for line in lines]
    keys = [child[1] for child in children if child is not None]
    if (
        (end is None and (end_line or len(keys) < _MIN_BRANCHES))
        or len(keys) != len(lines)
        or keys != sorted(set(keys))
        or any(character.isspace() for character in label)
        or not label.startswith(first)
    ):
        raise _damaged_error(expected, "no node")
    node = _Node(label, None if end is None else StreamHead(seq=int(end[1]), digest=end[2]))
    for child in children:
        if child is not None:
            node.children[child[1]] = _decode_hash(child[2], expected)
    return node


def _decode_hash(text: str, parent: bytes) -> bytes:
    try:
        return decode_base64(text, at=node_name(parent))
    except Base64Refused as error:
        raise _damaged_error(parent, "no node") from error


def _child_hash(child: bytes | _Node) -> bytes:
    return cast("bytes", child)  # a node that was just read has hashes


def _node_text(node: _Node, children: Iterable[tuple[str, bytes]]) -> str:
    end = "" if node.end is None else f"{node.end.seq} {node.end.digest}"
    return "\n".join([node.label, end, *(f"{key} {encode_base64(child)}" for key, child in children)])


def _damaged_error(node_hash: bytes, what: str) -> HeadsDamaged:
    return HeadsDamaged(
        f"a node is {what}",
        at=node_name(node_hash),
        hint="'ctx fsck --rebuild' makes it again; if that does not help, events were changed",
    )


def _common_length(left: str, right: str) -> int:
    length = min(len(left), len(right))
    return next((index for index in range(length) if left[index] != right[index]), length)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _describe_head(head: StreamHead | None) -> str:
    return "has no event" if head is None else f"ends with event {head.seq}, {head.digest[:16]}"
