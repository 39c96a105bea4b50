"""Keeping the index in step with the packs that are registered, by us or by another program that shares the store.

It only ever adds. An entry that is gone was removed by nobody who tells: a check reports it, a rebuild accepts it.
"""

from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, CatalogReadOnly, Transaction
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import ObjectReader, Objects, StorageFull
from contextplane.store.describe import Texts, described
from contextplane.store.in_step import MARK, PACKS
from contextplane.store.known import NOTHING, Known
from contextplane.store.searched import LEFT_OUT, unread
from contextplane.store.trace import read_manifest_bytes, trace

__all__ = ["follow", "index_entries", "index_registered"]


def follow(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> None:
    """Index the packs that came."""
    state = entries.state()
    listed = set(entries.names())
    with catalog.read() as view:
        known = set(view.packs.digests())
        marked = view.marks.get(MARK)
    if listed <= known and state in {None, marked}:
        return
    try:
        with catalog.write(survives="crash") as tx:
            index_entries(tx, sorted(listed - known), entries, objects)
            if state is not None:
                tx.marks.put(MARK, state)
    except (CatalogReadOnly, StorageFull):
        if not listed <= known:
            raise  # the answer would be a wrong one; without the mark we only look again next time


def index_registered(
    tx: Transaction, pack: Digest, entries: ExecutionEntries, objects: ObjectReader, known: Known = NOTHING
) -> None:
    """Index a pack whose objects are all stored, unless all of it is indexed.

    When its manifest or one of its texts could not be read then, it is indexed anew.
    """
    row = tx.packs.row(pack)
    if row is not None and not row.problem and next(tx.marks.names(unread(pack)), None) is None:
        return
    if row is not None:
        tx.marks.drop(unread(pack))
    index_entries(tx, [pack], entries, objects, known)


def index_entries(
    tx: Transaction,
    packs: list[Digest],
    entries: ExecutionEntries,
    objects: ObjectReader,
    known: Known = NOTHING,
) -> None:
    """Make each pack a root, record what it reaches, and put it into the list and the text index."""
    for digest in packs:
        tx.objects.keep(PACKS + digest.hex, digest)
        trace(tx, digest, objects, known)
        manifest = known.manifests.get(digest) or read_manifest_bytes(digest, objects)
        row, read = described(digest, manifest, Timestamp.of(entries.added_at(digest)))
        tx.packs.add(row)
        if read is not None:
            texts = Texts(read, objects)
            tx.texts.add(digest, texts)
            if texts.left_out:
                tx.marks.put(LEFT_OUT, "yes")
            for content in texts.unread:
                tx.marks.put(unread(digest) + content.hex, "yes")
