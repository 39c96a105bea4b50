"""Keeping the index in step with the packs that are registered, by us or by another program that shares the store."""

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, references
from contextplane.model.ids import Digest
from contextplane.ports.catalog import BLOB, Catalog, Recorded, Transaction
from contextplane.ports.entries import PackEntries
from contextplane.ports.objects import Objects

__all__ = ["PACKS", "follow", "in_step", "index_entries"]

PACKS = "packs/"
"""The prefix of the roots that registered packs are."""

_MARK = "packs"


def in_step(catalog: Catalog, entries: PackEntries) -> bool:
    """Whether no pack came or went since the index was last brought in step. One look at the folder's time."""
    state = entries.state()
    with catalog.read() as view:
        return state is not None and view.marks.get(_MARK) == state


def follow(catalog: Catalog, entries: PackEntries, objects: Objects) -> None:
    """Index the packs that came or went."""
    state = entries.state()
    with catalog.read() as view:
        known = {digest for _, digest in view.objects.roots(PACKS)}
    listed = set(entries.names())
    if listed == known and state is None:
        return
    with catalog.write(survives="crash") as tx:
        index_entries(tx, sorted(listed - known), objects)
        for digest in sorted(known - listed):
            tx.objects.release(PACKS + digest.hex)
        if state is not None:
            tx.marks.put(_MARK, state)


def index_entries(tx: Transaction, packs: list[Digest], objects: Objects) -> None:
    """Make each pack a root, and record what it reaches."""
    for digest in packs:
        tx.objects.keep(PACKS + digest.hex, digest)
        _trace(tx, digest, objects)


def _trace(tx: Transaction, pack: Digest, objects: Objects) -> None:
    """Record a manifest, its blobs, and its line of parents.

    A manifest that cannot be read is recorded as untraced: what it refers to is unknown, and nothing may be collected
    until it is known again.
    """
    todo = [pack]
    while todo:
        digest = todo.pop()
        before = tx.objects.recorded(digest)
        if before is not None and before.kind == EXECUTION_PACK and before.traced:
            continue
        manifest = _read(digest, objects)
        refs = references(manifest) if manifest is not None else None
        size = len(manifest) if manifest is not None else 0
        traced = refs is not None and not refs.unreadable
        tx.objects.record(Recorded(digest=digest, kind=EXECUTION_PACK, size=size, traced=traced))
        for role, target in refs.found if refs is not None else ():
            tx.objects.link(digest, role, target)
            if not objects.has(target):
                continue  # an edge to what is missing; a check tells
            if role == "parent":
                todo.append(target)
            else:
                tx.objects.record(Recorded(digest=target, kind=BLOB, size=objects.size(target), traced=True))


def _read(digest: Digest, objects: Objects) -> bytes | None:
    try:
        return objects.get(digest)
    except ContextPlaneError:
        return None
