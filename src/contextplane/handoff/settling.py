"""Small objects that wait in the catalog become files, many at a time. Whoever is interrupted begins again."""

from contextplane.model.ids import Digest
from contextplane.ports.catalog import Catalog
from contextplane.ports.objects import Objects

__all__ = ["AT_ONCE", "settle"]

AT_ONCE = 256
"""So many wait at most for whoever writes them: they take room in the catalog, and syncing many at once is cheap."""


def settle(catalog: Catalog, objects: Objects) -> None:
    """Put all that waits into the object store, durably, and only then take it out of the catalog."""
    while True:
        with catalog.read() as view:
            # What is not what its name says stays where it is, and is found missing by a check.
            waiting = [(digest, data) for digest, data in view.pending.some(AT_ONCE) if Digest.of(data) == digest]
        if not waiting:
            return
        with objects.batch() as batch:
            for _, data in waiting:
                batch.put(data)
            batch.commit()
            # Within the batch: none of them is collected before the catalog lets go of it.
            with catalog.write(survives="crash") as tx:
                for digest, _ in waiting:
                    tx.pending.remove(digest)
