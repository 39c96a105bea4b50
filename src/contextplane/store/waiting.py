"""Small objects that wait in the catalog to become files."""

from contextplane.model.ids import Digest
from contextplane.ports.pending import PendingView

__all__ = ["waits"]


def waits(pending: PendingView, digest: Digest) -> bytes | None:
    """The bytes of an object that is no file yet. What is not what its name says is as good as not there."""
    data = pending.get(digest)
    return data if data is not None and Digest.of(data) == digest else None
