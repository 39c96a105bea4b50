"""The port to the list of execution packs of a store. Other programs may write to it as well."""

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from contextplane.model.ids import Digest

__all__ = ["ExecutionEntries"]


class ExecutionEntries(Protocol):
    """The registered execution packs: a set of digests, each with an unverified copy of its manifest."""

    def state(self) -> str | None:
        """A text that differs whenever the set may have changed; None when that is not known yet."""
        ...

    def add(self, digest: Digest, copy: bytes) -> bool:
        """Register a pack whose manifest is stored already, durably. Return whether it was new.

        An entry that exists stays; a damaged copy is healed. Of several callers that add it at once, one gets True.
        """
        ...

    def names(self) -> Iterator[Digest]:
        """Every registered pack, in ascending order of digest."""
        ...

    def registration_time(self, digest: Digest) -> datetime:
        """When it was registered, in UTC; the minimum of `datetime` for an entry that does not exist."""
        ...

    def strays(self) -> Iterator[str]:
        """Names of other things among the entries."""
        ...

    def read(self, digest: Digest) -> bytes | None:
        """The copy kept in the entry; None when there is no such entry. Checks compare it, none trusts it.

        An entry that is not a file, or larger than any manifest, is an error.
        """
        ...
