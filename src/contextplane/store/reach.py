"""What execution packs reach: their manifests, what these consist of, and their line of parents.

The manifests say so and not the index, which can be behind or lost. Only names are kept, each once, however large the
packs are.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution import MANIFEST_MOST, references
from contextplane.model.ids import Digest
from contextplane.model.manifest import ManifestInvalid, read_manifest
from contextplane.ports.objects import Objects

__all__ = ["PackIncomplete", "PackNotUnderstood", "Reach", "reach"]


class PackIncomplete(ContextPlaneError):
    """Something that an execution pack consists of is missing."""

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

    def add(self, pack: Digest, manifest: bytes) -> None:
        """Add a pack by its manifest, which must be wholly understood: else something would be left behind."""
        refs = references(manifest)
        if refs is None:
            raise _not_understood(pack, "its bytes are no manifest")
        if refs.unreadable:
            place, text = refs.unreadable[0]
            raise _not_understood(pack, f"{place} is {text}")
        try:
            read_manifest(manifest)
        except ManifestInvalid as error:
            raise _not_understood(pack, error.message, place=error.at or "") from error
        self.parents[pack] = None
        for role, digest in refs.found:
            if role == "parent":
                self.parents[pack] = digest
            else:
                self.contents.setdefault(digest, pack)
        self.mentions.update(refs.mentions)

    def line(self, packs: Iterable[Digest]) -> set[Digest]:
        """These packs and all that they descend from, as far as it was added."""
        found: set[Digest] = set()
        for pack in packs:
            one: Digest | None = pack
            while one is not None and one in self.parents and one not in found:
                found.add(one)
                one = self.parents[one]
        return found

    def absent_parents(self) -> list[Digest]:
        """The parents that were not added, ascending."""
        return sorted({one for one in self.parents.values() if one is not None and one not in self.parents})

    def require(self, holds: Callable[[Digest], bool]) -> None:
        """Refuse if an object that a pack consists of is not held."""
        for digest in sorted(self.contents):
            if not holds(digest):
                pack = f"ctx://{self.contents[digest].hex}"
                raise PackIncomplete(f"{digest} is missing, and the pack consists of it", at=pack)


def reach(packs: Iterable[Digest], objects: Objects) -> Reach:
    """What these packs reach in a store. A parent that is not there ends its line; a pack that is not is an error."""
    given = set(packs)
    found = Reach()
    todo = sorted(given)
    while todo:
        pack = todo.pop()
        if pack in found.parents or (pack not in given and not objects.has(pack)):
            continue
        if objects.size(pack) > MANIFEST_MOST:
            raise _not_understood(pack, "it is larger than any manifest")
        found.add(pack, objects.get(pack))
        parent = found.parents[pack]
        todo += [] if parent is None else [parent]
    return found


def _not_understood(pack: Digest, why: str, *, place: str = "") -> PackNotUnderstood:
    return PackNotUnderstood(
        f"it cannot be understood: {why}", at=f"ctx://{pack.hex}{place}", hint="'ctx cat' shows its bytes"
    )
