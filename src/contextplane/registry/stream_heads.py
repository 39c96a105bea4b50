"""The end of every subject's stream, in a tree whose root each checkpoint signs.

A stream by itself does not show that its last event was cut off, for example a revocation or the newest pin. So the end
of every stream, its number and digest, is a leaf of a tree over all streams, and a reader compares what it reads with
that. The tree also proves that a stream does not exist.

    a leaf     head <seq> <digest> <stream>
    a branch   branch <16 hashes in base64, "-" where nothing is>

The path of a leaf is the hexadecimal digits of the SHA-256 of the stream's name, as short as is unique. So the tree
depends on the streams and not on their order, and a look-up or a change touches O(log n) nodes. Nodes are marks, an
index: they can be rebuilt from the streams, and each is verified by its hash up to the signed root.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.registry.streams import SUBJECTS
from contextplane.store.event_stream import StreamHead, stream_head
from contextplane.trust.dsse import decode_base64, encode_base64
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = [
    "HeadNodes",
    "HeadsDamaged",
    "MemoryHeadNodes",
    "StreamCut",
    "StreamHeads",
    "heads_of",
    "node_name",
    "put_heads",
]

_BRANCH, _NONE = "branch", "-"
_LEAF = re.compile(r"head ([1-9][0-9]{0,15}) ([0-9a-f]{64}) (\S+)")
_WIDTH, _DEPTH = 16, 64


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


class MemoryHeadNodes:
    """Nodes in memory, to compare with those in a catalog."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.texts.get(name)

    def put(self, name: str, value: str) -> None:
        self.texts[name] = value


def node_name(prefix: str) -> str:
    """The mark that holds the node at a path of hexadecimal digits."""
    return f"registry/heads/{prefix}"


class StreamHeads:
    """Looks up the ends of streams under a verified root."""

    def __init__(self, marks: HeadNodesView, root: bytes) -> None:
        self._marks = marks
        self._root = root

    def head(self, stream: str) -> StreamHead | None:
        """The end of a stream; None if there is no such stream."""
        key, prefix = _key(stream), ""
        expected: bytes | None = None if self._root == EMPTY_ROOT else self._root
        while expected is not None:
            node = _read_node(self._marks, prefix, expected)
            if isinstance(node, _Leaf):
                return node.head if node.stream == stream else None
            expected = node[int(key[len(prefix)], _WIDTH)]
            prefix = key[: len(prefix) + 1]
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


def heads_of(streams: StreamsView) -> dict[str, StreamHead]:
    """The ends of all streams, read from the streams themselves."""
    names = (name for prefix in SUBJECTS for name in streams.names(prefix))
    heads = ((name, stream_head(streams, name)) for name in names)
    return {name: head for name, head in heads if head is not None}


def put_heads(nodes: HeadNodes, root: bytes, heads: Mapping[str, StreamHead]) -> bytes:
    """Set the heads of these streams in the tree with this root; return the new root."""
    top: bytes | None = None if root == EMPTY_ROOT else root
    for stream, head in heads.items():
        top = _put(nodes, "", top, _Leaf(stream=stream, head=head))
    return EMPTY_ROOT if top is None else top


class _Leaf(Value, frozen=True):
    stream: str
    head: StreamHead

    @property
    def text(self) -> str:
        return f"head {self.head.seq} {self.head.digest} {self.stream}"


_Branch = list[bytes | None]


def _put(nodes: HeadNodes, prefix: str, expected: bytes | None, leaf: _Leaf) -> bytes:
    """Put a leaf below the node with this hash; return the hash of the new node."""
    node = None if expected is None else _read_node(nodes, prefix, expected)
    if node is None or (isinstance(node, _Leaf) and node.stream == leaf.stream):
        return _write_node(nodes, prefix, leaf.text)
    if isinstance(node, _Leaf):
        other, node = node, [None] * _WIDTH
        digit = _key(other.stream)[len(prefix)]
        node[int(digit, _WIDTH)] = _write_node(nodes, prefix + digit, other.text)
    digit = _key(leaf.stream)[len(prefix)]
    place = int(digit, _WIDTH)
    node[place] = _put(nodes, prefix + digit, node[place], leaf)
    return _write_node(nodes, prefix, _branch_text(node))


def _write_node(nodes: HeadNodes, prefix: str, text: str) -> bytes:
    nodes.put(node_name(prefix), text)
    return _hash(text)


def _read_node(marks: HeadNodesView, prefix: str, expected: bytes) -> "_Leaf | _Branch":
    """Read a node, and refuse one without the hash that its parent says, or of another form.

    The form is checked because a signer could have signed anything.
    """
    text = marks.get(node_name(prefix))
    if text is None or _hash(text) != expected:
        raise _damaged_error(prefix, "missing" if text is None else "not the one that is signed")
    leaf = _LEAF.fullmatch(text)
    if leaf is not None:
        return _Leaf(stream=leaf[3], head=StreamHead(seq=int(leaf[1]), digest=leaf[2]))
    kind, *words = text.split(" ")
    if kind != _BRANCH or len(words) != _WIDTH or len(prefix) >= _DEPTH:
        raise _damaged_error(prefix, "no node")
    return [None if word == _NONE else decode_base64(word, at=node_name(prefix)) for word in words]


def _damaged_error(prefix: str, what: str) -> HeadsDamaged:
    return HeadsDamaged(
        f"node {prefix or 'at the top'} is {what}",
        at=node_name(prefix),
        hint="'ctx fsck --rebuild' makes it again; if that does not help, events were changed",
    )


def _branch_text(children: Iterable[bytes | None]) -> str:
    return " ".join([_BRANCH, *(_NONE if child is None else encode_base64(child) for child in children)])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _key(stream: str) -> str:
    return hashlib.sha256(stream.encode()).hexdigest()


def _describe_head(head: StreamHead | None) -> str:
    return "has no event" if head is None else f"ends with event {head.seq}, {head.digest[:16]}"
