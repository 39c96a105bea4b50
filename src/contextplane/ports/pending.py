"""What we need to make small objects durable in the same commit as what refers to them. They become files later."""

from typing import Protocol

from contextplane.model.ids import Digest

__all__ = ["Pending", "PendingView"]


class PendingView(Protocol):
    """Reading small objects that are not files yet."""

    def get(self, digest: Digest) -> bytes | None: ...

    def count(self) -> int: ...

    def some(self, limit: int) -> tuple[tuple[Digest, bytes], ...]:
        """At most so many of them, ascending."""
        ...


class Pending(PendingView, Protocol):
    """Small objects that one commit makes durable together with what refers to them, until they are files.

    Whoever removes one has put it into the object store before, durably.
    """

    def put(self, digest: Digest, data: bytes) -> None:
        """`BodyTooLarge` when they are more than 64 KiB: those go into the object store at once."""
        ...

    def remove(self, digest: Digest) -> None: ...
