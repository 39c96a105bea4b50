"""Packing: a log becomes objects, its manifest an entry, its entry a row of the index."""

from contextplane.adapters.files.sources import FileSources
from contextplane.app.platform import Platform
from contextplane.model.ids import Digest
from contextplane.model.json_cut import Buffer
from contextplane.model.log_reader import read_log
from contextplane.model.manifest import Manifest, filled_in, manifest_bytes
from contextplane.model.value import Value
from contextplane.record.pack import stage_log
from contextplane.store.follow import index_entries

__all__ = ["Packed", "pack_log", "register"]


class Packed(Value, frozen=True):
    """A pack, whether it was not there before, and where in it something looks like a secret."""

    digest: Digest
    manifest: Manifest
    new: bool
    suspects: tuple[tuple[str, str], ...] = ()


def pack_log(platform: Platform, log: Buffer, *, root: str, parent: Digest | None = None) -> Packed:
    """Pack a log whose paths lie below `root`. The same log gives the same pack."""
    read = read_log(log)
    with platform.objects.batch() as batch:
        staged = stage_log(read, parent, batch, FileSources(root))
        # Before anything is visible: what a killed process leaves behind is then known, and can be collected.
        with platform.catalog.write(survives="crash") as tx:
            tx.objects.record_blobs((one.digest, one.size) for one in staged.contents)
    new = register(platform, staged.digest, manifest_bytes(staged.manifest))
    return Packed(digest=staged.digest, manifest=staged.manifest, new=new, suspects=staged.suspects)


def register(platform: Platform, digest: Digest, raw: bytes) -> bool:
    """Register a pack whose objects are all stored; say whether it was not registered before."""
    platform.entries.add(digest, filled_in(raw, digest))
    with platform.catalog.write() as tx:
        known = tx.packs.row(digest) is not None
        if not known:
            index_entries(tx, [digest], platform.entries, platform.objects)
    return not known
