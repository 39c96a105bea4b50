"""Copies of a store at several moments, with its database and the memory of its client, to be put back in its place.

A store is put back where it was: what a client remembers outside of the store is kept by the store's path.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.catalog_rows import open_rows
from tests.support.registry_tampering import Tables, put_tables_back, read_tables
from tests.support.registry_team import Team

__all__ = ["StoreCopies", "memory_folder"]

_MEMORY = "/dev/shm"  # noqa: S108  a folder of our own is made in it


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory if possible, removed at the end."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as path:
        yield Path(path)


class StoreCopies:
    """The copies of one team's folder, by name."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self._root = team.folder.parent
        self._tables: dict[str, Tables] = {}

    def path(self, name: str) -> Path:
        return self._root / "copies" / name

    def keep(self, name: str) -> None:
        """Keep everything as it is now."""
        for folder in (self.team.folder, self.team.state):
            if folder.exists():
                shutil.copytree(folder, self.path(name) / folder.name, symlinks=True)
        if self.team.database_url is not None:
            self._tables[name] = read_tables(open_rows(self.team.store, self.team.database_url))

    def put_back(self, name: str) -> None:
        """Make everything in the root as it was, and remove what was not there."""
        for entry in self._root.iterdir():
            if entry.name == "copies":
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        for folder in (self.team.folder, self.team.state):
            if (self.path(name) / folder.name).exists():
                shutil.copytree(self.path(name) / folder.name, folder, symlinks=True)
        if self.team.database_url is not None:
            put_tables_back(open_rows(self.team.store, self.team.database_url), self._tables[name])
