"""Somebody who waits for what may take long, and wants to know how far it has come."""

from typing import Protocol

__all__ = ["Progress"]


class Progress(Protocol):
    """Is told of the work while it is done. It never changes the work, and any thread may tell it."""

    def expect(self, size: int) -> None:
        """So many bytes there will be. Nobody says so where it is not known."""
        ...

    def step(self, size: int, objects: int) -> None:
        """So many more bytes are done, and so many more objects with them."""
        ...
