"""The first format of the registry, which is only read: how it hashed the ends of streams.

A registry of the first format has checkpoints without a keyring, entries that do not name the event before, and events
that name no store. Its first writer seals it: an owner verifies all of it and signs it in the present format. Here is
what reading it needs.

    a leaf     head <seq> <digest> <stream>
    a branch   branch <16 hashes in base64, "-" where nothing is>

The path of a leaf is the hexadecimal digits of the SHA-256 of the stream's name, as short as is unique.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.registry.stream_heads import MemoryHeadNodes, StreamHeads
from contextplane.registry.streams import LOG
from contextplane.store.event_stream import StreamHead
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT

__all__ = ["MappedHeads", "StoreNotSealed", "first_format_root", "refuse_unsealed"]

_DIGITS = "0123456789abcdef"


class StoreNotSealed(ContextPlaneError):
    """A store of the first format, which an owner must seal before anything is written to its registry."""

    code: ClassVar[str] = "store_not_sealed"
    family: ClassVar[Family] = "refused"


def refuse_unsealed(keys: TrustedKeys) -> None:
    """Refuse to write to a store whose keyring was not sealed. One without a keyring has nothing to seal."""
    if keys.seq and keys.sealed is None:
        raise StoreNotSealed(
            "it has the first format, which is only read",
            at=LOG,
            hint="an owner seals it: ctx verify --registry --sign --key OWNER",
        )


class MappedHeads(StreamHeads):
    """The ends of streams as a mapping that was made from the whole log."""

    def __init__(self, heads: Mapping[str, StreamHead]) -> None:
        super().__init__(MemoryHeadNodes(), EMPTY_ROOT)
        self._heads = heads

    def head(self, stream: str) -> StreamHead | None:
        return self._heads.get(stream)

    def ends(self, prefix: str = "") -> Iterator[tuple[str, StreamHead]]:
        return ((name, head) for name, head in sorted(self._heads.items()) if name.startswith(prefix))


def first_format_root(heads: Mapping[str, StreamHead]) -> bytes:
    """The root that a checkpoint of the first format signs over the ends of these streams."""
    leaves = {
        hashlib.sha256(stream.encode()).hexdigest(): f"head {head.seq} {head.digest} {stream}"
        for stream, head in heads.items()
    }
    return _root_below(leaves, 0) if leaves else EMPTY_ROOT


def _root_below(leaves: Mapping[str, str], depth: int) -> bytes:
    if len(leaves) == 1:
        (text,) = leaves.values()
        return hashlib.sha256(text.encode()).digest()
    words = ["branch"]
    for digit in _DIGITS:
        below = {key: text for key, text in leaves.items() if key[depth] == digit}
        words.append(encode_base64(_root_below(below, depth + 1)) if below else "-")
    return hashlib.sha256(" ".join(words).encode()).digest()
