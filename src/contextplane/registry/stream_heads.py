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
from binascii import a2b_base64
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Protocol, cast

from contextplane.errors import ContextPlaneError, Family
from contextplane.store.event_stream import StreamHead
from contextplane.trust.dsse import encode_base64
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

_NODE = re.compile(
    r"(?P<label>\S*)\n"
    r"(?:(?P<seq>[1-9][0-9]{0,15}) (?P<digest>[0-9a-f]{64}))?"
    r"(?P<children>(?:\n\S [A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)*)"  # the last digit of 32 bytes has two bits of 0
)
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


_Reference = str
"""The hash of a node in base64, as its parent has it."""


class _Node:
    """A node in memory. A child is a reference until it is needed.

    `reference`: its own; None if it changed since that was computed. `is_stored`: the catalog has it like this.
    """

    __slots__ = ("children", "end", "is_stored", "label", "reference")

    def __init__(self, label: str, end: StreamHead | None = None, stored: _Reference | None = None) -> None:
        self.label = label
        self.end = end
        self.children: dict[str, _Reference | _Node] = {}
        self.reference = stored
        self.is_stored = stored is not None


class StreamHeads:
    """Looks up the ends of streams under a verified root, and lists them. Each node is read once."""

    def __init__(self, nodes: HeadNodesView, root: bytes) -> None:
        self._nodes = nodes
        self._top = _top_reference(root)
        self._read: dict[_Reference, _Node] = {}

    def head(self, stream: str) -> StreamHead | None:
        """The end of a stream; None if there is no such stream."""
        rest, child = stream, self._top
        while child is not None:
            node = self._node(child, rest[:1] if child != self._top else "")
            if not rest.startswith(node.label):
                return None
            rest = rest[len(node.label) :]
            if not rest:
                return node.end
            child = cast("_Reference | None", node.children.get(rest[0]))
        return None

    def _node(self, reference: _Reference, first: str) -> _Node:
        node = self._read.get(reference)
        if node is None:
            node = self._read[reference] = _read_node(self._nodes, reference, first)
        return node

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
        # Without recursion, as below: the tree is as deep as names are long.
        waiting = [] if self._top is None else [(self._top, "", "")]
        while waiting:
            reference, first, above = waiting.pop()
            node = _read_node(self._nodes, reference, first)
            name = above + node.label
            if not (name.startswith(prefix) or prefix.startswith(name)):
                continue
            if node.end is not None and name.startswith(prefix):
                yield name, node.end
            waiting += [
                (cast("_Reference", child), character, name)
                for character, child in reversed(node.children.items())
                if len(name) >= len(prefix) or prefix[len(name)] == character
            ]


