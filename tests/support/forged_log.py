"""What whoever can write the catalog and has a key can put under a checkpoint, allowed or not."""

from collections.abc import Mapping, Sequence

from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamsView, Transaction
from contextplane.ports.keys import Signer
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.stream_heads import HeadNodes, HeadTree
from contextplane.registry.streams import SUBJECTS, is_subject
from contextplane.store.event_stream import StreamHead, stream_head
from contextplane.trust.checkpoint import KeyringPosition
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import LogEntry, VerifiedCheckpoint

__all__ = ["forge_log", "heads_of", "put_heads"]


def heads_of(streams: StreamsView) -> dict[str, StreamHead]:
    """The ends of all streams that the log is about, read from the streams themselves."""
    names = [KEYRING, *(name for prefix in SUBJECTS for name in streams.names(prefix) if is_subject(name))]
    heads = ((name, stream_head(streams, name)) for name in names)
    return {name: head for name, head in heads if head is not None}


def put_heads(nodes: HeadNodes, root: bytes, heads: Mapping[str, StreamHead]) -> bytes:
    """Set the ends of these streams in the tree with this root; return the new root."""
    tree = HeadTree(nodes, root)
    for stream, head in heads.items():
        tree.put(stream, head)
    return tree.save(nodes)


def forge_log(  # noqa: PLR0913  what a checkpoint says
    tx: Transaction,
    entries: Sequence[LogEntry],
    *,
    signer: Signer,
    at: Timestamp,
    origin: str,
    heads: Mapping[str, StreamHead] | None = None,
    root: bytes = EMPTY_ROOT,
) -> VerifiedCheckpoint:
    """Append entries as they are, and sign the ends of the streams as they are now, or as `heads` says.

    `root`: that of the tree in which these ends are set; by default there are no others.
    """
    keyring = stream_head(tx.streams, KEYRING)
    assert keyring is not None
    return REGISTRY_LOG.append_entries(
        tx.streams,
        list(entries),
        heads=put_heads(tx.marks, root, heads_of(tx.streams) if heads is None else heads),
        keyring=KeyringPosition(seq=keyring.seq, head=keyring.digest),
        signer=signer,
        at=at,
        origin=origin,
    )
