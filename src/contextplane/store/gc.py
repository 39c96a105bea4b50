"""Garbage collection: removes objects that no root reaches and that are old enough.

It walks the recorded edges of the index, and never collects what it does not understand. Because a collected object
does not come back, candidates are checked against the manifests, events and streams themselves first: when the index
has lost an edge, nothing is collected.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import ObjectCondition
from contextplane.model.execution.references import find_references
from contextplane.model.handoff import DEFAULT_GRACE_SECONDS
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.indexes import ObjectIndexView
from contextplane.ports.objects import Collector, Objects, ObjectsInUse, StorageFull
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.damage import Comparison
from contextplane.store.find import PACKS
from contextplane.store.handoffs import ExpiredHandoff, ExpiryRule, collect_expired, expired_handoffs, unkept_revisions
from contextplane.store.index import catch_up, index_entries, read_manifest_bytes, trace

__all__ = ["PATIENCE", "GcBlocked", "GcResult", "check_index_before_gc", "gc", "name_first"]

_NAMED = 5


class GcBlocked(ContextPlaneError):
    """What something alive refers to is unknown, or forgotten by the index, so nothing may be collected."""

    code: ClassVar[str] = "gc_blocked"
    family: ClassVar[Family] = "refused"


def name_first(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def check_index_before_gc(
    view: View,
    candidates: Sequence[Digest],
    entries: ExecutionEntries,
    objects: Objects,
    others: Sequence[Comparison] = (),
) -> list[Digest]:
    """The candidates that no pack refers to. `GcBlocked` when the index has lost what keeps one alive.

    A pack that was registered after the index caught up is not in it yet; the objects that it names stay.
    """
    if not candidates:
        return []
    left, forgotten = dict.fromkeys(candidates), list(unkept_revisions(view))
    for pack, names in _pack_references(entries, objects):
        if names is None:
            lost = not view.objects.targets(pack)
        else:
            digests = left.keys() & names
            lost = bool(digests) and view.packs.row(pack) is not None
            for digest in digests:
                del left[digest]
        if lost:
            forgotten.append(f"ctx://{pack.hex}")
    forgotten += [finding.what for compare in others for finding in compare(view) if finding.state == "index"]
    if forgotten:
        raise GcBlocked(
            f"the index has lost what keeps something alive: {name_first(forgotten)}",
            hint="'ctx fsck' tells more, 'ctx fsck --rebuild' makes the index again",
            details={"forgotten": forgotten},
        )
    return list(left)


def _pack_references(entries: ExecutionEntries, objects: Objects) -> Iterator[tuple[Digest, set[Digest] | None]]:
    """Each registered pack with all that it consists of, its parents included; None if it cannot be read.

    Mentioned digests do not count: they are kept only if they were there when the pack was indexed.
    """
    registered = set(entries.names())
    seen: set[Digest] = set()
    for pack in sorted(registered):
        names: set[Digest] = set()
        todo = [pack]
        while todo:
            digest = todo.pop()
            manifest = read_manifest_bytes(digest, objects)
            refs = find_references(manifest) if manifest is not None else None
            if refs is None:
                continue
            names |= {digest, *(target for _, target in refs.objects)}
            parents = {target for role, target in refs.objects if role == "parent"} - registered - seen
            seen |= parents
            todo += parents
        yield pack, names or None


# --- collection -------------------------------------------------------------------------------------------------------

_LEFTOVER_GRACE = timedelta(days=1)
_ROUND = 0.02

PATIENCE = 10.0
"""The seconds that gc waits for processes that are storing objects."""


class GcResult(Value, frozen=True):
    """What was collected, or would be, and what stays although nothing refers to it.

    - `young`: stored within the grace time.
    - `damaged`: not what its name says, or unreadable. It may be all that is left of something.
    - `unfinished`: leftovers of writes that may still be under way.
    - `handoffs`: expired or deleted packs, whose revisions nothing keeps any more, old enough to be collected or not.
    """

    objects: tuple[Digest, ...]
    freed: int
    leftovers: tuple[str, ...]
    young: tuple[Digest, ...]
    damaged: tuple[Digest, ...]
    unfinished: tuple[str, ...] = ()
    handoffs: tuple[ExpiredHandoff, ...] = ()


def gc(  # noqa: PLR0913  three ports, and their options
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    *,
    older_than: datetime,
    dry_run: bool,
    handoff_grace_seconds: int = DEFAULT_GRACE_SECONDS,
    patience: float = PATIENCE,
    others: Sequence[Comparison] = (),
) -> GcResult:
    """Remove objects that no root reaches and that were stored before `older_than`.

    Handoff packs that were deleted, or whose grace time ended, before then are no roots any more. `patience`: after so
    many seconds of waiting for processes that store objects it raises `ObjectsInUse`. `others`: comparisons of other
    packages; while one has a finding, the index cannot be relied upon, and nothing is collected.
    """
    if not dry_run:
        catch_up(catalog, entries, objects)
        _trace_again(catalog, entries, objects)
    with catalog.read() as view:
        expired, released = expired_handoffs(view, ExpiryRule.before(older_than, handoff_grace_seconds, view))
        unreachable = sorted({*_unreachable(view.objects, objects), *released})
        candidates = check_index_before_gc(view, unreachable, entries, objects, others)
    # Re-hashing takes long, so no lock is held.
    conditions = {digest: objects.check(digest) for digest in candidates}
    if dry_run:
        outcome = _classify(candidates, conditions, objects, older_than)
        collected = outcome.collectable
    else:
        expired = _release_expired(catalog, objects, older_than, handoff_grace_seconds)
        with _exclusive_transaction(catalog, objects, patience) as (tx, collecting):
            still = [digest for digest in _unreachable(tx.objects, objects) if digest in conditions]
            outcome = _classify(still, conditions, objects, older_than)
            # The files go first: dying before their rows go leaves rows without files, which the next run drops. The
            # other way round would leave files of unknown kind, which are never collected.
            collected = {
                digest: size
                for digest, size in outcome.collectable.items()
                if collecting.collect(digest, older_than=older_than) is not None
            }
            for digest in (*collected, *outcome.gone):
                tx.objects.forget(digest)
                tx.pending.remove(digest)
    # A leftover may be of a writer that is still busy; a day is more than any of them needs.
    leftovers = objects.sweep(older_than=older_than - _LEFTOVER_GRACE, dry_run=dry_run)
    return GcResult(
        objects=tuple(collected),
        freed=sum(collected.values()),
        leftovers=tuple(leftovers),
        young=outcome.young,
        damaged=outcome.damaged,
        unfinished=tuple(
            stray.name for stray in objects.strays() if stray.what == "leftover" and stray.name not in leftovers
        ),
        handoffs=expired,
    )


def _trace_again(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> None:
    """Trace and index manifests that could not be read before and can be now."""
    # A full disk must not stop gc, which makes room: what cannot be recorded now waits until the next time.
    with suppress(StorageFull), catalog.write(survives="crash") as tx:
        for digest in [recorded.digest for recorded in tx.objects.untraced_objects()]:
            if tx.packs.row(digest) is None:
                trace(tx, digest, objects)
            else:
                index_entries(tx, [digest], entries, objects)


def _release_expired(
    catalog: Catalog, objects: Objects, older_than: datetime, handoff_grace_seconds: int
) -> tuple[ExpiredHandoff, ...]:
    """Release the roots of handoff packs that are expired or deleted."""
    # On a full disk that waits until the next time as well.
    with suppress(StorageFull), catalog.write(survives="crash") as tx:
        _require_traced(tx.objects, objects)  # before a pack is released without being reported
        return collect_expired(tx, ExpiryRule.before(older_than, handoff_grace_seconds, tx))
    return ()


@contextmanager
def _exclusive_transaction(
    catalog: Catalog, objects: Objects, patience: float
) -> Iterator[tuple[Transaction, Collector]]:
    """A write transaction at a moment when no process is storing objects.

    A process that links to an object takes the same transaction, and holds a batch open from its put until then: so
    nothing that is unreachable here can become reachable. The transaction is given up while waiting for a batch, whose
    writer may be waiting for the transaction.
    """
    end = time.monotonic() + patience
    while True:
        with ExitStack() as stack:
            tx = stack.enter_context(catalog.write(survives="crash"))
            try:
                collecting = stack.enter_context(objects.collector())
            except ObjectsInUse:
                if time.monotonic() >= end:
                    raise
            else:
                yield tx, collecting
                return
        time.sleep(_ROUND)


class _Candidates(Value, frozen=True):
    collectable: dict[Digest, int]
    young: tuple[Digest, ...]
    damaged: tuple[Digest, ...]
    gone: tuple[Digest, ...]


def _unreachable(index: ObjectIndexView, objects: Objects) -> list[Digest]:
    _require_traced(index, objects)
    return [recorded.digest for recorded in index.unreachable()]


def _classify(
    digests: list[Digest], conditions: Mapping[Digest, ObjectCondition], objects: Objects, older_than: datetime
) -> _Candidates:
    """Sort unreachable objects into those that may be collected, and those that stay, by reason."""
    collectable: dict[Digest, int] = {}
    young, damaged, gone = list[Digest](), list[Digest](), list[Digest]()
    for digest in digests:
        condition = conditions[digest]
        if condition.state in {"corrupt", "unreadable"}:
            damaged.append(digest)
        elif not objects.has(digest):
            gone.append(digest)
        elif condition.state == "missing" or objects.write_time(digest) >= older_than:
            young.append(digest)  # it was missing a moment ago, and was stored since
        else:
            collectable[digest] = condition.size
    return _Candidates(collectable=collectable, young=tuple(young), damaged=tuple(damaged), gone=tuple(gone))


def _require_traced(index: ObjectIndexView, objects: Objects) -> None:
    """Raise `GcBlocked` while the references of a stored or registered manifest are not fully known.

    A parent that is not there at all does not block: it was never here, or went together with what it referred to.
    """
    blind = [
        str(recorded.digest)
        for recorded in index.untraced_objects()
        if objects.check(recorded.digest).state != "missing"
        or any(name.startswith(PACKS) for name in index.referrers(recorded.digest))
    ]
    if blind:
        raise GcBlocked(
            f"what {len(blind)} execution packs refer to is unknown, because they cannot be read or understood:"
            f" {name_first(blind)}",
            hint="restore them, or move their entries out of packs/ and run 'ctx fsck --rebuild'",
            details={"untraced": blind},
        )
