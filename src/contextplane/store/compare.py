"""Comparing the index with what it is made from: the entries, the manifests, and its own rows."""

from collections.abc import Iterator
from itertools import groupby

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, MENTION, references, same_but_hash
from contextplane.model.ids import Digest, InvalidId
from contextplane.ports.catalog import View
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Objects
from contextplane.ports.pack_index import PackRow
from contextplane.store.ascending import Ascending
from contextplane.store.describe import described
from contextplane.store.finding import Finding
from contextplane.store.in_step import PACKS
from contextplane.store.searched import UNREAD
from contextplane.store.trace import read_manifest_bytes

__all__ = ["compare_entries", "compare_manifests", "compare_roots", "compare_tallies", "compare_texts"]


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
        known = named | {(MENTION, one) for one in refs.mentions}
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
