"""What we need to list execution packs and to search in them. All of it is index."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["Hit", "PackFilter", "PackIndex", "PackIndexView", "PackRow", "TextIndex", "TextIndexView", "TextPart"]


class PackRow(Value, frozen=True):
    """One line of the list. `problem` is said of a pack whose manifest could not be read when it was indexed."""

    digest: Digest
    created: Timestamp
    packed: Timestamp
    model: str = ""
    steps: int = 0
    parent: Digest | None = None
    tools: tuple[str, ...] = ()
    problem: str = ""


class PackFilter(Value, frozen=True):
    """Which packs are meant; what is None asks for nothing."""

    since: Timestamp | None = None
    model: str | None = None
    tool: str | None = None
    parent: Digest | None = None


class TextPart(Value, frozen=True):
    """Some text of a pack, at most 16 KiB, and where in it that stands: `system_prompt`, `steps/3`, ..."""

    part: str
    text: str


class Hit(Value, frozen=True):
    """A place where the words were found. The words stand between U+0002 and U+0003 in the snippet."""

    pack: Digest
    part: str
    snippet: str


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
