"""Recording what an execution pack reaches, so that it is kept; and trying again where that was not possible before."""

from collections.abc import Collection, Iterator

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, MANIFEST_MOST, MENTION, references
from contextplane.model.ids import Digest
from contextplane.ports.catalog import Transaction
from contextplane.ports.object_index import Recorded
from contextplane.ports.objects import ObjectReader
from contextplane.store.known import NOTHING, Known

__all__ = ["read_manifest_bytes", "trace"]


def trace(tx: Transaction, pack: Digest, objects: ObjectReader, known: Known = NOTHING) -> None:
    """Record a manifest, its contents (those that are not recorded already), and its line of parents.

    A manifest that cannot be read, or not wholly understood, is recorded as untraced: what it refers to is unknown, and
    nothing may be collected while it is.
    """
    todo = [pack]
    while todo:
        digest = todo.pop()
        before = tx.objects.recorded(digest)
        if before is None or before.kind != EXECUTION_PACK or not before.traced:
            todo += _traced(tx, digest, objects, known)


def read_manifest_bytes(digest: Digest, objects: ObjectReader) -> bytes | None:
    """The bytes of something that may be a manifest; None when they cannot be read, or are too many for one."""
    try:
        return objects.get(digest) if objects.size(digest) <= MANIFEST_MOST else None
    except ContextPlaneError:
        return None


def _traced(tx: Transaction, digest: Digest, objects: ObjectReader, known: Known) -> list[Digest]:
    """Record one manifest and what it names; return its parent, which is a manifest itself."""
    manifest = read_manifest_bytes(digest, objects)
    refs = known.refs.get(digest) or (references(manifest) if manifest is not None else None)
    whole = refs is not None and not refs.unreadable
    size = len(manifest) if manifest is not None else 0
    tx.objects.record(Recorded(digest=digest, kind=EXECUTION_PACK, size=size, traced=whole))
    if refs is None:
        return []
    named = [*refs.found, *((MENTION, one) for one in refs.mentions if objects.has(one))]
    tx.objects.link_all(digest, named)
    contents = [target for role, target in named if role != "parent" and target not in known.recorded]
    tx.objects.record_blobs(_present(contents, objects))
    return [target for role, target in named if role == "parent"]


def _present(digests: Collection[Digest], objects: ObjectReader) -> Iterator[tuple[Digest, int]]:
    """Those that are there, with their sizes; a check tells of the others."""
    for digest in digests:
        try:
            yield digest, objects.size(digest)
        except ContextPlaneError:
            continue
