"""Small objects that wait in the catalog until they are written as files.

They were committed in the same transaction as what refers to them, which costs one wait for the disk instead of two.
"""

from contextplane.model.ids import Digest
from contextplane.ports.catalog import Catalog, PendingView
from contextplane.ports.objects import Objects

__all__ = ["flush_pending", "pending_bytes"]

_BATCH = 256
"""Objects that become files together: syncing many at once is cheap."""


def pending_bytes(pending: PendingView, digest: Digest) -> bytes | None:
    """The bytes of a pending object; None when it does not wait, or is not what its name says."""
    data = pending.get(digest)
    return data if data is not None and Digest.of(data) == digest else None


def flush_pending(catalog: Catalog, objects: Objects) -> None:
    """Write all pending objects to the object store, durably, and only then remove them from the catalog.

    When it is interrupted, the next call begins again.
    """
    while True:
        with catalog.read() as view:
            # An object that is not what its name says stays where it is, and a check finds it missing.
            pending = [(digest, data) for digest, data in view.pending.some(_BATCH) if Digest.of(data) == digest]
        if not pending:
            return
        with objects.batch() as batch:
            for _, data in pending:
                batch.put(data)
            batch.commit()
            # Within the batch: none of them is collected before the catalog lets go of it.
            with catalog.write(survives="crash") as tx:
                for digest, _ in pending:
                    tx.pending.remove(digest)
