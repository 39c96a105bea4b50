"""Checking a store: every object re-hashed, every reference resolved, the index compared. It repairs nothing."""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain

from contextplane.model.execution import EXECUTION_PACK
from contextplane.model.ids import Digest
from contextplane.ports.catalog import Catalog, View
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Condition, Objects
from contextplane.store.ascending import Ascending
from contextplane.store.called import Called, Calling, reference, told
from contextplane.store.compare import compare_entries, compare_manifests, compare_roots, compare_tallies, compare_texts
from contextplane.store.damage import Damage, damage_in, said
from contextplane.store.finding import Comparison, Finding, State
from contextplane.store.handoffs import compare_handoffs
from contextplane.store.waiting import waits

__all__ = ["Progress", "fsck", "fsck_objects"]

Progress = Callable[[int, int], None]
"""Called with the bytes and the objects checked since the last call."""

_STATE: dict[Damage, State] = {"tampered": "corrupt", "missing": "missing", "unreadable": "unreadable"}


def fsck(
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    progress: Progress,
    others: Sequence[Comparison] = (),
) -> Generator[Finding, None, None]:
    """Every finding, as it is found. Memory does not grow with the number of objects, only with that of doubts."""
    problems = list(catalog.problems())
    for line in problems:
        yield Finding(state="corrupt", what="catalog", why=line)
    if problems:
        # Whatever an unsound index says of them would be noise.
        yield from fsck_objects(objects, progress)
    else:
        doubts: list[Finding] = []
        with catalog.read() as view:
            found = chain(_compared(view, entries, objects, progress), *(compared(view) for compared in others))
            for finding in found:
                if finding.state in {"missing", "index"}:
                    doubts.append(finding)
                else:
                    yield finding
        yield from _confirmed(doubts, catalog, entries, objects, others)
    yield from _strays(entries, objects)


def fsck_objects(objects: Objects, progress: Progress) -> Iterator[Finding]:
    """Every object re-hashed, and nothing else: what can be checked without a catalog."""
    for digest in objects.names():
        condition = objects.check(digest)
        progress(condition.size, 1)
        if condition.state in {"corrupt", "unreadable"}:
            yield _not_whole(digest, condition)


def _compared(view: View, entries: ExecutionEntries, objects: Objects, progress: Progress) -> Iterator[Finding]:
    yield from _objects(view, objects, progress)
    yield from compare_entries(view, entries, objects)
    yield from compare_roots(view)
    yield from compare_manifests(view, objects)
    yield from compare_handoffs(view, objects)
    yield from compare_texts(view, objects)
    yield from compare_tallies(view)


def _objects(view: View, objects: Objects, progress: Progress) -> Iterator[Finding]:
    """Walk three ascending lists side by side: what is there, what is wanted, what is reached."""
    calling = Calling(view, objects)
    wanted, reached = Ascending(view.objects.wanted()), Ascending(view.objects.reached())
    for digest in objects.names():
        for absent in wanted.before(digest):
            yield from _no_file(view, absent, calling, progress)
        needed, alive = wanted.takes(digest), reached.takes(digest)
        condition = objects.check(digest)
        progress(condition.size, 1)
        recorded = view.objects.recorded(digest)
        if condition.state == "missing":
            # Collected by another process since its name was listed.
            if needed:
                yield from _missing(view, digest, calling)
        elif condition.state != "whole":
            yield _damaged(view, digest, condition, calling)
        elif not alive:
            known = "" if recorded else ", and its kind is unknown: it is never collected"
            yield Finding(state="orphaned", what=str(digest), why=f"nothing refers to it{known}")
        elif recorded is None or recorded.size != condition.size:
            yield Finding(state="index", what=str(digest), why="it is not in the index, or with another size")
    for absent in wanted.rest():
        yield from _no_file(view, absent, calling, progress)


def _no_file(view: View, digest: Digest, calling: Calling, progress: Progress) -> Iterator[Finding]:
    """An object that is wanted and no file. When it waits in the catalog to become one, it was hashed there."""
    waiting = waits(view.pending, digest)
    if waiting is not None:
        progress(len(waiting), 1)
    yield from _missing(view, digest, calling)


def _missing(view: View, digest: Digest, calling: Calling) -> Iterator[Finding]:
    if waits(view.pending, digest) is not None:
        return
    if _never_here(view, digest):
        why = "a run is a fork of it, and came here without it"
        yield Finding(state="absent", what=str(digest), why=why, needed_by=view.objects.referrers(digest))
    else:
        yield _damaged(view, digest, Condition(state="missing"), calling)


def _damaged(view: View, digest: Digest, condition: Condition, calling: Calling) -> Finding:
    needed_by = view.objects.referrers(digest)
    return _not_whole(digest, condition, needed_by, calling.of(digest, needed_by))


def _not_whole(
    digest: Digest, condition: Condition, needed_by: tuple[str, ...] = (), called: Called | None = None
) -> Finding:
    """What is not whole, in the words of every verb, and called what people call it."""
    damage = damage_in(condition) or "missing"
    found = f": {condition.why}" if damage == "tampered" else ""
    return Finding(
        state=_STATE[damage],
        what=str(digest),
        why=said(told(called), damage, condition.why) + found,
        needed_by=needed_by,
        ref=reference(called) if called is not None else None,
    )


def _never_here(view: View, digest: Digest) -> bool:
    """Whether it is a parent and nothing else, and was never read here: what was, stays recorded with what it named."""
    recorded = view.objects.recorded(digest)
    return (
        recorded is not None
        and (recorded.kind, recorded.size, recorded.traced) == (EXECUTION_PACK, 0, False)
        and view.objects.wanted_as(digest) == {"parent"}
    )


def _confirmed(
    doubts: list[Finding],
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    others: Sequence[Comparison],
) -> Iterator[Finding]:
    """Those doubts that a second look confirms: others may have written while we looked the first time."""
    if not doubts:
        return
    seen = {(finding.state, finding.what) for finding in doubts}
    with catalog.read() as view:
        found = chain(_second_look(view, entries, objects), *(compared(view) for compared in others))
        for finding in found:
            if (finding.state, finding.what) in seen:
                yield finding


def _second_look(view: View, entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    """The same comparison without re-hashing."""
    calling = Calling(view, objects)
    for digest in view.objects.wanted():
        recorded = view.objects.recorded(digest)
        if not objects.has(digest):
            if objects.check(digest).state == "missing":
                yield from _missing(view, digest, calling)
        elif recorded is None or recorded.size != objects.size(digest):
            yield Finding(state="index", what=str(digest), why="it is not in the index, or with another size")
    yield from compare_entries(view, entries, objects)
    yield from compare_roots(view)
    yield from compare_manifests(view, objects)
    yield from compare_handoffs(view, objects)
    yield from compare_texts(view, objects)
    yield from compare_tallies(view)


def _strays(entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    for stray in objects.strays():
        if stray.what == "obstacle":
            yield Finding(
                state="corrupt", what=f"objects/{stray.name}", why="objects belong in here, and it is no folder"
            )
        else:
            why = "left behind by an interrupted write" if stray.what == "leftover" else "not an object"
            yield Finding(state="foreign", what=f"objects/{stray.name}", why=why)
    for name in entries.strays():
        yield Finding(state="foreign", what=f"packs/{name}", why="not a registered pack")
