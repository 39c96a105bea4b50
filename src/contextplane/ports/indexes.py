"""The ports to the indexes: objects and their references, execution packs, texts, handoff packs.

All of it can be rebuilt: from the objects themselves, and of handoff packs from their streams.
`model.catalog.search_terms` says how a text query is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import (
    HandoffFilter,
    HandoffPage,
    HandoffRow,
    IndexedObject,
    PackFilter,
    PackRow,
    SearchHit,
    Tally,
    TextPart,
)
from contextplane.model.ids import Digest, HandoffId

__all__ = [
    "HandoffIndex",
    "HandoffIndexView",
    "KindConflict",
    "ObjectIndex",
    "ObjectIndexView",
    "PackIndex",
    "PackIndexView",
    "TextIndex",
    "TextIndexView",
]


class KindConflict(ContextPlaneError):
    """An object was recorded before as another kind of thing."""

    code: ClassVar[str] = "object_kind_conflict"
    family: ClassVar[Family] = "conflict"


class ObjectIndexView(Protocol):
    """Reads what objects are and what they refer to."""

    def lookup(self, digest: Digest) -> IndexedObject | None: ...

    def of_kind(self, kind: str) -> Iterator[Digest]:
        """Every recorded object of one kind, ascending."""
        ...

    def tallies(self) -> tuple[Tally, ...]:
        """One tally per kind, by kind."""
        ...

    def recount(self) -> tuple[Tally, ...]:
        """The tallies counted row by row, which `tallies` must equal."""
        ...

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        """The (role, target) edges of an object, in order."""
        ...

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        """The (name, target) of every root that begins with `prefix`, in code-point order of name."""
        ...

    def root_count(self, prefix: str = "") -> int:
        """The number of roots that begin with `prefix`.

        The cost does not grow with their number when `prefix` is that of one kind, such as `packs/`.
        """
        ...

    def referenced_digests(self) -> Iterator[Digest]:
        """Every digest that a root or an edge points at, once, ascending."""
        ...

    def reachable(self) -> Iterator[Digest]:
        """Every digest that a chain of edges from some root reaches, once, ascending."""
        ...

    def referrers(self, target: Digest) -> tuple[str, ...]:
        """The roots and the `sha256:` sources that point at an object, at most 5, for messages."""
        ...

    def roles_of(self, target: Digest) -> frozenset[str]:
        """The roles in which other objects refer to an object, and `ROOT` when a root does."""
        ...

    def untraced_objects(self) -> Iterator[IndexedObject]:
        """Reachable objects whose own references are not completely known, ascending."""
        ...

    def unreachable(self) -> Iterator[IndexedObject]:
        """Recorded objects that no chain of edges from any root reaches, ascending."""
        ...


class ObjectIndex(ObjectIndexView, Protocol):
    """Writes the index. A rebuild gives the same again."""

    def record(self, recorded: IndexedObject) -> None:
        """Record what an object is. Once traced, always traced.

        `blob` is the kind of an object until more is known: it gives way to any other kind and displaces none. Any
        other change of kind is a `KindConflict`.
        """
        ...

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        """Record many blobs with their sizes at once, each as `record` would."""
        ...

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        """Record that `source` refers to each target in its role, in this order after existing edges.

        A caller that links to an object that it did not put itself checks, within this transaction, that the object is
        there: a collector takes the same turn.
        """
        ...

    def link(self, source: Digest, role: str, target: Digest) -> None:
        """Record one edge."""
        ...

    def keep(self, name: str, target: Digest) -> None:
        """Make `name` a root: its target stays alive, with everything reachable from it."""
        ...

    def release(self, name: str) -> None:
        """Remove a root."""
        ...

    def forget(self, digest: Digest) -> None:
        """Drop a collected object and its outgoing edges."""
        ...

    def unlink_all(self, prefix: str) -> None:
        """Drop every edge and the roots of one kind before a rebuild, and recount.

        The kinds of objects stay known. Only blobs count as traced afterwards: the references of the others are about
        to be found again.
        """
        ...


class PackIndexView(Protocol):
    """Reads the list of execution packs."""

    def page(self, pack_filter: PackFilter, limit: int) -> tuple[PackRow, ...]:
        """At most `limit` packs, newest first: by `created`, then by packing time, then by digest."""
        ...

    def row(self, digest: Digest) -> PackRow | None: ...

    def digests(self) -> Iterator[Digest]:
        """Every pack in the list, ascending."""
        ...


class PackIndex(PackIndexView, Protocol):
    """Writes the list of execution packs."""

    def add(self, row: PackRow) -> None:
        """Add a pack, or replace its row."""
        ...

    def remove(self, digest: Digest) -> None:
        """Remove a pack from the list, and its texts from the text index."""
        ...

    def clear(self) -> None:
        """Remove all packs."""
        ...


class TextIndexView(Protocol):
    """Searches the texts of execution packs."""

    def search(self, words: str, limit: int) -> tuple[SearchHit, ...]:
        """At most `limit` places that have all the words, the pack indexed last first.

        `model.catalog.search_terms` says what words are, and that there must be one. Nothing else in them is syntax.
        """
        ...


class TextIndex(TextIndexView, Protocol):
    """Writes the text index."""

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        """Add texts of a pack that is in the list."""
        ...


class HandoffIndexView(Protocol):
    """Reads the index of handoff packs. The cost of a page does not grow with the packs stored."""

    def row(self, handoff_id: HandoffId) -> HandoffRow | None: ...

    def find_by_name(self, name: str) -> tuple[HandoffRow, ...]:
        """Every pack of exactly that name, by id."""
        ...

    def page(self, handoff_filter: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        """Latest `updated` first, then highest revision, then by id."""
        ...

    def ids(self) -> Iterator[HandoffId]:
        """Every pack, ascending."""
        ...


class HandoffIndex(HandoffIndexView, Protocol):
    """Writes the index of handoff packs."""

    def put(self, row: HandoffRow, *, tags: Sequence[str] = ()) -> None:
        """Record the newest revision of a pack. A query finds its `tags`, too."""
        ...

    def remove(self, handoff_id: HandoffId) -> None: ...

    def clear(self) -> None: ...
