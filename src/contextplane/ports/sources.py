"""What we need of the files that a run saw: bytes by a path that cannot leave its root."""

from collections.abc import Iterator
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family

__all__ = ["InsideStore", "OutsideRoot", "Sources"]


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
