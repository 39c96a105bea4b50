"""The closure of execution packs: their manifests, the objects in them, and their line of parents.

It is read from the manifests and not from the index, which can be behind or lost. Only digests are held in memory, each
once, however large the packs are.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import ManifestInvalid, contents_of, read_manifest
from contextplane.model.execution.references import MAX_MANIFEST_BYTES, find_references
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects
from contextplane.store.damage import damage_context, short_ref

__all__ = ["PackClosure", "PackIncomplete", "PackNotUnderstood", "pack_closure"]

_NAMED, _LISTED = 10, 1000


class PackIncomplete(ContextPlaneError):
    """An object of an execution pack is missing. `details.missing` lists which, the first 1,000."""

    code: ClassVar[str] = "execution_pack_incomplete"
    family: ClassVar[Family] = "refused"


class PackNotUnderstood(ContextPlaneError):
    """An execution pack that no verb can read: its bytes are no manifest, or one of a form unknown to us."""

    code: ClassVar[str] = "execution_pack_not_understood"
    family: ClassVar[Family] = "refused"


class PackClosure:
    """Everything that the added packs reach.

    `parents` maps each added pack to its parent, or None; `contents` maps each object that a pack consists of to the
    first pack that names it; `mentions` are the other digests in the manifests, which may name objects.
    """

    def __init__(self) -> None:
        self.parents: dict[Digest, Digest | None] = {}
        self.contents: dict[Digest, Digest] = {}
        self.mentions: set[Digest] = set()
        self._parts: dict[Digest, str] = {}

    def add(self, pack: Digest, manifest: bytes) -> None:
        """Add a pack. Its manifest must be understood in full, or some of its objects would be left out."""
        refs = find_references(manifest)
        if refs is None:
            raise _not_understood(pack, "its bytes are no manifest")
        if refs.unreadable:
            place, text = refs.unreadable[0]
            raise _not_understood(pack, f"{place} is {text}")
        try:
            parts = {ref: part for part, ref in contents_of(read_manifest(manifest))}
        except ManifestInvalid as error:
            raise _not_understood(pack, error.message, place=error.at or "") from error
        self.parents[pack] = None
        for role, digest in refs.objects:
            if role == "parent":
                self.parents[pack] = digest
            elif digest not in self.contents:
                self.contents[digest] = pack
                self._parts[digest] = parts.get(str(digest), role)
        self.mentions.update(refs.mentions)

    def line(self, packs: Iterable[Digest]) -> set[Digest]:
        """These packs and all their ancestors that were added."""
        digests: set[Digest] = set()
        for pack in packs:
            digest: Digest | None = pack
            while digest is not None and digest in self.parents and digest not in digests:
                digests.add(digest)
                digest = self.parents[digest]
        return digests

    def absent_parents(self) -> list[Digest]:
        """The parents that were not added, ascending."""
        return sorted({parent for parent in self.parents.values() if parent is not None and parent not in self.parents})

    def display_name(self, digest: Digest) -> str:
        """The name of an object in messages: its pack, or its part of one; its digest if it is neither."""
        if digest in self.contents:
            return short_ref(self.contents[digest], self._parts[digest])
        return short_ref(digest) if digest in self.parents else str(digest)

    def require(self, holds: Callable[[Digest], bool]) -> None:
        """Raise `PackIncomplete` with every object of the packs for which `holds` is false."""
        missing = [digest for digest in sorted(self.contents) if not holds(digest)]
        if not missing:
            return
        of_one_pack = len({self.contents[digest] for digest in missing}) == 1
        names = sorted(self._parts[digest] if of_one_pack else self.display_name(digest) for digest in missing)
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        raise PackIncomplete(
            f"missing: {', '.join(names[:_NAMED])}{more}",
            at=f"ctx://{self.contents[missing[0]].hex}",
            hint="packing the same log again, or importing the run from where it is whole, brings them back",
            details={
                "missing": [
                    {"ref": f"ctx://{self.contents[digest].hex}:{self._parts[digest]}", "digest": str(digest)}
                    for digest in missing[:_LISTED]
                ],
                "more": len(missing) > _LISTED,
            },
        )


def pack_closure(packs: Iterable[Digest], objects: Objects) -> PackClosure:
    """The closure of these packs in a store.

    A parent that is not in the store ends its line; one of `packs` that is not raises `ObjectNotFound`.
    """
    roots = set(packs)
    closure = PackClosure()
    todo = sorted(roots)
    while todo:
        pack = todo.pop()
        if pack in closure.parents or (pack not in roots and not objects.has(pack)):
            continue
        with damage_context(short_ref(pack), "its manifest", pack):
            if objects.size(pack) > MAX_MANIFEST_BYTES:
                raise _not_understood(pack, "it is larger than any manifest")
            manifest = objects.get(pack)
        closure.add(pack, manifest)
        parent = closure.parents[pack]
        todo += [] if parent is None else [parent]
    return closure


def _not_understood(pack: Digest, why: str, *, place: str = "") -> PackNotUnderstood:
    return PackNotUnderstood(
        f"it cannot be understood: {why}", at=f"ctx://{pack.hex}{place}", hint="'ctx cat' shows its bytes"
    )
