"""Opening a registry for reading, by its newest checkpoint and what the client saw before.

1  the newest checkpoint is signed by a key that could sign the log then    trust/merkle_log.py
2  the log has its size, and the tree over it has its root                  trust/merkle_log.py
3  it was made under the newest keyring                                     trust/merkle_log.py
4  it continues the highest checkpoint that this client saw                 continuity.py
5  every stream that is read ends where the checkpoint says                 stream_heads.py, by the reader
"""

from typing import Protocol

from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.continuity import check_continuity, check_log
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.reader import RegistryReader
from contextplane.registry.stream_heads import HeadNodesView
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = ["OpenRegistry", "RegistryView", "open_registry"]


class RegistryView(Protocol):
    """What reading a registry takes of a catalog: its streams and its marks."""

    @property
    def streams(self) -> StreamsView: ...

    @property
    def marks(self) -> HeadNodesView: ...


class OpenRegistry(Value, frozen=True):
    """A reader, and the newest checkpoint that it reads by; None while nothing was ever written.

    `voids`: the number of void entries in the log. `missing`: the error for an event that the log names and that is not
    there; a client remembers nothing and acts on nothing before that is mended.
    """

    reader: RegistryReader
    newest: VerifiedCheckpoint | None
    voids: int = 0
    missing: ContextPlaneError | None = None


def open_registry(  # noqa: PLR0913  what a client knows
    view: RegistryView,
    keys: TrustedKeys,
    check: SignatureCheck,
    *,
    origin: str,
    seen: Checkpoint | None,
    root: Checkpoint | None = None,
    voids: int | None = None,
) -> OpenRegistry:
    """Open the registry of a view.

    `seen`: the highest checkpoint that the client knew before the view was opened. `voids`: the number of void entries
    up to there, if it knew that. `root`: one that its user trusts, beside what the client saw.
    """
    keyrings = KeyringHistory.of(view.streams, keys)
    # (1) signed, (2) and it matches the log
    newest = REGISTRY_LOG.verify_checkpoint(view.streams, keyrings, check, origin)
    # (3) under the newest keyring
    REGISTRY_LOG.check_keyring(newest, keys)
    # (4) it continues what the client saw, (5) and the reader compares every stream with these
    if root is not None and seen is not None:
        check_log(view.streams, newest, root)
    ends = check_continuity(view.streams, view.marks, newest, seen or root, None if seen is None else voids)
    log = None if newest is None else newest.checkpoint
    reader = RegistryReader(view.streams, keyrings, check, ends.heads, log=log, has_voids=ends.voids > 0)
    return OpenRegistry(reader=reader, newest=newest, voids=ends.voids, missing=ends.missing)
