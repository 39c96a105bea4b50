"""Where every subject's stream ends, under one root that each checkpoint signs.

A stream by itself cannot tell that its last event was cut off: a revocation, or the newest pin. So the end of every
stream, its number and digest, is a leaf of a tree over all of them; a reader compares what it reads with that. The tree
also shows that a stream does not exist at all.

    a leaf     head <seq> <digest> <stream>
    a branch   branch <16 hashes in base64, "-" where nothing is>

A stream lies where the hexadecimal digits of the SHA-256 of its name lead, as near to the top as it is alone. So the
tree depends on the streams and not on their order, and one look or change touches a number of nodes that grows with the
logarithm. Nodes are marks, an index: they are made again from the streams, and nothing is believed of them that the
signed root does not say.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.registry.streams import SUBJECTS
from contextplane.trust.dsse import decoded, encoded
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = [
    "Head",
    "Heads",
    "HeadsDamaged",
    "KeptNodes",
    "Nodes",
    "StreamCut",
    "head_of",
    "heads_of",
    "node_name",
    "put_heads",
]

_BRANCH, _NONE = "branch", "-"
_LEAF = re.compile(r"head ([1-9][0-9]{0,15}) ([0-9a-f]{64}) (\S+)")
_WIDTH, _DEPTH = 16, 64


class StreamCut(ContextPlaneError):
    """A stream does not end where the newest checkpoint says: events were cut off its end, or put there unsigned."""

    code: ClassVar[str] = "registry_stream_cut"
    family: ClassVar[Family] = "untrusted"


class HeadsDamaged(ContextPlaneError):
    """The tree over the ends of the streams is not the one whose root was signed."""

    code: ClassVar[str] = "registry_heads_damaged"
    family: ClassVar[Family] = "untrusted"


class Head(Value, frozen=True):
    """The end of a stream: the number of its last event, and the SHA-256 of that event's body."""

    seq: int
    digest: str


class NodesView(Protocol):
    """Where nodes are kept, by name: the marks of a catalog, or a memory."""

    def get(self, name: str) -> str | None: ...


class Nodes(NodesView, Protocol):
    """Writing them."""

    def put(self, name: str, value: str) -> None: ...


class KeptNodes:
    """Nodes in memory, to be compared with those in a catalog."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.texts.get(name)

    def put(self, name: str, value: str) -> None:
        self.texts[name] = value


def node_name(prefix: str) -> str:
    """The mark that holds the node to which these hexadecimal digits lead."""
    return f"registry/heads/{prefix}"


class Heads:
    """The ends of all streams, by a root that is believed."""

    def __init__(self, marks: NodesView, root: bytes) -> None:
        self._marks = marks
        self._root = root

    def head(self, stream: str) -> Head | None:
        """Where a stream ends; None when there is no such stream."""
        key, prefix = _key(stream), ""
        expected: bytes | None = None if self._root == EMPTY_ROOT else self._root
        while expected is not None:
            node = _node(self._marks, prefix, expected)
            if isinstance(node, _Leaf):
                return node.head if node.stream == stream else None
            expected = node[int(key[len(prefix)], _WIDTH)]
            prefix = key[: len(prefix) + 1]
        return None

    def check(self, stream: str, found: Head | None) -> None:
        """Refuse a stream that ends elsewhere."""
        signed = self.head(stream)
        if found != signed:
            raise StreamCut(
                f"it {_told(found)}, and what is signed {_told(signed)}",
                at=stream,
                hint="somebody changed the catalog; 'ctx verify --registry' tells more",
            )


def head_of(streams: StreamsView, stream: str) -> Head | None:
    """Where a stream ends, by itself."""
    seq = streams.head(stream)
    last = next(iter(streams.read(stream, after=seq - 1)), None) if seq else None
    return None if last is None else Head(seq=last.seq, digest=Digest.of(last.body).hex)


def heads_of(streams: StreamsView) -> dict[str, Head]:
    """Where all of them end, by themselves."""
    names = (name for prefix in SUBJECTS for name in streams.names(prefix))
    found = ((name, head_of(streams, name)) for name in names)
    return {name: head for name, head in found if head is not None}


def put_heads(nodes: Nodes, root: bytes, heads: Mapping[str, Head]) -> bytes:
    """Say of these streams where they end now, in the tree that had this root; and return its root then."""
    top: bytes | None = None if root == EMPTY_ROOT else root
    for stream, head in heads.items():
        top = _put(nodes, "", top, _Leaf(stream=stream, head=head))
    return EMPTY_ROOT if top is None else top


class _Leaf(Value, frozen=True):
    stream: str
    head: Head

    @property
    def text(self) -> str:
        return f"head {self.head.seq} {self.head.digest} {self.stream}"


_Branch = list[bytes | None]


def _put(nodes: Nodes, prefix: str, expected: bytes | None, leaf: _Leaf) -> bytes:
    """Put a leaf below a place where a node with this hash is, and return the hash of what is there then."""
    node = None if expected is None else _node(nodes, prefix, expected)
    if node is None or (isinstance(node, _Leaf) and node.stream == leaf.stream):
        return _written(nodes, prefix, leaf.text)
    if isinstance(node, _Leaf):
        other, node = node, [None] * _WIDTH
        digit = _key(other.stream)[len(prefix)]
        node[int(digit, _WIDTH)] = _written(nodes, prefix + digit, other.text)
    digit = _key(leaf.stream)[len(prefix)]
    place = int(digit, _WIDTH)
    node[place] = _put(nodes, prefix + digit, node[place], leaf)
    return _written(nodes, prefix, _branch_text(node))


def _written(nodes: Nodes, prefix: str, text: str) -> bytes:
    nodes.put(node_name(prefix), text)
    return _hash(text)


def _node(marks: NodesView, prefix: str, expected: bytes) -> "_Leaf | _Branch":
    """A node that has the hash which the one above it says, and the form of one: whoever signs may write anything."""
    text = marks.get(node_name(prefix))
    if text is None or _hash(text) != expected:
        raise _damaged(prefix, "missing" if text is None else "not the one that is signed")
    leaf = _LEAF.fullmatch(text)
    if leaf is not None:
        return _Leaf(stream=leaf[3], head=Head(seq=int(leaf[1]), digest=leaf[2]))
    kind, *words = text.split(" ")
    if kind != _BRANCH or len(words) != _WIDTH or len(prefix) >= _DEPTH:
        raise _damaged(prefix, "no node")
    return [None if word == _NONE else decoded(word, at=node_name(prefix)) for word in words]


def _damaged(prefix: str, what: str) -> HeadsDamaged:
    return HeadsDamaged(
        f"node {prefix or 'at the top'} is {what}",
        at=node_name(prefix),
        hint="'ctx fsck --rebuild' makes it again; if that does not help, events were changed",
    )


def _branch_text(children: Iterable[bytes | None]) -> str:
    return " ".join([_BRANCH, *(_NONE if child is None else encoded(child) for child in children)])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _key(stream: str) -> str:
    return hashlib.sha256(stream.encode()).hexdigest()


def _told(head: Head | None) -> str:
    return "has no event" if head is None else f"ends with event {head.seq}, {head.digest[:16]}"