class HeadTree:
    """The tree as it is changed: reads each node once, and hashes a changed one when the root is needed.

    `root` is the hash after all changes so far; `save` writes the changed nodes and drops those that they replace.
    """

    def __init__(self, nodes: HeadNodesView, root: bytes = EMPTY_ROOT) -> None:
        self._nodes = nodes
        self._top: _Reference | _Node | None = _top_reference(root)
        self._dropped: list[_Reference] = []

    def head(self, stream: str) -> StreamHead | None:
        """The end of a stream; None if there is no such stream."""
        path, rest = self._path(stream)
        return path[-1].end if path and not rest else None

    def put(self, stream: str, head: StreamHead) -> None:
        """Set the end of a stream."""
        path, rest = self._path(stream)
        for node in path:
            self._change(node)
        above = path[-1] if path else None
        if above is not None and not rest:
            above.end = head
            return
        child = self._top if above is None else above.children.get(rest[0])
        if child is None:
            self._put_below(above, _Node(rest, head))
            return
        # The names part within the label of the child: a node for what they have in common comes above it.
        node = self._load(child, rest[:1] if above is not None else "")
        self._change(node)
        common = _common_length(node.label, rest)
        split = _Node(node.label[:common])
        self._put_below(above, split)
        node.label, rest = node.label[common:], rest[common:]
        split.children[node.label[0]] = node
        if rest:
            split.children[rest[0]] = _Node(rest, head)
        else:
            split.end = head

    def exchange(self, stream: str, old: StreamHead, new: StreamHead | None) -> bool:
        """Set the end of a stream if it is `old`; None removes the stream. Returns whether it was.

        After a removal the tree is as if the stream had never been.
        """
        path, rest = self._path(stream)
        if not path or rest or path[-1].end != old:
            return False
        for node in path:
            self._change(node)
        path[-1].end = new
        if new is None:
            self._prune(path)
        return True

    def remove(self, stream: str) -> None:
        """Remove a stream that is there, so that the tree is as if it had never been."""
        end = self.head(stream)
        if end is None or not self.exchange(stream, end, None):
            raise HeadsDamaged("the tree has no such stream", at=stream, hint="see 'ctx verify --registry'")

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        return EMPTY_ROOT if self._top is None else a2b_base64(_reference(self._top))

    def save(self, nodes: HeadNodes) -> bytes:
        """Write every changed node and drop those that were replaced; returns the root."""
        root, written = self.root, dict[_Reference, str]()
        if isinstance(self._top, _Node) and not self._top.is_stored:
            for node in _changed_nodes(self._top, lambda below: not below.is_stored):
                written[_reference(node)] = _node_text(node)
        for reference, text in written.items():
            nodes.put(_node_name(reference), text)
        for reference in self._dropped:
            if reference not in written:
                nodes.drop(_node_name(reference))
        self._top, self._dropped = _top_reference(root), []
        return root

    def _path(self, stream: str) -> tuple[list[_Node], str]:
        """The nodes whose labels the name begins with, from the top, and the rest of the name after them."""
        path: list[_Node] = []
        rest, child = stream, self._top
        while child is not None:
            if isinstance(child, _Node):
                node = child
            else:
                node = _read_node(self._nodes, child, rest[:1] if path else "")
                self._put_below(path[-1] if path else None, node)
            if not rest.startswith(node.label):
                break
            path.append(node)
            rest = rest[len(node.label) :]
            child = node.children.get(rest[0]) if rest else None
        return path, rest

    def _load(self, node: _Reference | _Node, first: str) -> _Node:
        return node if isinstance(node, _Node) else _read_node(self._nodes, node, first)

    def _put_below(self, parent: _Node | None, node: _Node) -> None:
        if parent is None:
            self._top = node
        else:
            parent.children[node.label[0]] = node

    def _change(self, node: _Node) -> None:
        """Note that a node changes: its stored text will be replaced."""
        if node.is_stored and node.reference is not None:
            self._dropped.append(node.reference)
        node.reference, node.is_stored = None, False

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
                self._change(only)
                only.label = node.label + only.label
                self._put_below(parent, only)
            return


def root_over(heads: Mapping[str, StreamHead]) -> bytes:
    """The root of the tree over these ends."""
    tree = HeadTree(MemoryHeadNodes())
    for stream, head in heads.items():
        tree.put(stream, head)
    return tree.root


def _read_node(nodes: HeadNodesView, reference: _Reference, first: str) -> _Node:
    """Read a node, and refuse one without the hash that its parent says, or of another form.

    The form is checked because a signer could have signed anything. `first`: how its label must begin.
    """
    expected = a2b_base64(reference)
    text = nodes.get(node_name(expected))
    if text is None or _hash(text) != expected:
        raise _damaged_error(expected, "missing" if text is None else "not the one that is signed")
    form = _NODE.fullmatch(text)
    if form is None or not form["label"].startswith(first):
        raise _damaged_error(expected, "no node")
    end = None if form["seq"] is None else StreamHead(seq=int(form["seq"]), digest=form["digest"])
    node = _Node(form["label"], end, reference)
    lines = form["children"].split("\n")[1:]
    node.children.update((line[0], line[2:]) for line in lines)
    keys = list(node.children)
    if len(keys) != len(lines) or keys != sorted(keys) or (end is None and len(keys) < _MIN_BRANCHES):
        raise _damaged_error(expected, "no node")
    return node


def _reference(node: _Reference | _Node) -> _Reference:
    """The reference of a node, which is computed anew if it changed."""
    if not isinstance(node, _Node):
        return node
    if node.reference is None:
        for changed in _changed_nodes(node, lambda below: below.reference is None):
            changed.reference = encode_base64(_hash(_node_text(changed)))
    return cast("_Reference", node.reference)


def _changed_nodes(top: _Node, is_changed: Callable[[_Node], bool]) -> list[_Node]:
    """A node and all changed ones below it, each before its parent.

    Nodes below an unchanged one are unchanged.
    """
    nodes = [top]
    for node in nodes:  # it grows
        nodes += [child for child in node.children.values() if isinstance(child, _Node) and is_changed(child)]
    nodes.reverse()
    return nodes


def _node_text(node: _Node) -> str:
    end = "" if node.end is None else f"{node.end.seq} {node.end.digest}"
    children = [f"{key} {_reference(child)}" for key, child in sorted(node.children.items(), key=lambda item: item[0])]
    return "\n".join([node.label, end, *children])


def _top_reference(root: bytes) -> _Reference | None:
    return None if root == EMPTY_ROOT else encode_base64(root)


def _node_name(reference: _Reference) -> str:
    return node_name(a2b_base64(reference))


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
