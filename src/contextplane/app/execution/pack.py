"""Packs a log: stores its contents and its manifest as objects, and registers the pack.

A log that cannot be packed is refused with all its problems at once: of its JSON, its form and its contents. The
problem that was found first decides the class of the error.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.adapters.files.workspace import FileSources
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import ExecutionLog, InvalidLog, read_log, read_partial_log
from contextplane.model.execution.manifest import Manifest, ManifestInvalid, registry_entry
from contextplane.model.ids import Digest
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.large import Buffer
from contextplane.model.problems import DocumentInvalid, Problem, merge_problems, problems_elsewhere
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction
from contextplane.ports.objects import Batch, ObjectReader, SourceUnreadable
from contextplane.ports.world import OutsideRoot
from contextplane.record.pack_log import UNUSABLE, StagedPack, content_problems, stage_log
from contextplane.store.index import NO_HINTS, CachedObjectReader, IndexHints, index_registered
from contextplane.store.progress import ProgressBatch

if TYPE_CHECKING:
    from contextplane.ports.world import Progress
    from contextplane.store.damage import RepairedObject

__all__ = [
    "LOG_ERRORS",
    "PATH_ERRORS",
    "PackResult",
    "collect_log_problems",
    "pack_log",
    "register",
    "register_in_transaction",
]

LOG_ERRORS = (DocumentInvalid, ManifestInvalid, *UNUSABLE)
"""The errors that refuse a log for what is in it."""

PATH_ERRORS = (SourceUnreadable, OutsideRoot)
"""Those of a file that the log names."""


class PackResult(Value, frozen=True):
    """A pack, whether it is new, and which parts of it look like a secret.

    `unsearched`: the contents of which only the beginning was searched for secrets. `put_back`: the damaged objects of
    a pack that was here before, which are whole again.
    """

    digest: Digest
    manifest: Manifest
    new: bool
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()
    put_back: "tuple[RepairedObject, ...]" = ()


def pack_log(
    platform: Platform, log: Buffer, *, root: str, parent: Digest | None = None, progress: "Progress | None" = None
) -> PackResult:
    """Pack a log whose paths lie below `root`. The same log gives the same pack."""
    with _gc_paused(), platform.objects.batch() as batch:
        sources = FileSources(root, excluded_store=platform.home.path)
        # The log is not held here: with very many contents it would be the larger part of what is in memory.
        if progress is None:
            staged = stage_log(_read_log(log, sources), parent, batch, sources)
        else:
            staged = _stage_with_progress(log, parent, batch, sources, progress)
        # Recorded before anything is visible: what a killed process leaves behind can be collected.
        with platform.catalog.write(survives="crash") as tx:
            tx.objects.record_blobs((content.digest, content.size) for content in staged.contents)
            before = tx.packs.row(staged.digest)
        put_back = () if before is None else _damaged_objects(platform, staged)
        batch.commit()
        raw = staged.raw
        sizes = {content.digest: content.size for content in staged.contents}
        cached = CachedObjectReader(
            platform.objects, sizes={**sizes, staged.digest: len(raw)}, contents={**staged.cached, staged.digest: raw}
        )
        hints = IndexHints(
            recorded=sizes.keys(),
            manifests={staged.digest: staged.manifest},
            refs={} if staged.refs is None else {staged.digest: staged.refs},
        )
        # Within the batch: until the pack is registered, nothing else keeps its contents from being collected.
        new = register(platform, staged.digest, raw, cached, hints)
    return PackResult(
        digest=staged.digest,
        manifest=staged.manifest,
        new=new,
        suspects=staged.suspects,
        unsearched=staged.unsearched,
        put_back=put_back,
    )


def register(
    platform: Platform,
    digest: Digest,
    raw: bytes,
    objects: ObjectReader | None = None,
    hints: IndexHints = NO_HINTS,
) -> bool:
    """Register a pack whose objects are all stored; return whether it is new."""
    new = platform.entries.add(digest, registry_entry(raw, digest))
    with platform.catalog.write() as tx:
        index_registered(tx, digest, platform.entries, objects or platform.objects, hints)
    return new


def register_in_transaction(platform: Platform, tx: Transaction, digest: Digest, raw: bytes) -> bool:
    """Register a pack, whose objects are all stored, as part of a transaction; return whether it is new."""
    new = platform.entries.add(digest, registry_entry(raw, digest))
    index_registered(tx, digest, platform.entries, platform.objects)
    return new


def _damaged_objects(platform: Platform, staged: StagedPack) -> "tuple[RepairedObject, ...]":
    """List the objects of a known pack that are damaged. Each is read once more."""
    from contextplane.store.damage import damaged_among

    return damaged_among((staged.digest, *(content.digest for content in staged.contents)), platform.objects)


def _stage_with_progress(
    log: Buffer, parent: Digest | None, batch: Batch, sources: FileSources, progress: "Progress"
) -> StagedPack:
    """Stage the log and report progress. The total is known unless the log names files."""
    progress.expect(len(log))
    parsed = _read_log(log, sources)
    if any(file.content.how == "path" for file in (*parsed.inputs, *parsed.outputs)):
        progress.expect(0)
    return stage_log(parsed, parent, ProgressBatch(batch, progress), sources)


def _read_log(log: Buffer, sources: FileSources) -> ExecutionLog:
    try:
        return _with_evidence(read_log(log))
    except (JsonRefused, InvalidLog) as error:
        raise collect_log_problems(error, log, sources) from None


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause the garbage collector: very many values are made, and none of them is part of a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _with_evidence(log: ExecutionLog) -> ExecutionLog:
    """Return the log with the handoff packs that it names resolved."""
    if all(log_file.content.how != "handoff" for log_file in log.inputs):
        return log
    from contextplane.app.execution.evidence import resolve_evidence

    return resolve_evidence(log)


def collect_log_problems(
    error: JsonRefused | InvalidLog, data: Buffer, sources: FileSources
) -> JsonRefused | InvalidLog:
    """Return the error with all other problems of the log, as far as it can be read.

    Nothing is added for a place that already has a problem, or below it: its content is not known.
    """
    partial = read_partial_log(data)
    if partial is None:
        return error
    log, form = partial
    problems = [*form, *_evidence_problems(log), *content_problems(log.contents(), sources)]
    if isinstance(error, JsonRefused):
        return merge_problems(error, problems)
    return InvalidLog((*error.problems, *problems_elsewhere(problems, [problem.at for problem in error.problems])))


def _evidence_problems(log: ExecutionLog) -> tuple[Problem, ...]:
    if all(log_file.content.how != "handoff" for log_file in log.inputs):
        return ()
    from contextplane.app.execution.evidence import resolve_evidence

    try:
        resolve_evidence(log)
    except InvalidLog as error:
        return error.problems
    except ContextPlaneError:
        pass  # without any handoff packs; reported when the other problems are fixed
    return ()
