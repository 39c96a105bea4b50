"""Collecting what nothing refers to. It walks recorded edges only, and never takes what it does not understand."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, ObjectIndexView
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Condition, Objects
from contextplane.store.follow import follow
from contextplane.store.in_step import PACKS
from contextplane.store.trace import trace_again

__all__ = ["Collected", "GcBlocked", "gc"]

_NAMED = 5
_LEFTOVER_GRACE = timedelta(days=1)


class GcBlocked(ContextPlaneError):
    """What something alive refers to is unknown, because it cannot be read, so nothing may be collected."""

    code: ClassVar[str] = "gc_blocked"
    family: ClassVar[Family] = "refused"


class Collected(Value, frozen=True):
    """What was collected, or would be, and what stays although nothing refers to it.

    `young` was put within the grace time. `damaged` is not what its name says: it may be all that is left of something.
    """

    objects: tuple[Digest, ...]
    freed: int
    leftovers: tuple[str, ...]
    young: tuple[Digest, ...]
    damaged: tuple[Digest, ...]


def gc(
    catalog: Catalog, entries: ExecutionEntries, objects: Objects, *, older_than: datetime, dry_run: bool
) -> Collected:
    """Remove objects that no root reaches and that were put before `older_than`."""
    if not dry_run:
        follow(catalog, entries, objects)
        with catalog.write(survives="crash") as tx:
            trace_again(tx, objects)
    with catalog.read() as view:
        candidates = _unreachable(view.objects, objects)
    # Re-hashing takes long, so nobody waits for it.
    conditions = {digest: objects.check(digest) for digest in candidates}
    if dry_run:
        outcome = _sort_out(candidates, conditions, objects, older_than)
        taken = outcome.taken
    else:
        # Whoever links to an object takes this same turn, so nothing found unreachable here can become reachable.
        with catalog.write(survives="crash") as tx:
            still = [digest for digest in _unreachable(tx.objects, objects) if digest in conditions]
            outcome = _sort_out(still, conditions, objects, older_than)
            # The files go first: dying before their rows go leaves rows without files, which the next run drops. The
            # other way round would leave files of unknown kind, which are never collected.
            taken = {digest: size for digest, size in outcome.taken.items() if _took(digest, objects, older_than)}
            for digest in (*taken, *outcome.gone):
                tx.objects.forget(digest)
    # A leftover may be of a writer that is still at it; a day is more than any of them needs.
    leftovers = objects.sweep(older_than=older_than - _LEFTOVER_GRACE, dry_run=dry_run)
    return Collected(
        objects=tuple(taken),
        freed=sum(taken.values()),
        leftovers=tuple(leftovers),
        young=outcome.young,
        damaged=outcome.damaged,
    )


def _took(digest: Digest, objects: Objects, older_than: datetime) -> bool:
    """Remove an object, unless somebody put it again since we looked."""
    return objects.collect(digest, older_than=older_than) is not None


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
        if condition.state == "corrupt":
            damaged.append(digest)
        elif condition.state == "missing" or not objects.has(digest):
            gone.append(digest)
        elif objects.written_at(digest) >= older_than:
            young.append(digest)
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
            f" {', '.join(blind[:_NAMED])}",
            hint="restore them, or move their entries out of packs/ and run 'ctx fsck --rebuild'",
            details={"untraced": blind},
        )
