"""What execution packs reach: their manifests, what these consist of, and their line of parents.

The manifests say so and not the index, which can be behind or lost. Only names are kept, each once, however large the
packs are.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import MANIFEST_MOST, ManifestInvalid, contents_of, read_manifest, references
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects
from contextplane.store.damage import short, telling

__all__ = ["PackIncomplete", "PackNotUnderstood", "Reach", "reach"]

_NAMED, _LISTED = 10, 1000


class PackIncomplete(ContextPlaneError):
    """Something that an execution pack consists of is missing. `details.missing` lists what, the first 1,000."""

    code: ClassVar[str] = "execution_pack_incomplete"
    family: ClassVar[Family] = "refused"


class PackNotUnderstood(ContextPlaneError):
    """An execution pack that no verb can read: its bytes are no manifest, or one of a form unknown to us."""

    code: ClassVar[str] = "execution_pack_not_understood"
    family: ClassVar[Family] = "refused"


class Reach:
    """What the packs that were added reach.

    `parents` has each of these packs, with its parent if it has one; `contents` each object that one consists of, with
    the first pack that says so; `mentions` the other digests in them, which may name objects.
    """

    def __init__(self) -> None:
        self.parents: dict[Digest, Digest | None] = {}
        self.contents: dict[Digest, Digest] = {}
        self.mentions: set[Digest] = set()
        self._parts: dict[Digest, str] = {}

    def add(self, pack: Digest, manifest: bytes) -> None:
        """Add a pack by its manifest, which must be wholly understood: else something would be left behind."""
        refs = references(manifest)
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
        for role, digest in refs.found:
            if role == "parent":
                self.parents[pack] = digest
            elif digest not in self.contents:
                self.contents[digest] = pack
                self._parts[digest] = parts.get(str(digest), role)
        self.mentions.update(refs.mentions)

    def line(self, packs: Iterable[Digest]) -> set[Digest]:
        """These packs and all that they descend from, as far as it was added."""
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

    def called(self, digest: Digest) -> str:
        """What people know an object by: a pack that was added, or the part of one; any other by its digest."""
        if digest in self.contents:
            return short(self.contents[digest], self._parts[digest])
        return short(digest) if digest in self.parents else str(digest)

    def require(self, holds: Callable[[Digest], bool]) -> None:
        """Refuse if an object that a pack consists of is not held, and name all of them."""
        missing = [digest for digest in sorted(self.contents) if not holds(digest)]
        if not missing:
            return
        of_one = len({self.contents[digest] for digest in missing}) == 1
        named = sorted(self._parts[digest] if of_one else self.called(digest) for digest in missing)
        more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        raise PackIncomplete(
            f"missing: {', '.join(named[:_NAMED])}{more}",
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


def reach(packs: Iterable[Digest], objects: Objects) -> Reach:
    """What these packs reach in a store. A parent that is not there ends its line; a pack that is not is an error."""
    digests = set(packs)
    reach = Reach()
    todo = sorted(digests)
    while todo:
        pack = todo.pop()
        if pack in reach.parents or (pack not in digests and not objects.has(pack)):
            continue
        with telling(short(pack), "its manifest", pack):
            if objects.size(pack) > MANIFEST_MOST:
                raise _not_understood(pack, "it is larger than any manifest")
            manifest = objects.get(pack)
        reach.add(pack, manifest)
        parent = reach.parents[pack]
        todo += [] if parent is None else [parent]
    return reach


def _not_understood(pack: Digest, why: str, *, place: str = "") -> PackNotUnderstood:
    return PackNotUnderstood(
        f"it cannot be understood: {why}", at=f"ctx://{pack.hex}{place}", hint="'ctx cat' shows its bytes"
    )
