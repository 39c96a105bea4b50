"""What we need of time, so that nothing else reads a clock.

What we need of chance, so that nothing else makes up names.

Somebody who waits for what may take long, and wants to know how far it has come.

What we need of the files that a run saw: bytes by a path that cannot leave its root.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import HandoffId

__all__ = ["Clock", "Ids", "InsideStore", "OutsideRoot", "Progress", "Sources"]


class Clock(Protocol):
    """The time now, in UTC, with its zone."""

    def now(self) -> datetime: ...


class Ids(Protocol):
    """Fresh identities. Two may be equal by chance: whoever uses one looks whether it is free."""

    def handoff_id(self) -> HandoffId: ...

    def secret(self) -> bytes:
        """32 bytes that nobody can guess."""
        ...


class Progress(Protocol):
    """Is told of the work while it is done. It never changes the work, and any thread may tell it."""

    def expect(self, size: int) -> None:
        """So many bytes there will be. Nobody says so where it is not known."""
        ...

    def step(self, size: int, objects: int) -> None:
        """So many more bytes are done, and so many more objects with them."""
        ...


class OutsideRoot(ContextPlaneError):
    """A path that leads out of the folder it must stay in, by itself or through a link."""

    code: ClassVar[str] = "path_outside_root"
    family: ClassVar[Family] = "refused"


class InsideStore(ContextPlaneError):
    """A path that leads into a store, by itself or through a link: its keys and its index are no contents of a run."""

    code: ClassVar[str] = "path_inside_store"
    family: ClassVar[Family] = "refused"


class Sources(Protocol):
    """Files below one folder. Links are resolved first; what lies outside is refused, whatever the path looks like."""

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a regular file. `SourceUnreadable` when it cannot be read."""
        ...
