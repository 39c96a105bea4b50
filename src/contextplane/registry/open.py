"""Opening a registry: a reader that believes nothing but what the newest checkpoint says, and what the client knew.

1  a key signed the newest checkpoint which was good then           checkpoints.py
2  the log has as many entries, and their tree its root             checkpoints.py
3  it is not older than a revocation of a key                       checkpoints.py
4  it goes on from the highest checkpoint that this client saw      trust/history.py
5  every stream that is read ends where the checkpoint says         heads.py, by the reader
"""

from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView, Transaction, View
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.authority import Keyrings
from contextplane.registry.log import Standing, check_revocations, standing
from contextplane.registry.reader import Reader
from contextplane.registry.stream_heads import Heads
from contextplane.registry.streams import LOG, TREE
from contextplane.trust.checkpoint import Checkpoint, LogRolledBack, advanced
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle import EMPTY_ROOT, StreamTree, consistency_proof

__all__ = ["OpenRegistry", "check_continuity", "open_registry"]


class OpenRegistry(Value, frozen=True):
    """A reader, and the checkpoint that it reads by; None while nothing was ever written."""

    reader: Reader
    standing: Standing | None


def open_registry(
    view: View | Transaction, keys: TrustedKeys, check: SignatureCheck, *, origin: str, seen: Checkpoint | None
) -> OpenRegistry:
    """Open the registry of a view. `seen`: the highest checkpoint that the client knew before the view was opened."""
    keyrings = Keyrings.of(view.streams, keys)
    # (1) signed, (2) and the log is that
    status = standing(view.streams, keyrings, check, origin)
    # (3) after the last revocation
    check_revocations(status, keys)
    # (4) the one that we knew
    check_continuity(view.streams, status, seen)
    # (5) by what every stream is compared
    heads = Heads(view.marks, EMPTY_ROOT if status is None else status.heads)
    return OpenRegistry(reader=Reader(view.streams, keyrings, check, heads, seen=seen), standing=status)


def check_continuity(streams: StreamsView, found: Standing | None, seen: Checkpoint | None) -> None:
    """Refuse a log that does not begin with what was seen of it. What is fetched grows with the logarithm."""
    if seen is None:
        return
    if found is None:
        raise LogRolledBack(
            f"it is empty, and {seen.size} entries were seen before", at=LOG, hint="restore the catalog from a copy"
        )
    shown = found.checkpoint
    older = seen.size < shown.size
    advanced(seen, shown, consistency_proof(StreamTree(streams, TREE), seen.size, shown.size) if older else ())
