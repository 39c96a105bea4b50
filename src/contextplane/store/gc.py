"""Collecting what nothing refers to. It walks recorded edges only, and never takes what it does not understand.

The refusal to collect anything at all.

Whether what would be collected is named by something that must be kept. What is gone does not come back.

Who collects walks recorded edges. This asks those who say what they are made from: manifests, events and streams.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Condition
from contextplane.model.execution.manifest import references
from contextplane.model.handoff import DEFAULT_GRACE_SECONDS
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.indexes import ObjectIndexView
from contextplane.ports.objects import Collecting, Objects, ObjectsInUse, StorageFull
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.damage import Comparison
from contextplane.store.find import PACKS
from contextplane.store.handoffs import HandoffOver, Over, release_over, unkept_revisions, would_release
from contextplane.store.index import follow, index_entries, read_manifest_bytes, trace

__all__ = ["PATIENCE", "Collected", "GcBlocked", "gc", "named", "refuse_if_forgotten"]

_NAMED = 5


class GcBlocked(ContextPlaneError):
    """What something alive refers to is unknown, or forgotten by the index, so nothing may be collected."""

    code: ClassVar[str] = "gc_blocked"
    family: ClassVar[Family] = "refused"


def named(what: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(what) - _NAMED:,} more" if len(what) > _NAMED else ""
    return ", ".join(what[:_NAMED]) + more


def refuse_if_forgotten(
    view: View,
    going: Sequence[Digest],
    entries: ExecutionEntries,
    objects: Objects,
    others: Sequence[Comparison] = (),
) -> list[Digest]:
    """What of this may go. Refuse when the index should know better: then it has lost what keeps something alive.

    A pack that came since the index was brought in step is not in it yet; what that one names stays.
    """
    if not going:
        return []
    left, forgotten = dict.fromkeys(going), list(unkept_revisions(view))
    for pack, names in _said_by_packs(entries, objects):
        if names is None:
            lost = not view.objects.targets(pack)
        else:
            digests = left.keys() & names
            lost = bool(digests) and view.packs.row(pack) is not None
            for digest in digests:
                del left[digest]
        if lost:
            forgotten.append(f"ctx://{pack.hex}")
    forgotten += [finding.what for compared in others for finding in compared(view) if finding.state == "index"]
    if forgotten:
        raise GcBlocked(
            f"the index has lost what keeps something alive: {named(forgotten)}",
            hint="'ctx fsck' tells more, 'ctx fsck --rebuild' makes the index anew",
            details={"forgotten": forgotten},
        )
    return list(left)


def _said_by_packs(entries: ExecutionEntries, objects: Objects) -> Iterator[tuple[Digest, set[Digest] | None]]:
    """Every registered pack with all that it consists of, its line of parents too; None of one that cannot be read.

    What is only mentioned is kept where it was there when the pack came, and not for ever.
    """
    registered = set(entries.names())
    seen: set[Digest] = set()
    for pack in sorted(registered):
        names: set[Digest] = set()
        todo = [pack]
        while todo:
            one = todo.pop()
            manifest = read_manifest_bytes(one, objects)
            refs = references(manifest) if manifest is not None else None
            if refs is None:
                continue
            names |= {one, *(digest for _, digest in refs.found)}
            parents = {digest for role, digest in refs.found if role == "parent"} - registered - seen
            seen |= parents
            todo += parents
        yield pack, names or None


_LEFTOVER_GRACE = timedelta(days=1)
_ROUND = 0.02

PATIENCE = 10.0
"""So many seconds those who are putting objects are waited for."""


class Collected(Value, frozen=True):
    """What was collected, or would be, and what stays although nothing refers to it.

    `young` was put within the grace time. `damaged` is not what its name says, or cannot be read: it may be all
    that is left of something. `unfinished` are leftovers too young to tell whether their writer is still at it.
    `handoffs` are over, and nothing keeps their revisions any more, whether those are old enough to go or not.
    """

    objects: tuple[Digest, ...]
    freed: int
    leftovers: tuple[str, ...]
    young: tuple[Digest, ...]
    damaged: tuple[Digest, ...]
    unfinished: tuple[str, ...] = ()
    handoffs: tuple[HandoffOver, ...] = ()


def gc(  # noqa: PLR0913  three ports, and what is said of them
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    *,
    older_than: datetime,
    dry_run: bool,
    handoff_grace_seconds: int = DEFAULT_GRACE_SECONDS,
    patience: float = PATIENCE,
    others: Sequence[Comparison] = (),
) -> Collected:
    """Remove objects that no root reaches and that were put before `older_than`.

    Handoff packs that were deleted, or whose grace time ended, before then are roots no more. `patience`: so many
    seconds are waited for those who are putting objects; then it is `ObjectsInUse`. `others`: what else must be kept;
    while something is not, the index cannot be relied upon, and nothing is collected.
    """
    if not dry_run:
        follow(catalog, entries, objects)
        _look_again(catalog, entries, objects)
    with catalog.read() as view:
        over, released = would_release(view, Over.before(older_than, handoff_grace_seconds, view))
        going = sorted({*_unreachable(view.objects, objects), *released})
        candidates = refuse_if_forgotten(view, going, entries, objects, others)
    # Re-hashing takes long, so nobody waits for it.
    conditions = {digest: objects.check(digest) for digest in candidates}
    if dry_run:
        outcome = _sort_out(candidates, conditions, objects, older_than)
        taken = outcome.taken
    else:
        over = _let_go(catalog, objects, older_than, handoff_grace_seconds)
        with _alone(catalog, objects, patience) as (tx, collecting):
            still = [digest for digest in _unreachable(tx.objects, objects) if digest in conditions]
            outcome = _sort_out(still, conditions, objects, older_than)
            # The files go first: dying before their rows go leaves rows without files, which the next run drops. The
            # other way round would leave files of unknown kind, which are never collected.
            taken = {
                digest: size
                for digest, size in outcome.taken.items()
                if collecting.collect(digest, older_than=older_than) is not None
            }
            for digest in (*taken, *outcome.gone):
                tx.objects.forget(digest)
                tx.pending.remove(digest)
    # A leftover may be of a writer that is still at it; a day is more than any of them needs.
    leftovers = objects.sweep(older_than=older_than - _LEFTOVER_GRACE, dry_run=dry_run)
    return Collected(
        objects=tuple(taken),
        freed=sum(taken.values()),
        leftovers=tuple(leftovers),
        young=outcome.young,
        damaged=outcome.damaged,
        unfinished=tuple(
            stray.name for stray in objects.strays() if stray.what == "leftover" and stray.name not in leftovers
        ),
        handoffs=over,
    )


def _look_again(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> None:
    """Find out what manifests refer to that could not be read before and can be now; list what they say."""
    # Where there is no room to write that down, it waits until there is some: to make it is what we are here for.
    with suppress(StorageFull), catalog.write(survives="crash") as tx:
        for digest in [one.digest for one in tx.objects.untraced()]:
            if tx.packs.row(digest) is None:
                trace(tx, digest, objects)
            else:
                index_entries(tx, [digest], entries, objects)


def _let_go(
    catalog: Catalog, objects: Objects, older_than: datetime, handoff_grace_seconds: int
) -> tuple[HandoffOver, ...]:
    """Keep no more what is over."""
    # Where there is no room to write that down, it waits too.
    with suppress(StorageFull), catalog.write(survives="crash") as tx:
        _refuse_if_blind(tx.objects, objects)  # before any pack is let go that nobody would be told of
        return release_over(tx, Over.before(older_than, handoff_grace_seconds, tx))
    return ()


@contextmanager
def _alone(catalog: Catalog, objects: Objects, patience: float) -> Iterator[tuple[Transaction, Collecting]]:
    """Our turn in the catalog, at a moment when nobody is putting objects.

    Whoever links to an object takes this same turn, and holds a batch open from its put until then: so nothing that is
    unreachable here can become reachable. Nobody is waited for within the turn, for they may be waiting for it.
    """
    end = time.monotonic() + patience
    while True:
        with ExitStack() as stack:
            tx = stack.enter_context(catalog.write(survives="crash"))
            try:
                collecting = stack.enter_context(objects.collecting())
            except ObjectsInUse:
                if time.monotonic() >= end:
                    raise
            else:
                yield tx, collecting
                return
        time.sleep(_ROUND)


class _Outcome(Value, frozen=True):
    taken: dict[Digest, int]
    young: tuple[Digest, ...]
    damaged: tuple[Digest, ...]
    gone: tuple[Digest, ...]


def _unreachable(index: ObjectIndexView, objects: Objects) -> list[Digest]:
    _refuse_if_blind(index, objects)
    return [one.digest for one in index.unreachable()]


def _sort_out(
    digests: list[Digest], conditions: Mapping[Digest, Condition], objects: Objects, older_than: datetime
) -> _Outcome:
    """What may go of all that nothing refers to, and what stays for which reason."""
    taken: dict[Digest, int] = {}
    young, damaged, gone = list[Digest](), list[Digest](), list[Digest]()
    for digest in digests:
        condition = conditions[digest]
        if condition.state in {"corrupt", "unreadable"}:
            damaged.append(digest)
        elif not objects.has(digest):
            gone.append(digest)
        elif condition.state == "missing" or objects.written_at(digest) >= older_than:
            young.append(digest)  # what was missing a moment ago was put since
        else:
            taken[digest] = condition.size
    return _Outcome(taken=taken, young=tuple(young), damaged=tuple(damaged), gone=tuple(gone))


def _refuse_if_blind(index: ObjectIndexView, objects: Objects) -> None:
    """Refuse while something alive is there, or registered, and what it refers to is not wholly known.

    A parent that is not there at all is not in the way: it was never here, or went together with what it referred to.
    """
    blind = [
        str(one.digest)
        for one in index.untraced()
        if objects.check(one.digest).state != "missing"
        or any(name.startswith(PACKS) for name in index.referrers(one.digest))
    ]
    if blind:
        raise GcBlocked(
            f"what {len(blind)} execution packs refer to is unknown, because they cannot be read or understood:"
            f" {named(blind)}",
            hint="restore them, or move their entries out of packs/ and run 'ctx fsck --rebuild'",
            details={"untraced": blind},
        )
