"""The log of the registry: one entry for each event of its subjects, in order."""

from contextplane.registry.streams import CHECKPOINTS, LOG, TREE
from contextplane.trust.merkle_log import MerkleLog

__all__ = ["REGISTRY_LOG"]

REGISTRY_LOG = MerkleLog(
    entries=LOG,
    tree=TREE,
    checkpoints=CHECKPOINTS,
    restore_hint="'ctx verify --registry' checks all of it; restore the catalog from a copy",
    renew_hint=(
        "'ctx verify --registry --sign --key KEY' checks all and signs a fresh one;"
        " if that was done since, restore a copy"
    ),
)
