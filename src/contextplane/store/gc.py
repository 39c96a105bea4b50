"""Collecting what nothing refers to. It walks recorded edges only, and never takes what it does not understand."""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, ObjectIndexView
from contextplane.ports.entries import PackEntries
from contextplane.ports.objects import ObjectNotFound, Objects
from contextplane.store.follow import follow

__all__ = ["Collected", "GcBlocked", "gc"]

_NAMED = 5


class GcBlocked(ContextPlaneError):
    """Something that is alive cannot be read, so what it refers to is unknown, and nothing may be collected."""

    code: ClassVar[str] = "gc_blocked"
    family: ClassVar[Family] = "refused"


class Collected(Value, frozen=True):
    """What was collected, or would be; and what stays although nothing refers to it, because it was put lately."""

    objects: tuple[Digest, ...]
    freed: int
    leftovers: tuple[str, ...]
    kept: tuple[Digest, ...]


def gc(catalog: Catalog, entries: PackEntries, objects: Objects, *, older_than: datetime, dry_run: bool) -> Collected:
    """Remove objects that no root reaches and that were put before `older_than`."""
    follow(catalog, entries, objects)
    if dry_run:
        with catalog.read() as view:
            taken, kept = _sort_out(_unreachable(view.objects), lambda digest: _would_free(digest, objects, older_than))
    else:
        # Whoever links to an object takes this same turn, so nothing found unreachable here can become reachable.
        with catalog.write(survives="crash") as tx:
            index = tx.objects
            taken, kept = _sort_out(_unreachable(index), lambda digest: objects.collect(digest, older_than=older_than))
            # The files went first: dying before this leaves rows without files, which the next run drops. The other
            # way round would leave files of unknown kind, which are never collected.
            for digest in list(taken) + [digest for digest in kept if not objects.has(digest)]:
                index.forget(digest)
    leftovers = objects.sweep(older_than=older_than, dry_run=dry_run)
    return Collected(objects=tuple(taken), freed=sum(taken.values()), leftovers=tuple(leftovers), kept=tuple(kept))


def _unreachable(index: ObjectIndexView) -> list[Digest]:
    blind = [str(one.digest) for one in index.untraced()]
    if blind:
        raise GcBlocked(
            f"{len(blind)} pack(s) cannot be read, so what they refer to is unknown: {', '.join(blind[:_NAMED])}",
            hint="restore them, or move their entries out of packs/, then run it again",
            details={"untraced": blind},
        )
    return [one.digest for one in index.unreachable()]


def _sort_out(digests: list[Digest], free: Callable[[Digest], int | None]) -> tuple[dict[Digest, int], list[Digest]]:
    """Split into what was freed, with its size, and what was kept."""
    taken: dict[Digest, int] = {}
    kept: list[Digest] = []
    for digest in digests:
        size = free(digest)
        if size is None:
            kept.append(digest)
        else:
            taken[digest] = size
    return taken, kept


def _would_free(digest: Digest, objects: Objects, older_than: datetime) -> int | None:
    try:
        return objects.size(digest) if objects.written_at(digest) < older_than else None
    except ObjectNotFound:
        return None
