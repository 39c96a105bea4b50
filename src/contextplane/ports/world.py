"""The ports to the world outside: clock, random ids, progress reports and source files.

Nothing else reads a clock, draws random numbers or opens the files of a run.
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
    """Fresh identities. Two may be equal by chance: the caller checks that one is free."""

    def handoff_id(self) -> HandoffId: ...

    def secret(self) -> bytes:
        """32 bytes that cannot be guessed."""
        ...


class Progress(Protocol):
    """Receives progress reports of long work. It never changes the work, and any thread may call it."""

    def expect(self, size: int) -> None:
        """Announce the number of bytes. Not called where it is not known."""
        ...

    def step(self, size: int, objects: int) -> None:
        """Report that this many more bytes, and objects, are done."""
        ...


class OutsideRoot(ContextPlaneError):
    """A path that leads out of the folder it must stay in, by itself or through a link."""

    code: ClassVar[str] = "path_outside_root"
    family: ClassVar[Family] = "refused"


class InsideStore(ContextPlaneError):
    """A path that leads into a store, by itself or through a link.

    Its keys and its index are no contents of a run.
    """

    code: ClassVar[str] = "path_inside_store"
    family: ClassVar[Family] = "refused"


class Sources(Protocol):
    """Files below one folder. Links are resolved first; everything outside is refused."""

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a regular file. `SourceUnreadable` when it cannot be read."""
        ...
