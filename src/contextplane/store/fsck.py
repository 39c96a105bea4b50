"""Checking a store: every object re-hashed, every reference resolved, the index compared. It repairs nothing.

Comparing the index with what it is made from: the entries, the manifests, and its own rows.

Two ascending lists, walked side by side in bounded memory.

What people know an object of a store by: the run whose manifest it is, or the part of one.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import chain, groupby

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Condition, PackRow
from contextplane.model.execution.manifest import (
    EXECUTION_PACK,
    MENTION,
    ManifestInvalid,
    contents_of,
    read_manifest,
    references,
    same_but_hash,
)
from contextplane.model.ids import Digest, InvalidId
from contextplane.ports.catalog import Catalog, View
from contextplane.ports.objects import Objects
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.damage import Comparison, Damage, Finding, State, damage_in, said, short, waits
from contextplane.store.find import PACKS
from contextplane.store.handoffs import compare_handoffs
from contextplane.store.index import UNREAD, described, read_manifest_bytes

__all__ = [
    "Ascending",
    "Called",
    "Calling",
    "Progress",
    "compare_entries",
    "compare_manifests",
    "compare_roots",
    "compare_tallies",
    "compare_texts",
    "fsck",
    "fsck_objects",
    "reference",
    "told",
]


class Ascending:
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


def compare_entries(view: View, entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    """Every registered pack is indexed, every indexed one is registered.

    Its copy, and its line in the list, say what its manifest says.
    """
    kept, listed = Ascending(_kept(view)), Ascending(view.packs.digests())
    for digest in entries.names():
        yield from map(_unregistered, kept.before(digest))
        yield from _listed_alone(view, listed.before(digest))
        recorded = view.objects.recorded(digest)
        # Both are asked: each list goes on behind what it was asked for.
        indexed = (kept.takes(digest), listed.takes(digest), recorded is not None and recorded.kind == EXECUTION_PACK)
        if not all(indexed):
            yield Finding(state="index", what=PACKS + digest.hex, why="registered, but not indexed")
        yield from _compare_pack(view, digest, entries, objects)
    yield from map(_unregistered, kept.rest())
    yield from _listed_alone(view, listed.rest())


def compare_roots(view: View) -> Iterator[Finding]:
    """What keeps a pack keeps the one that it names, and as many are told as there are."""
    count = 0
    for name, target in view.objects.roots(PACKS):
        count += 1
        if name != PACKS + target.hex:
            yield Finding(state="index", what=name, why="it keeps another object than it names")
    if view.objects.root_count(PACKS) != count:
        yield Finding(state="index", what="tally", why="the tally of packs is not what counting gives")


def _kept(view: View) -> Iterator[Digest]:
    """The packs that roots name, ascending."""
    for name, _ in view.objects.roots(PACKS):
        try:
            yield Digest(name.removeprefix(PACKS))
        except InvalidId:
            continue  # told of as a root


def _unregistered(digest: Digest) -> Finding:
    why = "this run was registered, and its entry is gone; if that is right, 'ctx fsck --rebuild' accepts it"
    return Finding(state="missing", what=PACKS + digest.hex, why=why, ref=f"ctx://{digest.hex}")


def _listed_alone(view: View, digests: Iterator[Digest]) -> Iterator[Finding]:
    for digest in digests:
        if next(view.objects.roots(PACKS + digest.hex), None) is None:
            yield Finding(state="index", what=PACKS + digest.hex, why="listed, and not registered")


def _compare_pack(view: View, digest: Digest, entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    manifest = read_manifest_bytes(digest, objects)  # one that cannot be read is told of as an object
    try:
        copy = entries.read(digest)
    except ContextPlaneError as error:
        yield Finding(state="corrupt", what=PACKS + digest.hex, why=error.message, ref=f"ctx://{digest.hex}")
        return
    if manifest is None:
        return
    if copy is not None and not same_but_hash(copy, manifest, digest):
        why = "the entry is not a copy of its manifest"
        yield Finding(state="corrupt", what=PACKS + digest.hex, why=why, ref=f"ctx://{digest.hex}")
    row = view.packs.row(digest)
    if row is not None and _line(row) != _line(described(digest, manifest, row.packed)[0]):
        yield Finding(state="index", what=PACKS + digest.hex, why="the list says otherwise than its manifest")


def _line(row: PackRow) -> tuple[object, ...]:
    """What a line says of a run. Another version may have said in other words what is wrong with a manifest."""
    return row.created, row.model, row.steps, row.parent, row.tools, bool(row.problem)


def compare_manifests(view: View, objects: Objects) -> Iterator[Finding]:
    """The recorded edges of every manifest that is alive are those that its bytes name."""
    reached = Ascending(view.objects.reached())
    for digest in view.objects.of_kind(EXECUTION_PACK):
        if not reached.takes(digest):
            continue
        manifest = read_manifest_bytes(digest, objects)
        if manifest is None:
            continue  # told of as an object
        refs = references(manifest)
        if refs is None:
            yield Finding(state="corrupt", what=str(digest), why="registered as an execution pack, and is no manifest")
            continue
        for role, text in refs.unreadable:
            yield Finding(state="corrupt", what=str(digest), why=f"its {role} is not understood: {text}")
        recorded = view.objects.recorded(digest)
        targets = set(view.objects.targets(digest))
        named = set(refs.found)
        known = named | {(MENTION, mention) for mention in refs.mentions}
        traced = recorded is not None and recorded.traced
        if not named <= targets <= known or traced != (not refs.unreadable):
            yield Finding(state="index", what=str(digest), why="the recorded references are not those of the manifest")


def compare_texts(view: View, objects: Objects) -> Iterator[Finding]:
    """What is not searched because it could not be read cannot be read now either."""
    marked = (name.removeprefix(UNREAD).split("/") for name in view.marks.names(UNREAD))
    for pack, contents in groupby(marked, key=lambda one: one[0]):
        if any(objects.check(Digest(content)).state == "whole" for _, content in contents):
            why = "not all of its texts are searched: some could not be read when it was indexed, and can be now"
            yield Finding(state="index", what=PACKS + pack, why=why)


def compare_tallies(view: View) -> Iterator[Finding]:
    """The tallies say what counting says."""
    if view.objects.tallies() != view.objects.counted():
        yield Finding(state="index", what="tally", why="the tallies are not what counting gives")


Called = tuple[Digest, str | None]
"""A run, and the part of it: empty of its manifest, None while that cannot be read."""


class Calling:
    """Finds out what objects are called. The run that was read last is remembered: damage comes in numbers."""

    def __init__(self, view: View, objects: Objects) -> None:
        self._view = view
        self._objects = objects
        self._run: Digest | None = None
        self._parts: dict[str, str] = {}

    def of(self, digest: Digest, referrers: Iterable[str]) -> Called | None:
        """None when no run consists of it."""
        if self._is_run(digest):
            return digest, ""
        unclear = None
        for name in referrers:
            try:
                run = Digest.parse(name)
            except InvalidId:
                continue  # a root
            parts = self._parts_of(run)
            if str(digest) in parts:
                return run, parts[str(digest)]
            if not parts and self._is_run(run):
                unclear = run  # one whose manifest can be read only mentions it
        return None if unclear is None else (unclear, None)

    def _is_run(self, digest: Digest) -> bool:
        recorded = self._view.objects.recorded(digest)
        return recorded is not None and recorded.kind == EXECUTION_PACK

    def _parts_of(self, run: Digest) -> dict[str, str]:
        if run != self._run:
            self._run, self._parts = run, _parts(read_manifest_bytes(run, self._objects))
        return self._parts


def reference(called: Called) -> str:
    """As it can be typed."""
    run, part = called
    return f"ctx://{run.hex}" + (f":{part}" if part else "")


def told(called: Called | None) -> str:
    """As the beginning of a sentence."""
    if called is None:
        return "it"
    run, part = called
    if part is None:
        return f"a part of {short(run)}"
    return short(run, part) if part else f"the manifest of {short(run)}"


def _parts(manifest: bytes | None) -> dict[str, str]:
    if manifest is None:
        return {}
    try:
        named = list(contents_of(read_manifest(manifest)))
    except ManifestInvalid:
        return {}
    return {ref: part for part, ref in reversed(named)}


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
    ascending, reached = Ascending(view.objects.wanted()), Ascending(view.objects.reached())
    for digest in objects.names():
        for absent in ascending.before(digest):
            yield from _no_file(view, absent, calling, progress)
        needed, alive = ascending.takes(digest), reached.takes(digest)
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
    for absent in ascending.rest():
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
