"""What we need of the list of execution packs that a store registers, which other programs may write to as well."""

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from contextplane.model.ids import Digest

__all__ = ["ExecutionEntries"]


class ExecutionEntries(Protocol):
    """The registered execution packs: a set of names, each with a copy of the manifest that nobody relies upon."""

    def state(self) -> str | None:
        """A text that differs whenever the set may have changed, or None when that cannot be told yet (look again)."""
        ...

    def add(self, digest: Digest, copy: bytes) -> bool:
        """Register a pack whose manifest is stored already, durably. What is there stays; a damaged copy is healed.

        Say whether it was not there before: of several who add it at once, one hears so.
        """
        ...

    def names(self) -> Iterator[Digest]:
        """Every registered pack, in ascending order of digest."""
        ...

    def added_at(self, digest: Digest) -> datetime:
        """When it was registered, in UTC; the beginning of time for an entry that is not there."""
        ...

    def strays(self) -> Iterator[str]:
        """Names of other things that lie among the entries."""
        ...

    def read(self, digest: Digest) -> bytes | None:
        """The copy kept in the entry, None when there is no such entry. It is compared by a check, trusted by nobody.

        An entry that is not a file, or larger than any manifest, is an error.
        """
        ...
