"""Checking a store: every object re-hashed, every reference resolved, every index row compared. It repairs nothing."""

from collections.abc import Callable, Iterator
from typing import Literal

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, references, same_but_hash
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, View
from contextplane.ports.entries import PackEntries
from contextplane.ports.objects import Objects
from contextplane.store.follow import PACKS

__all__ = ["DAMAGE", "Finding", "Progress", "State", "fsck"]

State = Literal["missing", "corrupt", "orphaned", "foreign", "index"]

DAMAGE: frozenset[State] = frozenset({"missing", "corrupt", "index"})
"""What makes a store unsound. Orphaned objects take room, foreign things take none of ours."""

Progress = Callable[[int, int], None]
"""Called with the bytes and the objects checked since the last call."""


class Finding(Value, frozen=True):
    """One thing that is not as it should be.

    `missing`: something refers to it and it is not there. `corrupt`: it is there and is not what it says. `orphaned`:
    it is whole and nothing refers to it. `foreign`: it is not ours. `index`: the index says otherwise than the objects.
    """

    state: State
    what: str
    why: str
    needed_by: tuple[str, ...] = ()


def fsck(catalog: Catalog, entries: PackEntries, objects: Objects, progress: Progress) -> Iterator[Finding]:
    """Every finding, as it is found. Memory does not grow with the number of objects."""
    for line in catalog.problems():
        yield Finding(state="corrupt", what="catalog", why=line)
    with catalog.read() as view:
        yield from _objects(view, objects, progress)
        yield from _entries(view, entries, objects)
        yield from _edges(view, objects)
    for stray in objects.strays():
        why = "left behind by an interrupted write" if stray.what == "leftover" else "not an object"
        yield Finding(state="foreign", what=f"objects/{stray.name}", why=why)
    for name in entries.strays():
        yield Finding(state="foreign", what=f"packs/{name}", why="not a registered pack")


def _objects(view: View, objects: Objects, progress: Progress) -> Iterator[Finding]:
    """Walk three ascending lists side by side: what is there, what is wanted, what is reached."""
    wanted, reached = _Ascending(view.objects.wanted()), _Ascending(view.objects.reached())
    for digest in objects.names():
        for absent in wanted.before(digest):
            yield _missing(view, absent)
        needed, alive = wanted.takes(digest), reached.takes(digest)
        condition = objects.check(digest)
        progress(condition.size, 1)
        if condition.state == "missing":
            # Collected by another process since its name was listed.
            if needed:
                yield _missing(view, digest)
        elif condition.state == "corrupt":
            yield Finding(
                state="corrupt", what=str(digest), why=condition.why, needed_by=view.objects.referrers(digest)
            )
        elif not alive:
            recorded = view.objects.recorded(digest)
            why = (
                "nothing refers to it"
                if recorded
                else "nothing refers to it, and its kind is unknown: it is never collected"
            )
            yield Finding(state="orphaned", what=str(digest), why=why)
    for absent in wanted.rest():
        yield _missing(view, absent)


def _missing(view: View, digest: Digest) -> Finding:
    return Finding(
        state="missing", what=str(digest), why="referred to, not there", needed_by=view.objects.referrers(digest)
    )


def _entries(view: View, entries: PackEntries, objects: Objects) -> Iterator[Finding]:
    """Every registered pack is indexed, every indexed one is registered, and its copy agrees with its manifest."""
    indexed = _Ascending(digest for _, digest in view.objects.roots(PACKS))
    for digest in entries.names():
        for gone in indexed.before(digest):
            yield _index(PACKS + gone.hex, "indexed, but no longer registered")
        if not indexed.takes(digest):
            yield _index(PACKS + digest.hex, "registered, but not indexed")
        try:
            copy, manifest = entries.read(digest), objects.get(digest)
        except ContextPlaneError:
            continue  # said already of the object, or an entry that went away meanwhile
        if not same_but_hash(copy, manifest, digest):
            yield Finding(state="corrupt", what=PACKS + digest.hex, why="the entry is not a copy of its manifest")
    for gone in indexed.rest():
        yield _index(PACKS + gone.hex, "indexed, but no longer registered")


def _edges(view: View, objects: Objects) -> Iterator[Finding]:
    """The recorded edges of every manifest are those that its bytes name."""
    for digest in view.objects.of_kind(EXECUTION_PACK):
        try:
            refs = references(objects.get(digest))
        except ContextPlaneError:
            continue  # said already
        if refs is None:
            yield Finding(state="corrupt", what=str(digest), why="registered as an execution pack, and is no manifest")
            continue
        for role, text in refs.unreadable:
            yield Finding(
                state="missing", what=text, why="stands where a digest belongs", needed_by=(f"{digest}:{role}",)
            )
        if set(refs.found) != set(view.objects.targets(digest)):
            yield _index(str(digest), "the recorded references are not those of the manifest")


def _index(what: str, why: str) -> Finding:
    return Finding(state="index", what=what, why=why)


class _Ascending:
    """An ascending list of digests, consumed in step with another one."""

    def __init__(self, digests: Iterator[Digest]) -> None:
        self._digests = digests
        self._head = next(digests, None)

    def before(self, limit: Digest) -> Iterator[Digest]:
        """All that come before `limit`."""
        while self._head is not None and self._head < limit:
            yield self._head
            self._head = next(self._digests, None)

    def takes(self, digest: Digest) -> bool:
        """Whether `digest` is in the list; it must not be smaller than one asked for earlier."""
        for _ in self.before(digest):
            pass
        if self._head != digest:
            return False
        self._head = next(self._digests, None)
        return True

    def rest(self) -> Iterator[Digest]:
        if self._head is not None:
            yield self._head
            yield from self._digests
