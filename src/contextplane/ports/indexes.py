"""What objects are and what refers to them: an index, made again from the objects themselves.

What we need to list execution packs and to search in them. All of it is index.

What we need to find handoff packs without reading them. All of it is index, made again from their streams.

What people type to search in texts, read the same way for every index.

Words, each of which must be there; "several words in quotes", one after the other; and with a * behind it the beginning
of a word. Nothing else is syntax, and nothing is an error but to ask for nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import (
    HandoffFilter,
    HandoffPage,
    HandoffRow,
    Hit,
    PackFilter,
    PackRow,
    Recorded,
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
    """Reading what objects are and what they refer to."""

    def recorded(self, digest: Digest) -> Recorded | None: ...

    def of_kind(self, kind: str) -> Iterator[Digest]:
        """Every recorded object of one kind, ascending."""
        ...

    def tallies(self) -> tuple[Tally, ...]:
        """One tally per kind, by kind."""
        ...

    def counted(self) -> tuple[Tally, ...]:
        """The same, counted row by row: what the tallies must say."""
        ...

    def targets(self, source: Digest) -> tuple[tuple[str, Digest], ...]:
        """The (role, target) edges of an object, in order."""
        ...

    def roots(self, prefix: str = "") -> Iterator[tuple[str, Digest]]:
        """The (name, target) of every root that begins with `prefix`, in code-point order of name."""
        ...

    def root_count(self, prefix: str = "") -> int:
        """How many there are; the cost does not grow with their number when `prefix` is that of one kind, `packs/`."""
        ...

    def wanted(self) -> Iterator[Digest]:
        """Every digest that a root or an edge points at, once, ascending."""
        ...

    def reached(self) -> Iterator[Digest]:
        """Every digest that a chain of edges from some root reaches, once, ascending."""
        ...

    def referrers(self, target: Digest) -> tuple[str, ...]:
        """The roots and the `sha256:` sources that point at an object, at most 5: enough to say who misses it."""
        ...

    def wanted_as(self, target: Digest) -> frozenset[str]:
        """The roles in which other objects refer to an object, and `ROOT` when a root does."""
        ...

    def untraced(self) -> Iterator[Recorded]:
        """Reached objects whose own references are not wholly known, ascending."""
        ...

    def unreachable(self) -> Iterator[Recorded]:
        """Recorded objects that no chain of edges from any root reaches, ascending."""
        ...


class ObjectIndex(ObjectIndexView, Protocol):
    """Writing it. All of it is index: a rebuild gives the same again."""

    def record(self, recorded: Recorded) -> None:
        """Say what an object is. Once traced, always traced.

        `blob` is what an object is until we know better: it gives way to any other kind and displaces none. Any other
        change of kind is a `KindConflict`.
        """
        ...

    def record_blobs(self, blobs: Iterable[tuple[Digest, int]]) -> None:
        """Record many blobs with their sizes at once, each as `record` would."""
        ...

    def link_all(self, source: Digest, edges: Sequence[tuple[str, Digest]]) -> None:
        """Say that `source` refers to each target in its role, in this order after those that are there.

        Who links to an object that it did not put itself checks, within this transaction, that the object is there:
        collecting takes the same turn.
        """
        ...

    def link(self, source: Digest, role: str, target: Digest) -> None:
        """The same for one."""
        ...

    def keep(self, name: str, target: Digest) -> None:
        """Make `name` a root: what it points at is alive, with all that this reaches."""
        ...

    def release(self, name: str) -> None:
        """Remove a root."""
        ...

    def forget(self, digest: Digest) -> None:
        """Drop a collected object and its outgoing edges."""
        ...

    def unlink_all(self, prefix: str) -> None:
        """Drop every edge and the roots of one kind before a rebuild, and count anew. What objects are stays known.

        Only blobs count as traced afterwards: what the others refer to is about to be found out again.
        """
        ...


class PackIndexView(Protocol):
    """Reading the list."""

    def page(self, wanted: PackFilter, limit: int) -> tuple[PackRow, ...]:
        """At most `limit` packs, newest first: by `created`, then by when they were packed, then by digest."""
        ...

    def row(self, digest: Digest) -> PackRow | None: ...

    def digests(self) -> Iterator[Digest]:
        """Every pack in the list, ascending."""
        ...


class PackIndex(PackIndexView, Protocol):
    """Writing it."""

    def add(self, row: PackRow) -> None:
        """Add a pack, or replace what was said of it."""
        ...

    def remove(self, digest: Digest) -> None:
        """Take a pack out of the list, and its texts out of what is searched."""
        ...

    def clear(self) -> None:
        """Take them all out."""
        ...


class TextIndexView(Protocol):
    """Searching."""

    def search(self, words: str, limit: int) -> tuple[Hit, ...]:
        """At most `limit` places that have all the words, the pack indexed last first.

        `text_query.terms` says what words are, and that there must be one. Nothing else in them is syntax.
        """
        ...


class TextIndex(TextIndexView, Protocol):
    """Writing what is searched."""

    def add(self, pack: Digest, parts: Iterable[TextPart]) -> None:
        """Add texts of a pack that is in the list."""
        ...


class HandoffIndexView(Protocol):
    """Reading it. The cost of a page grows with the page, not with the packs that are stored."""

    def row(self, handoff_id: HandoffId) -> HandoffRow | None: ...

    def named(self, name: str) -> tuple[HandoffRow, ...]:
        """Every pack of exactly that name, by id."""
        ...

    def page(self, wanted: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        """Latest `updated` first, then highest revision, then by id."""
        ...

    def ids(self) -> Iterator[HandoffId]:
        """Every pack, ascending."""
        ...


class HandoffIndex(HandoffIndexView, Protocol):
    """Writing it."""

    def put(self, row: HandoffRow) -> None:
        """Say what the newest revision of a pack is."""
        ...

    def remove(self, handoff_id: HandoffId) -> None: ...

    def clear(self) -> None: ...
