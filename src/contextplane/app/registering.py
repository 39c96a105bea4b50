"""Registering a pack as one part of a larger transaction: its entry, and its place in the index."""

from contextplane.app.platform import Platform
from contextplane.model.ids import Digest
from contextplane.model.manifest import entry_of
from contextplane.ports.catalog import Transaction
from contextplane.store.follow import index_registered

__all__ = ["register_within"]


def register_within(platform: Platform, tx: Transaction, digest: Digest, raw: bytes) -> bool:
    """Register a pack whose objects are all stored; say whether it was not registered before."""
    new = platform.entries.add(digest, entry_of(raw, digest))
    index_registered(tx, digest, platform.entries, platform.objects)
    return new
