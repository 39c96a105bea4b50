"""Comparing the index with what it is made from: the entries, the manifests, and its own rows."""

from collections.abc import Iterator

from contextplane.errors import ContextPlaneError
from contextplane.model.execution import EXECUTION_PACK, MENTION, references, same_but_hash
from contextplane.model.ids import Digest
from contextplane.ports.catalog import View
from contextplane.ports.entries import ExecutionEntries
from contextplane.ports.objects import Objects
from contextplane.store.ascending import Ascending
from contextplane.store.finding import Finding
from contextplane.store.in_step import PACKS
from contextplane.store.trace import read_manifest_bytes

__all__ = ["compare_entries", "compare_manifests", "compare_tallies"]


def compare_entries(view: View, entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    """Every registered pack is indexed, every indexed one is registered, and its copy agrees with its manifest."""
    indexed = Ascending(digest for _, digest in view.objects.roots(PACKS))
    for digest in entries.names():
        for gone in indexed.before(digest):
            yield _unregistered(gone)
        if not indexed.takes(digest) or view.packs.row(digest) is None:
            yield Finding(state="index", what=PACKS + digest.hex, why="registered, but not indexed")
        yield from _compare_copy(digest, entries, objects)
    for gone in indexed.rest():
        yield _unregistered(gone)


def _unregistered(digest: Digest) -> Finding:
    why = "this pack was registered, and its entry is gone; if that is right, 'ctx fsck --rebuild' accepts it"
    return Finding(state="missing", what=PACKS + digest.hex, why=why)


def _compare_copy(digest: Digest, entries: ExecutionEntries, objects: Objects) -> Iterator[Finding]:
    try:
        copy = entries.read(digest)
    except ContextPlaneError as error:
        yield Finding(state="corrupt", what=PACKS + digest.hex, why=error.message)
        return
    manifest = read_manifest_bytes(digest, objects)
    # A manifest that cannot be read is told of as an object.
    if copy is not None and manifest is not None and not same_but_hash(copy, manifest, digest):
        yield Finding(state="corrupt", what=PACKS + digest.hex, why="the entry is not a copy of its manifest")


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


def compare_tallies(view: View) -> Iterator[Finding]:
    """The tallies say what counting says."""
    if view.objects.tallies() != view.objects.counted():
        yield Finding(state="index", what="tally", why="the tallies are not what counting gives")
