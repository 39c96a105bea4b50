"""The folder that tools work in: what lies in it by where a path really leads, and what of it is the store's."""

import os
from collections.abc import Iterator
from contextlib import suppress

from contextplane.adapters.files.sources import below, in_store
from contextplane.ports.sources import OutsideRoot
from contextplane.ports.tools import ToolFailed, ToolRefused

__all__ = ["Workspace", "below"]


class Workspace:
    """A folder without the store in it.

    The store changes with every run that is packed, so what a run saw of it is never there again; and a tool that could
    write there could change what was recorded. Every folder called `.ctx` counts as one.
    """

    def __init__(self, root: str, store: str = "") -> None:
        self.root = os.path.realpath(root)
        self._store = os.path.realpath(store) if store else ""

    def inside(self, path: str) -> str:
        """Where a path really leads, which must be inside the workspace."""
        if "\0" in path:
            raise ToolFailed("a path with a NUL in it")
        real = os.path.realpath(os.path.join(self.root, path))
        if self.is_store(real):
            raise ToolRefused("leads into the store, which is no part of the workspace", at=path)
        if not below(self.root, real):
            raise OutsideRoot("leads out of its folder", at=path, hint=f"it must lie below {self.root}")
        return real

    def holds(self, real: str) -> bool:
        return below(self.root, real) and not self.is_store(real)

    def is_store(self, real: str) -> bool:
        return in_store(real, root=self.root, store=self._store)

    def around_store(self, place: str) -> Iterator[tuple[str, bool]]:
        """The parts of a folder that together are all of it but the store, and whether each is to be taken whole.

        One that is not is a folder that the store lies in. Links are left out: where they lead is another place. Of
        stores that nobody named only one that lies in the workspace itself counts: others would have to be looked for.
        """
        if self.is_store(place):
            return
        kept_out = (self._store, os.path.join(self.root, ".ctx"))
        if not any(store and below(place, store) and os.path.lexists(store) for store in kept_out):
            yield place, True
            return
        yield place, False
        with suppress(FileNotFoundError, PermissionError), os.scandir(place) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from self.around_store(entry.path)
