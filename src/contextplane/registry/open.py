"""Opening a registry for reading, by its newest checkpoint and what the client saw before.

1  the newest checkpoint is signed by a key that was valid then     log.py
2  the log has its size, and the tree over it has its root          log.py
3  it is not older than a revocation of a key                       log.py
4  it continues the highest checkpoint that this client saw         trust/checkpoint.py
5  every stream that is read ends where the checkpoint says         stream_heads.py, by the reader
"""

from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.reader import RegistryReader
from contextplane.registry.stream_heads import StreamHeads
from contextplane.registry.streams import LOG, TREE
from contextplane.trust.checkpoint import Checkpoint, LogRolledBack, advance_checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT, StreamTree, consistency_proof
from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = ["OpenRegistry", "check_continuity", "open_registry"]


class OpenRegistry(Value, frozen=True):
    """A reader, and the newest checkpoint that it reads by; None while nothing was ever written."""

    reader: RegistryReader
    newest: VerifiedCheckpoint | None


def open_registry(
    view: View | Transaction, keys: TrustedKeys, check: SignatureCheck, *, origin: str, seen: Checkpoint | None
) -> OpenRegistry:
    """Open the registry of a view.

    `seen`: the highest checkpoint that the client knew before the view was opened.
    """
    keyrings = KeyringHistory.of(view.streams, keys)
    # (1) signed, (2) and it matches the log
    newest = REGISTRY_LOG.verify_checkpoint(view.streams, keyrings, check, origin)
    # (3) not older than a revocation
    REGISTRY_LOG.check_revocations(newest, keys)
    # (4) it continues what the client saw
    check_continuity(view.streams, newest, seen)
    # (5) the reader compares every stream with these
    heads = StreamHeads(view.marks, EMPTY_ROOT if newest is None else newest.heads)
    return OpenRegistry(reader=RegistryReader(view.streams, keyrings, check, heads, seen=seen), newest=newest)


def check_continuity(streams: StreamsView, newest: VerifiedCheckpoint | None, seen: Checkpoint | None) -> None:
    """Refuse a log that does not begin with the entries that were seen. It reads O(log n) nodes."""
    if seen is None:
        return
    if newest is None:
        raise LogRolledBack(
            f"it is empty, and {seen.size} entries were seen before", at=LOG, hint="restore the catalog from a copy"
        )
    shown = newest.checkpoint
    older = seen.size < shown.size
    advance_checkpoint(
        seen, shown, consistency_proof(StreamTree(streams, TREE), seen.size, shown.size) if older else ()
    )
