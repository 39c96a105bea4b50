"""Packing: a log becomes objects, its manifest an entry, its entry a row of the index.

Everything that is wrong with a log that cannot be packed, told together: its JSON, its form and its contents.

Nobody comes here with a log that is packed. What was found to be wrong first decides what kind of error it is.

Registering a pack as one part of a larger transaction: its entry, and its place in the index.

Work that tells somebody who waits how far it has come, piece by piece, and is otherwise the same.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.adapters.files.workspace import FileSources
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Stored
from contextplane.model.execution.log import ExecutionLog, InvalidLog, read_log, read_so_far
from contextplane.model.execution.manifest import Manifest, entry_of
from contextplane.model.ids import Digest
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import Buffer
from contextplane.model.problems import Problem, elsewhere, told_with
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.objects import Batch, ObjectReader
from contextplane.ports.world import Progress
from contextplane.record.pack_log import Staged, content_problems, stage_log
from contextplane.store.index import NOTHING, AtHand, Known, index_registered

if TYPE_CHECKING:
    from contextplane.store.damage import PutBack

__all__ = ["Packed", "WatchedBatch", "pack_log", "register", "register_within", "watched", "whole_trouble"]


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
            tx.objects.record_blobs((content.digest, content.size) for content in staged.contents)
            before = tx.packs.row(staged.digest)
        put_back = () if before is None else _to_put_back(platform, staged)
        batch.commit()
        raw = staged.raw
        sizes = {content.digest: content.size for content in staged.contents}
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
    from contextplane.store.damage import not_whole

    return not_whole((staged.digest, *(content.digest for content in staged.contents)), platform.objects)


def _stage_watched(
    log: Buffer, parent: Digest | None, batch: Batch, sources: FileSources, progress: "Progress"
) -> Staged:
    """The same while somebody waits. How much will be stored is known unless the log names files."""
    progress.expect(len(log))
    read = _read(log, sources)
    if any(output.content.how == "path" for output in (*read.inputs, *read.outputs)):
        progress.expect(0)
    return stage_log(read, parent, WatchedBatch(batch, progress), sources)


def _read(log: Buffer, sources: FileSources) -> ExecutionLog:
    try:
        return _with_evidence(read_log(log))
    except (JsonRefused, InvalidLog) as error:
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
    if all(log_file.content.how != "handoff" for log_file in log.inputs):
        return log
    from contextplane.app.execution.evidence import looked_up

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


def whole_trouble(error: JsonRefused | InvalidLog, data: Buffer, sources: FileSources) -> JsonRefused | InvalidLog:
    """The same error with whatever else is wrong with the log, as far as it can be read.

    Of a place that is named already, and of what is below it, nothing more is said: what stands there is not known.
    """
    read = read_so_far(data)
    if read is None:
        return error
    log, form = read
    problems = [*form, *_evidence_problems(log), *content_problems(log.contents(), sources)]
    if isinstance(error, JsonRefused):
        return told_with(error, problems)
    return InvalidLog((*error.problems, *elsewhere(problems, [problem.at for problem in error.problems])))


def _evidence_problems(log: ExecutionLog) -> tuple[Problem, ...]:
    if all(log_file.content.how != "handoff" for log_file in log.inputs):
        return ()
    from contextplane.app.execution.evidence import looked_up

    try:
        looked_up(log)
    except InvalidLog as error:
        return error.problems
    except ContextPlaneError:
        pass  # where there are no handoff packs at all, whoever mends the rest is told
    return ()


def register_within(platform: Platform, tx: Transaction, digest: Digest, raw: bytes) -> bool:
    """Register a pack whose objects are all stored; say whether it was not registered before."""
    new = platform.entries.add(digest, entry_of(raw, digest))
    index_registered(tx, digest, platform.entries, platform.objects)
    return new


def watched(chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """The chunks of one object."""
    for chunk in chunks:
        yield chunk
        progress.step(len(chunk), 0)
    progress.step(0, 1)


class WatchedBatch:
    """A batch of objects."""

    def __init__(self, batch: Batch, progress: Progress) -> None:
        self._batch = batch
        self._progress = progress

    def put(self, data: bytes) -> Digest:
        digest = self._batch.put(data)
        self._progress.step(len(data), 1)
        return digest

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        return self._batch.put_stream(watched(chunks, self._progress))

    def put_path(self, path: str) -> Stored:
        stored = self._batch.put_path(path)
        self._progress.step(stored.size, 1)
        return stored

    def commit(self) -> None:
        self._batch.commit()
