"""Packing: a log becomes objects, its manifest an entry, its entry a row of the index."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.adapters.files.sources import FileSources
from contextplane.app.platform import Platform
from contextplane.model.execution_log import ExecutionLog, InvalidLog
from contextplane.model.ids import Digest
from contextplane.model.json_cut import Buffer
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.log_reader import read_log
from contextplane.model.manifest import Manifest, entry_of
from contextplane.model.value import Value
from contextplane.ports.objects import Batch, ObjectReader
from contextplane.record.pack import Staged, stage_log
from contextplane.store.at_hand import AtHand
from contextplane.store.follow import index_registered
from contextplane.store.known import NOTHING, Known

if TYPE_CHECKING:
    from contextplane.ports.progress import Progress
    from contextplane.store.put_back import PutBack

__all__ = ["Packed", "pack_log", "register"]


class Packed(Value, frozen=True):
    """A pack, whether it was not there before, and where in it something looks like a secret.

    `unsearched`: of what only the beginning was looked at for secrets. `put_back`: what of a pack that was here before
    had been damaged.
    """

    digest: Digest
    manifest: Manifest
    new: bool
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()
    put_back: "tuple[PutBack, ...]" = ()


def pack_log(
    platform: Platform, log: Buffer, *, root: str, parent: Digest | None = None, progress: "Progress | None" = None
) -> Packed:
    """Pack a log whose paths lie below `root`. The same log gives the same pack."""
    with _uncollected(), platform.objects.batch() as batch:
        sources = FileSources(root, apart=platform.home.path)
        # The log is let go here: of very many contents it would be the larger part of what is in memory.
        if progress is None:
            staged = stage_log(_read(log, sources), parent, batch, sources)
        else:
            staged = _stage_watched(log, parent, batch, sources, progress)
        # Before anything is visible: what a killed process leaves behind is then known, and can be collected.
        with platform.catalog.write(survives="crash") as tx:
            tx.objects.record_blobs((one.digest, one.size) for one in staged.contents)
            before = tx.packs.row(staged.digest)
        put_back = () if before is None else _to_put_back(platform, staged)
        batch.commit()
        raw = staged.raw
        sizes = {one.digest: one.size for one in staged.contents}
        at_hand = AtHand(
            platform.objects, sizes={**sizes, staged.digest: len(raw)}, contents={**staged.at_hand, staged.digest: raw}
        )
        known = Known(
            recorded=sizes.keys(),
            manifests={staged.digest: staged.manifest},
            refs={} if staged.refs is None else {staged.digest: staged.refs},
        )
        # Within the batch: until it is registered, nothing else keeps what it consists of from being collected.
        new = register(platform, staged.digest, raw, at_hand, known)
    return Packed(
        digest=staged.digest,
        manifest=staged.manifest,
        new=new,
        suspects=staged.suspects,
        unsearched=staged.unsearched,
        put_back=put_back,
    )


def _to_put_back(platform: Platform, staged: Staged) -> "tuple[PutBack, ...]":
    """Only of a pack that is known: each object is read once more."""
    from contextplane.store.put_back import not_whole

    return not_whole((staged.digest, *(one.digest for one in staged.contents)), platform.objects)


def _stage_watched(
    log: Buffer, parent: Digest | None, batch: Batch, sources: FileSources, progress: "Progress"
) -> Staged:
    """The same while somebody waits. How much will be stored is known unless the log names files."""
    from contextplane.app.watched import WatchedBatch

    progress.expect(len(log))
    read = _read(log, sources)
    if any(one.content.how == "path" for one in (*read.inputs, *read.outputs)):
        progress.expect(0)
    return stage_log(read, parent, WatchedBatch(batch, progress), sources)


def _read(log: Buffer, sources: FileSources) -> ExecutionLog:
    try:
        return _with_evidence(read_log(log))
    except (JsonRefused, InvalidLog) as error:
        from contextplane.app.log_troubles import whole_trouble

        raise whole_trouble(error, log, sources) from None


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector away: very many values are made, and none of them refers to itself."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _with_evidence(log: ExecutionLog) -> ExecutionLog:
    """A log whose handoff packs, if it names any, are looked up."""
    if all(one.content.how != "handoff" for one in log.inputs):
        return log
    from contextplane.app.evidence import looked_up

    return looked_up(log)


def register(
    platform: Platform,
    digest: Digest,
    raw: bytes,
    objects: ObjectReader | None = None,
    known: Known = NOTHING,
) -> bool:
    """Register a pack whose objects are all stored; say whether it was not registered before."""
    new = platform.entries.add(digest, entry_of(raw, digest))
    with platform.catalog.write() as tx:
        index_registered(tx, digest, platform.entries, objects or platform.objects, known)
    return new
