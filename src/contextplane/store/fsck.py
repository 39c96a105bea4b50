"""Checking a store: re-hash every object, resolve every reference, compare the index.

It repairs nothing. The index is compared with the entries, the manifests and its own rows. Sorted lists of digests are
walked side by side, so memory does not grow with the number of objects.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import chain, groupby

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ObjectCondition, PackRow
from contextplane.model.execution.manifest import ManifestInvalid, contents_of, read_manifest
from contextplane.model.execution.references import EXECUTION_PACK, MENTION, find_references, is_entry_of
from contextplane.model.ids import Digest, InvalidId
from contextplane.ports.catalog import Catalog, View
from contextplane.ports.objects import Objects
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.damage import (
    Comparison,
    Damage,
    FindingState,
    FsckFinding,
    damage_in,
    damage_sentence,
    short_ref,
)
from contextplane.store.event_stream import pending_bytes
from contextplane.store.find import PACKS, UNREAD
from contextplane.store.handoffs import compare_handoffs
from contextplane.store.index import describe_pack, read_manifest_bytes

__all__ = [
    "ObjectOwner",
    "OwnerLookup",
    "Progress",
    "SortedCursor",
    "compare_entries",
    "compare_manifests",
    "compare_roots",
    "compare_tallies",
    "compare_texts",
    "describe_owner",
    "fsck",
    "fsck_objects",
    "owner_ref",
]


class SortedCursor:
    """A cursor over ascending digests, to be advanced in parallel with another list."""

    def __init__(self, digests: Iterator[Digest]) -> None:
        self._digests = digests
        self._head = next(digests, None)

    def before(self, limit: Digest) -> Iterator[Digest]:
        """Consume and yield the digests before `limit`."""
        while self._head is not None and self._head < limit:
            yield self._head
            self._head = next(self._digests, None)

    def advance_to(self, digest: Digest) -> bool:
        """Advance past `digest`, and whether it was in the list. It must not be below an earlier one."""
        for _ in self.before(digest):
            pass
        if self._head != digest:
            return False
        self._head = next(self._digests, None)
        return True

    def drain(self) -> Iterator[Digest]:
        if self._head is not None:
            yield self._head
            yield from self._digests


def compare_entries(view: View, entries: ExecutionEntries, objects: Objects) -> Iterator[FsckFinding]:
    """Find registered packs that are not indexed, indexed ones that are not registered, and wrong copies.

    The entry of a pack is a copy of its manifest, and its row in the list agrees with that.
    """
    rooted, listed = SortedCursor(_rooted_packs(view)), SortedCursor(view.packs.digests())
    for digest in entries.names():
        yield from map(_unregistered_pack, rooted.before(digest))
        yield from _unregistered_rows(view, listed.before(digest))
        recorded = view.objects.lookup(digest)
        # All are evaluated, because each cursor must advance.
        indexed = (
            rooted.advance_to(digest),
            listed.advance_to(digest),
            recorded is not None and recorded.kind == EXECUTION_PACK,
        )
        if not all(indexed):
            yield FsckFinding(state="index", what=PACKS + digest.hex, why="registered, but not indexed")
        yield from _compare_pack(view, digest, entries, objects)
    yield from map(_unregistered_pack, rooted.drain())
    yield from _unregistered_rows(view, listed.drain())


def compare_roots(view: View) -> Iterator[FsckFinding]:
    """Every root packs/<hex> points at object <hex>, and the tally equals their number."""
    count = 0
    for name, target in view.objects.roots(PACKS):
        count += 1
        if name != PACKS + target.hex:
            yield FsckFinding(state="index", what=name, why="it keeps another object than it names")
    if view.objects.root_count(PACKS) != count:
        yield FsckFinding(state="index", what="tally", why="the tally of packs is not what counting gives")


def _rooted_packs(view: View) -> Iterator[Digest]:
    """The packs that roots name, ascending."""
    for name, _ in view.objects.roots(PACKS):
        try:
            yield Digest(name.removeprefix(PACKS))
        except InvalidId:
            continue  # compare_roots reports it


def _unregistered_pack(digest: Digest) -> FsckFinding:
    why = "this run was registered, and its entry is gone; if that is right, 'ctx fsck --rebuild' accepts it"
    return FsckFinding(state="missing", what=PACKS + digest.hex, why=why, ref=f"ctx://{digest.hex}")


def _unregistered_rows(view: View, digests: Iterator[Digest]) -> Iterator[FsckFinding]:
    for digest in digests:
        if next(view.objects.roots(PACKS + digest.hex), None) is None:
            yield FsckFinding(state="index", what=PACKS + digest.hex, why="listed, and not registered")


def _compare_pack(view: View, digest: Digest, entries: ExecutionEntries, objects: Objects) -> Iterator[FsckFinding]:
    manifest = read_manifest_bytes(digest, objects)  # one that cannot be read is reported as an object
    try:
        copy = entries.read(digest)
    except ContextPlaneError as error:
        yield FsckFinding(state="corrupt", what=PACKS + digest.hex, why=error.message, ref=f"ctx://{digest.hex}")
        return
    if manifest is None:
        return
    if copy is not None and not is_entry_of(copy, manifest, digest):
        why = "the entry is not a copy of its manifest"
        yield FsckFinding(state="corrupt", what=PACKS + digest.hex, why=why, ref=f"ctx://{digest.hex}")
    row = view.packs.row(digest)
    if row is not None and _row_facts(row) != _row_facts(describe_pack(digest, manifest, row.packed)[0]):
        yield FsckFinding(state="index", what=PACKS + digest.hex, why="the list does not match its manifest")


def _row_facts(row: PackRow) -> tuple[object, ...]:
    """The facts of a row that must agree. The wording of its problem may be that of another version."""
    return row.created, row.model, row.steps, row.parent, row.tools, bool(row.problem)


def compare_manifests(view: View, objects: Objects) -> Iterator[FsckFinding]:
    """Find manifests whose recorded edges are not those that their bytes name. Only reachable ones count."""
    reached = SortedCursor(view.objects.reachable())
    for digest in view.objects.of_kind(EXECUTION_PACK):
        if not reached.advance_to(digest):
            continue
        manifest = read_manifest_bytes(digest, objects)
        if manifest is None:
            continue  # reported as an object
        refs = find_references(manifest)
        if refs is None:
            yield FsckFinding(
                state="corrupt", what=str(digest), why="registered as an execution pack, and is no manifest"
            )
            continue
        for role, text in refs.unreadable:
            yield FsckFinding(state="corrupt", what=str(digest), why=f"its {role} is not understood: {text}")
        recorded = view.objects.lookup(digest)
        targets = set(view.objects.targets(digest))
        named = set(refs.objects)
        known = named | {(MENTION, mention) for mention in refs.mentions}
        traced = recorded is not None and recorded.traced
        if not named <= targets <= known or traced != (not refs.unreadable):
            yield FsckFinding(
                state="index", what=str(digest), why="the recorded references are not those of the manifest"
            )


def compare_texts(view: View, objects: Objects) -> Iterator[FsckFinding]:
    """Find packs with texts that could not be read when they were indexed, and can be now."""
    marked = (name.removeprefix(UNREAD).split("/") for name in view.marks.names(UNREAD))
    for pack, contents in groupby(marked, key=lambda parts: parts[0]):
        if any(objects.check(Digest(content)).state == "whole" for _, content in contents):
            why = "not all of its texts are searched: some could not be read when it was indexed, and can be now"
            yield FsckFinding(state="index", what=PACKS + pack, why=why)


def compare_tallies(view: View) -> Iterator[FsckFinding]:
    """Find tallies that differ from a count."""
    if view.objects.tallies() != view.objects.recount():
        yield FsckFinding(state="index", what="tally", why="the tallies are not what counting gives")


# --- owners of objects ------------------------------------------------------------------------------------------------

ObjectOwner = tuple[Digest, str | None]
"""A run and a part of it: empty for its manifest, None while the manifest cannot be read."""


class OwnerLookup:
    """Maps an object digest to the run, and the part of it, that it belongs to. For messages.

    The manifest that was read last is cached: damage comes in numbers.
    """

    def __init__(self, view: View, objects: Objects) -> None:
        self._view = view
        self._objects = objects
        self._run: Digest | None = None
        self._parts: dict[str, str] = {}

    def find(self, digest: Digest, referrers: Iterable[str]) -> ObjectOwner | None:
        """The owner of an object; None when it is part of no run."""
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
                unclear = run  # a run with a readable manifest only mentions it
        return None if unclear is None else (unclear, None)

    def _is_run(self, digest: Digest) -> bool:
        recorded = self._view.objects.lookup(digest)
        return recorded is not None and recorded.kind == EXECUTION_PACK

    def _parts_of(self, run: Digest) -> dict[str, str]:
        if run != self._run:
            self._run, self._parts = run, _parts_by_ref(read_manifest_bytes(run, self._objects))
        return self._parts


def owner_ref(owner: ObjectOwner) -> str:
    """The reference of an owner as it can be typed."""
    run, part = owner
    return f"ctx://{run.hex}" + (f":{part}" if part else "")


def describe_owner(owner: ObjectOwner | None) -> str:
    """An owner as the beginning of a sentence."""
    if owner is None:
        return "it"
    run, part = owner
    if part is None:
        return f"a part of {short_ref(run)}"
    return short_ref(run, part) if part else f"the manifest of {short_ref(run)}"


def _parts_by_ref(manifest: bytes | None) -> dict[str, str]:
    if manifest is None:
        return {}
    try:
        named = list(contents_of(read_manifest(manifest)))
    except ManifestInvalid:
        return {}
    return {ref: part for part, ref in reversed(named)}


# --- the whole check --------------------------------------------------------------------------------------------------

Progress = Callable[[int, int], None]
"""Called with the bytes and the objects checked since the last call."""

_STATE: dict[Damage, FindingState] = {"tampered": "corrupt", "missing": "missing", "unreadable": "unreadable"}


def fsck(
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    progress: Progress,
    others: Sequence[Comparison] = (),
) -> Generator[FsckFinding, None, None]:
    """Yield every finding of a check as it is made. `others`: comparisons of other packages.

    Memory grows only with the number of doubtful findings, which are confirmed by a second look.
    """
    problems = list(catalog.problems())
    for line in problems:
        yield FsckFinding(state="corrupt", what="catalog", why=line)
    if problems:
        # Comparisons with an unsound index would be noise.
        yield from fsck_objects(objects, progress)
    else:
        doubts: list[FsckFinding] = []
        with catalog.read() as view:
            findings = chain(_compare(view, entries, objects, progress), *(compare(view) for compare in others))
            for finding in findings:
                if finding.state in {"missing", "index"}:
                    doubts.append(finding)
                else:
                    yield finding
        yield from _confirm(doubts, catalog, entries, objects, others)
    yield from _find_strays(entries, objects)


def fsck_objects(objects: Objects, progress: Progress) -> Iterator[FsckFinding]:
    """Re-hash every object, and check nothing else: all that is possible without a catalog."""
    for digest in objects.names():
        condition = objects.check(digest)
        progress(condition.size, 1)
        if condition.state in {"corrupt", "unreadable"}:
            yield _object_finding(digest, condition)


def _compare(view: View, entries: ExecutionEntries, objects: Objects, progress: Progress) -> Iterator[FsckFinding]:
    yield from _compare_objects(view, objects, progress)
    yield from compare_entries(view, entries, objects)
    yield from compare_roots(view)
    yield from compare_manifests(view, objects)
    yield from compare_handoffs(view, objects)
    yield from compare_texts(view, objects)
    yield from compare_tallies(view)


def _compare_objects(view: View, objects: Objects, progress: Progress) -> Iterator[FsckFinding]:
    """Walk three ascending lists side by side: stored objects, required ones, reachable ones."""
    owners = OwnerLookup(view, objects)
    required, reached = SortedCursor(view.objects.referenced_digests()), SortedCursor(view.objects.reachable())
    for digest in objects.names():
        for absent in required.before(digest):
            yield from _check_unfiled(view, absent, owners, progress)
        needed, alive = required.advance_to(digest), reached.advance_to(digest)
        condition = objects.check(digest)
        progress(condition.size, 1)
        recorded = view.objects.lookup(digest)
        if condition.state == "missing":
            # Collected by another process since its name was listed.
            if needed:
                yield from _check_missing(view, digest, owners)
        elif condition.state != "whole":
            yield _damage_finding(view, digest, condition, owners)
        elif not alive:
            unknown_kind = "" if recorded else ", and its kind is unknown: it is never collected"
            yield FsckFinding(state="orphaned", what=str(digest), why=f"nothing refers to it{unknown_kind}")
        elif recorded is None or recorded.size != condition.size:
            yield FsckFinding(state="index", what=str(digest), why="it is not in the index, or with another size")
    for absent in required.drain():
        yield from _check_unfiled(view, absent, owners, progress)


def _check_unfiled(view: View, digest: Digest, owners: OwnerLookup, progress: Progress) -> Iterator[FsckFinding]:
    """Check a required object that is no file. When it waits in the catalog, it was hashed there."""
    pending = pending_bytes(view.pending, digest)
    if pending is not None:
        progress(len(pending), 1)
    yield from _check_missing(view, digest, owners)


def _check_missing(view: View, digest: Digest, owners: OwnerLookup) -> Iterator[FsckFinding]:
    if pending_bytes(view.pending, digest) is not None:
        return
    if _was_never_here(view, digest):
        why = "a run is a fork of it, and came here without it"
        yield FsckFinding(state="absent", what=str(digest), why=why, needed_by=view.objects.referrers(digest))
    else:
        yield _damage_finding(view, digest, ObjectCondition(state="missing"), owners)


def _damage_finding(view: View, digest: Digest, condition: ObjectCondition, owners: OwnerLookup) -> FsckFinding:
    needed_by = view.objects.referrers(digest)
    return _object_finding(digest, condition, needed_by, owners.find(digest, needed_by))


def _object_finding(
    digest: Digest, condition: ObjectCondition, needed_by: tuple[str, ...] = (), owner: ObjectOwner | None = None
) -> FsckFinding:
    """The finding for a damaged object, in the words of every verb, with the run that it belongs to."""
    damage = damage_in(condition) or "missing"
    observed = f": {condition.why}" if damage == "tampered" else ""
    return FsckFinding(
        state=_STATE[damage],
        what=str(digest),
        why=damage_sentence(describe_owner(owner), damage, condition.why) + observed,
        needed_by=needed_by,
        ref=owner_ref(owner) if owner is not None else None,
    )


def _was_never_here(view: View, digest: Digest) -> bool:
    """Whether an object is only a parent, and was never in this store.

    A manifest that was read once stays recorded, with its references.
    """
    recorded = view.objects.lookup(digest)
    return (
        recorded is not None
        and (recorded.kind, recorded.size, recorded.traced) == (EXECUTION_PACK, 0, False)
        and view.objects.roles_of(digest) == {"parent"}
    )


def _confirm(
    doubts: list[FsckFinding],
    catalog: Catalog,
    entries: ExecutionEntries,
    objects: Objects,
    others: Sequence[Comparison],
) -> Iterator[FsckFinding]:
    """The doubtful findings that a second look confirms: others may have written during the first."""
    if not doubts:
        return
    seen = {(finding.state, finding.what) for finding in doubts}
    with catalog.read() as view:
        findings = chain(_second_look(view, entries, objects), *(compare(view) for compare in others))
        for finding in findings:
            if (finding.state, finding.what) in seen:
                yield finding


def _second_look(view: View, entries: ExecutionEntries, objects: Objects) -> Iterator[FsckFinding]:
    """The comparison of `_compare` without re-hashing."""
    owners = OwnerLookup(view, objects)
    for digest in view.objects.referenced_digests():
        recorded = view.objects.lookup(digest)
        if not objects.has(digest):
            if objects.check(digest).state == "missing":
                yield from _check_missing(view, digest, owners)
        elif recorded is None or recorded.size != objects.size(digest):
            yield FsckFinding(state="index", what=str(digest), why="it is not in the index, or with another size")
    yield from compare_entries(view, entries, objects)
    yield from compare_roots(view)
    yield from compare_manifests(view, objects)
    yield from compare_handoffs(view, objects)
    yield from compare_texts(view, objects)
    yield from compare_tallies(view)


def _find_strays(entries: ExecutionEntries, objects: Objects) -> Iterator[FsckFinding]:
    for stray in objects.strays():
        if stray.what == "obstacle":
            yield FsckFinding(
                state="corrupt", what=f"objects/{stray.name}", why="objects belong in here, and it is no folder"
            )
        else:
            why = "left behind by an interrupted write" if stray.what == "leftover" else "not an object"
            yield FsckFinding(state="foreign", what=f"objects/{stray.name}", why=why)
    for name in entries.strays():
        yield FsckFinding(state="foreign", what=f"packs/{name}", why="not a registered pack")
